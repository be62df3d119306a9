package protect

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
)

func TestNothingLeavesBeforeThePursePays(t *testing.T) {
	broken := errors.New("disk is full")
	for _, c := range []struct {
		kind, mode, noise string
		err               error
		claim             event.Claim
	}{
		{"group-private", "paper", "simulated", nil, event.ClaimHeuristic},
		{"group-private", "sound", "exact", nil, event.ClaimMetric},
		{"group-private", "sound", "exact-seeded", fmt.Errorf("too much: %w", fl.ErrRefused), event.ClaimMetric},
		{"ifca", "paper", "simulated", fmt.Errorf("too much: %w", fl.ErrRefused), event.ClaimNone},
		{"group-private", "sound", "exact", broken, event.ClaimMetric},
	} {
		run := config.Default("synthetic", c.kind, c.mode)
		run.Privacy.Noise = c.noise
		g, s := fltest.New(t, run, 100), fltest.TwoHypotheses()
		purse := &fltest.Purse{Err: c.err}
		p := fl.Participant{Data: &data.Synthetic(run.Data, 1).Train[0], Purse: purse}
		b, err := g.Broadcast(s)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]float64, g.ReleaseLength())
		released, err := g.Respond(new(fl.Worker), b, &p, out)
		if wantErr := errors.Is(c.err, broken); (err != nil) != wantErr || released != (c.err == nil) {
			t.Errorf("%+v: released %v, error %v", c, released, err)
		}
		if len(purse.Asked) != 1 || purse.Asked[0].Claim != c.claim {
			t.Errorf("%+v: the purse was asked for %+v", c, purse.Asked)
		}
		if c.err != nil && (!slices.Equal(out, make([]float64, len(out))) || p.Account.Releases != 0) {
			t.Errorf("%+v: %v left without being paid for, %d releases accounted", c, out, p.Account.Releases)
		}
	}
}

// TestSeededExactNoiseRepeats is what a comparison of simulation and federation
// stands on; system entropy must not repeat.
func TestSeededExactNoiseRepeats(t *testing.T) {
	draw := func(noise string, id int) []float64 {
		run := config.Default("synthetic", "group-private", "sound")
		run.Privacy.Noise = noise
		p := fl.Participant{ID: id, Data: &data.Synthetic(run.Data, 1).Train[0]}
		out, _ := fltest.Respond(t, fltest.New(t, run, 100), fltest.TwoHypotheses(), &p)
		return out
	}
	if a, b := draw("exact-seeded", 3), draw("exact-seeded", 3); !slices.Equal(a, b) {
		t.Errorf("seeded: %v and %v", a, b)
	}
	if a, b := draw("exact-seeded", 3), draw("exact-seeded", 4); slices.Equal(a, b) {
		t.Errorf("clients 3 and 4 have the same noise: %v", a)
	}
	if a, b := draw("exact", 3), draw("exact", 3); slices.Equal(a, b) {
		t.Errorf("system entropy repeats: %v", a)
	}
}
