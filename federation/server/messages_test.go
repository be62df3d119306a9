package server

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/fl"
)

// FuzzMessages: what the network brings is never a reason to fall.
func FuzzMessages(f *testing.F) {
	for _, m := range []proto.Message{
		&wire.OfferRequest{Slot: &wire.Slot{Run: "r", Round: 1}, Content: &wire.Content{Size: 16, Sha256: make([]byte, 32)}},
		&wire.UploadPart{Part: transfer.NewPart(0, []byte("12345678"))}, &wire.UploadPart{Part: transfer.NewPart(0, []byte("1234567"))}, &wire.NextRequest{Run: "r"}, &wire.JoinReply{Plan: []byte("{}")},
	} {
		raw, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(_ *testing.T, raw []byte) {
		var o wire.OfferRequest
		if proto.Unmarshal(raw, &o) == nil {
			_ = slotOf(o.GetSlot())
		}
		var u wire.UploadPart
		if proto.Unmarshal(raw, &u) == nil {
			_ = transfer.CheckPart(u.GetPart())
			_ = checkBounds(u.GetPart().GetData(), u.GetPart().GetOffset(), []fl.Bound{{To: 3, Most: 1}, {From: 3, To: 5, Least: 1, Most: 2}})
		}
		var j wire.JoinReply
		if proto.Unmarshal(raw, &j) == nil {
			_, _, _ = plan.Parse(j.GetPlan())
		}
	})
}

// FuzzPartCodec: the codec for parts reads what protobuf reads, and keeps nothing of
// the caller's buffer.
func FuzzPartCodec(f *testing.F) {
	whole := &wire.UploadPart{Slot: &wire.Slot{Run: "r", PlanSha256: []byte("plan"), Round: 1}, Part: transfer.NewPart(8, []byte("12345678"))}
	for _, m := range []proto.Message{whole, &wire.UploadPart{}, &wire.UploadPart{Part: &wire.Part{}}} {
		raw, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want wire.UploadPart
		wantErr := proto.Unmarshal(raw, &want)
		got := &wire.UploadPart{Part: transfer.NewPart(3, []byte("left over"))}
		lent := bytes.Clone(raw)
		if err := (partCodec{}).Unmarshal(lent, got); (err == nil) != (wantErr == nil) {
			t.Fatalf("%x: %v, protobuf says %v", raw, err, wantErr)
		}
		if wantErr != nil {
			return
		}
		for i := range lent {
			lent[i] = 0xff
		}
		if !proto.Equal(got.GetSlot(), want.GetSlot()) || !proto.Equal(got.GetPart(), want.GetPart()) {
			t.Errorf("%x is read as %v, protobuf reads %v", raw, got, &want)
		}
		recycle(got.GetPart())
	})
}
