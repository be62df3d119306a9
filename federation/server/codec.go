package server

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/runtime/protoiface"

	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
)

// partCodec is protobuf, but for the parts of releases: their bytes are read into
// buffers that are used again. A fresh megabyte for every part would cost the server
// a third of its time in collecting garbage.
type partCodec struct{}

// partBuffers holds what recycle gave back.
var partBuffers = sync.Pool{New: func() any { return new([]byte) }}

// recycle gives a part's bytes back; nobody may look at them afterwards.
func recycle(p *wire.Part) {
	if b := p.GetData(); cap(b) >= transfer.PartBytes {
		p.Data = nil
		partBuffers.Put(&b)
	}
}

// Name is the usual codec's: it takes its place.
func (partCodec) Name() string { return "proto" }

// Marshal is protobuf's.
func (partCodec) Marshal(m any) ([]byte, error) {
	return partCodec{}.MarshalAppend(nil, m)
}

// MarshalAppend is protobuf's.
func (partCodec) MarshalAppend(to []byte, m any) ([]byte, error) {
	message, ok := m.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", m)
	}
	return proto.MarshalOptions{}.MarshalAppend(to, message)
}

// Unmarshal is protobuf's, but for parts.
func (partCodec) Unmarshal(raw []byte, m any) error {
	message, ok := m.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", m)
	}
	u, ok := m.(*wire.UploadPart)
	if !ok {
		return proto.Unmarshal(raw, message)
	}
	proto.Reset(u)
	methods := u.ProtoReflect().ProtoMethods()
	if methods == nil || methods.Unmarshal == nil {
		return proto.Unmarshal(raw, message)
	}
	// The fields first point into raw, which belongs to the caller.
	if _, err := methods.Unmarshal(protoiface.UnmarshalInput{
		Message: u.ProtoReflect(), Buf: raw, Flags: protoiface.UnmarshalAliasBuffer, Depth: 100,
	}); err != nil {
		return err
	}
	if s := u.GetSlot(); s != nil {
		s.PlanSha256 = append([]byte(nil), s.PlanSha256...)
	}
	if p := u.GetPart(); p != nil {
		buffer := *partBuffers.Get().(*[]byte)
		if cap(buffer) < transfer.PartBytes {
			buffer = make([]byte, 0, transfer.PartBytes)
		}
		p.Data = append(buffer[:0], p.GetData()...)
	}
	return nil
}
