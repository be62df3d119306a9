package transfer

import (
	"bytes"
	"math"
	"testing"

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
		if int64(len(raw)) != BroadcastSize(len(b.Hypotheses)+len(b.Memory)) {
			t.Errorf("%v takes %d bytes, %d were foreseen", b, len(raw), BroadcastSize(len(b.Hypotheses)+len(b.Memory)))
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
