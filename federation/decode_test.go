package federation

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/fl"
)

func someBroadcasts() []fl.Broadcast {
	return []fl.Broadcast{
		{},
		{Round: 3, Hypotheses: []float64{1, -2.5, math.SmallestNonzeroFloat64, math.Copysign(0, -1)}, Radius: 0.3, Spread: 7},
		{Round: math.MaxInt32, Hypotheses: []float64{math.MaxFloat64}, Memory: []float64{1, 2, 3}},
	}
}

func TestBroadcastTravelsUnchanged(t *testing.T) {
	for _, b := range someBroadcasts() {
		raw := EncodeBroadcast(b)
		if int64(len(raw)) != broadcastSize(b) {
			t.Errorf("%v takes %d bytes, %d were foreseen", b, len(raw), broadcastSize(b))
		}
		got, err := DecodeBroadcast(raw)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(EncodeBroadcast(got), raw) {
			t.Errorf("%v comes out as %v", b, got)
		}
		for n := range raw {
			if _, err := DecodeBroadcast(raw[:n]); err == nil {
				t.Fatalf("%d of %d bytes are taken for a broadcast", n, len(raw))
			}
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if _, err := DecodeBroadcast(EncodeBroadcast(fl.Broadcast{Hypotheses: []float64{0, bad}})); err == nil {
			t.Errorf("a broadcast with %v is taken", bad)
		}
	}
}

func FuzzDecodeBroadcast(f *testing.F) {
	for _, b := range someBroadcasts() {
		f.Add(EncodeBroadcast(b))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := DecodeBroadcast(raw)
		if err == nil && !bytes.Equal(EncodeBroadcast(b), raw) {
			t.Errorf("%x is read as %v, which is written otherwise", raw, b)
		}
	})
}

func testPlan(t testing.TB) Plan {
	run, err := config.Resolve([]byte(testRun), nil, checks()...)
	if err != nil {
		t.Fatal(err)
	}
	text, err := run.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return Plan{
		Version: planVersion, Federation: "f", Run: "r", RunFile: string(text), Participants: 3, Shape: data.Shape{Features: 2},
		Quorum: 3, Minimum: 2, DeadlineSeconds: 60,
	}
}

func FuzzParsePlan(f *testing.F) {
	text, _, err := testPlan(f).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"version":1,"run_file":"a: ["}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, run, err := ParsePlan(raw)
		if err != nil {
			return
		}
		if Suitable(run) != nil {
			t.Error("a plan passes whose run file is for simulation only")
		}
		if _, _, err := p.Encode(); err != nil {
			t.Error(err)
		}
	})
}

func TestPlanIsReadStrictly(t *testing.T) {
	good := testPlan(t)
	text, sum, err := good.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := ParsePlan(text)
	if err != nil || !reflect.DeepEqual(got, good) {
		t.Fatalf("%v: %v, want %v", err, got, good)
	}
	if _, again, _ := got.Encode(); again != sum {
		t.Error("a plan that was read has another hash")
	}
	for name, bad := range map[string]string{
		"nothing":       ``,
		"more":          string(text) + `{}`,
		"unknown key":   strings.Replace(string(text), `{`, `{"noise":0,`, 1),
		"other version": strings.Replace(string(text), `"version":1`, `"version":2`, 1),
		"simulation":    strings.Replace(string(text), `exact-seeded`, `simulated`, 1),
		"patience":      strings.Replace(string(text), `patience: 0`, `patience: 6`, 1),
		"best":          strings.Replace(string(text), `return: last`, `return: best`, 1),
		"broken run":    strings.Replace(string(text), `rounds: 5`, `rounds: 0`, 1),
	} {
		if bad == string(text) {
			t.Fatalf("%s: the plan is unchanged", name)
		}
		if _, _, err := ParsePlan([]byte(bad)); err == nil {
			t.Errorf("%s: the plan is taken", name)
		}
	}
}

// FuzzMessages: what the network brings is never a reason to fall.
func FuzzMessages(f *testing.F) {
	for _, m := range []proto.Message{
		&wire.OfferRequest{Slot: &wire.Slot{Run: "r", Round: 1}, Content: &wire.Content{Size: 16, Sha256: make([]byte, 32)}},
		&wire.UploadPart{Part: newPart(0, []byte("12345678"))}, &wire.UploadPart{Part: newPart(0, []byte("1234567"))}, &wire.NextRequest{Run: "r"}, &wire.JoinReply{Plan: []byte("{}")},
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
			_ = slotName(o.GetSlot())
		}
		var u wire.UploadPart
		if proto.Unmarshal(raw, &u) == nil {
			_ = checkPart(u.GetPart())
			_ = checkBounds(u.GetPart().GetData(), u.GetPart().GetOffset(), []fl.Bound{{To: 3, Most: 1}, {From: 3, To: 5, Least: 1, Most: 2}})
		}
		var j wire.JoinReply
		if proto.Unmarshal(raw, &j) == nil {
			_, _, _ = ParsePlan(j.GetPlan())
		}
	})
}

// FuzzPartCodec: the codec for parts reads what protobuf reads, and keeps nothing of
// the caller's buffer.
func FuzzPartCodec(f *testing.F) {
	whole := &wire.UploadPart{Slot: &wire.Slot{Run: "r", PlanSha256: []byte("plan"), Round: 1}, Part: newPart(8, []byte("12345678"))}
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
		got := &wire.UploadPart{Part: newPart(3, []byte("left over"))}
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

func FuzzFiles(f *testing.F) {
	f.Add([]byte("run: run.yaml\nparticipants: [a, b]\nlimits: {uploads: 3}\n"))
	f.Add([]byte("policy: p.yaml\ndata: {kind: csv, path: x, target: y, features: [a]}\n"))
	f.Add([]byte(testPolicy))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, load := range []func() error{
			func() error { _, err := LoadServeFile(raw, "."); return err },
			func() error { _, err := LoadJoinFile(raw, "."); return err },
			func() error { _, err := LoadPolicy(raw); return err },
		} {
			var faults config.Faults
			if err := load(); err != nil && errors.As(err, &faults) && len(faults) == 0 {
				t.Errorf("%q is refused without a fault", raw)
			}
		}
	})
}

func TestFilesTellTheirFaults(t *testing.T) {
	for text, want := range map[string]string{
		"participants: [a]":                              "run: names no run file",
		"run: r\nparticipants: []":                       "participants: names nobody",
		"run: r\nparticipants: [a, a]":                   "stands twice",
		"run: r\nparticipants: [../a]":                   "is not a name",
		"run: r\nparticipants: [a]\nstart: 2":            "more than the 1 participants",
		"run: r\nparticipants: [a]\ndedline_seconds: 3":  `did you mean "deadline_seconds"?`,
		"run: r\nparticipants: [a]\ndeadline_seconds: 0": "out of range",
	} {
		if _, err := LoadServeFile([]byte(text), "."); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"data: {kind: csv}":                "names no file",
		"data: {kind: trainer}":            "trainer: is needed",
		"trainer: {command: []}\nledgr: x": `did you mean "ledger"?`,
	} {
		if _, err := LoadJoinFile([]byte(text), "."); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                            "ceilings: names nothing",
		"ceilings: [{unit: example}]": "all needed",
		"ceilings: [{unit: example, relation: add-remove, claim: proved, epsilon: 1}]":                                            "delta",
		"ceilings: [{unit: client, relation: replace-one, claim: none}]":                                                          "unlimited",
		"ceilings: [{unit: neighbourhood, relation: metric, claim: metric, epsilon: 1, epsilon_switch: 100000, unlimited: true}]": "unlimited",
	} {
		if _, err := LoadPolicy([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}
