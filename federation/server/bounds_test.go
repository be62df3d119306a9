package server

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/fl"
)

func TestBoundsHoldWhereverAPartBegins(t *testing.T) {
	bounds := []fl.Bound{{From: 0, To: 2, Most: 10}, {From: 2, To: 4, Least: 0.5, Most: math.MaxFloat64}}
	good := []float64{-10, 0, -0.5, math.MaxFloat64}
	for place := range good {
		for from := range good {
			try := func(v float64) error {
				values := append([]float64(nil), good...)
				values[place] = v
				return checkBounds(transfer.AppendVector(nil, values[from:]), int64(8*from), bounds)
			}
			if err := try(good[place]); err != nil {
				t.Errorf("from %d: %v", from, err)
			}
			bad := []float64{math.NaN(), -math.NaN(), math.Inf(1), math.Inf(-1)}
			if place < 2 {
				bad = append(bad, math.Nextafter(10, 11), -math.Nextafter(10, 11), 1e300, -1e300)
			} else {
				bad = append(bad, 0.49, -0.49, math.SmallestNonzeroFloat64)
			}
			for _, v := range bad {
				if err := try(v); (err != nil) != (place >= from) {
					t.Errorf("%v at %d of a part that begins at %d: %v", v, place, from, err)
				}
			}
		}
	}
}

// TestReleasesOutOfRangeAreRefused: one release of 1e300 was accepted and ended the
// server, at every start again. The bound is the run's finest lattice.
func TestReleasesOutOfRangeAreRefused(t *testing.T) {
	b := newBench(t, nil)
	b.work("north")
	most := b.c.bounds[0].Most
	if most != math.Ldexp(1, 33) { // 5*0.3*sqrt(3)/2 = 1.3: a step of 2^-20, times 2^53
		t.Errorf("releases are bounded by %v", most)
	}
	for _, v := range []float64{1e300, -1e300, math.Nextafter(most, math.Inf(1))} {
		_, err := b.send("north", 0, 1, v)
		b.wantReason(err, transfer.ReasonMalformed)
	}
	b.mustSend("north", 0, most, -most)
	b.mustSend("south", 0, most, most)
	b.mustSend("west", 0, -most, most)
	if w := b.work("south"); w.Round != 1 {
		t.Errorf("after releases at the bound comes round %d, want 2", w.Round+1)
	}
	if r, err := b.store.Round(t.Context(), b.plan.Run, 0); err != nil || r.Status != store.RoundClosed {
		t.Errorf("round 1 is %q (%v)", r.Status, err)
	}
}

// TestStateThatCannotOpenIsNotCommitted: whatever the releases did to it, the server
// goes on with the models from before, and says so.
func TestStateThatCannotOpenIsNotCommitted(t *testing.T) {
	var words bytes.Buffer
	b := newBench(t, func(p *plan.Plan) { p.DeadlineSeconds = 600 })
	b.stop()
	b.log = slog.New(slog.NewTextHandler(&words, nil))
	b.begin()
	b.work("north")
	b.c.bounds = nil // as a version before did, or a method whose bounds are wrong
	before := b.c.before.Clone()
	b.mustSend("north", 0, 1e300, 1)
	b.mustSend("south", 0, 1, 2)
	b.mustSend("west", 0, 2, 1)
	if w := b.work("south"); w.Round != 1 {
		t.Fatalf("after the release of 1e300 comes round %d, want 2", w.Round+1)
	}
	r, err := b.store.Round(t.Context(), b.plan.Run, 0)
	if err != nil || r.Status != store.RoundAbandoned || !strings.Contains(r.Reason, "not used") {
		t.Errorf("round 1 is %q, %q (%v); want abandoned", r.Status, r.Reason, err)
	}
	for i, v := range b.c.before.Hypotheses {
		if v != before.Hypotheses[i] {
			t.Errorf("value %d of the models changed from %v to %v", i, before.Hypotheses[i], v)
		}
	}
	b.mustSend("north", 1, 1, 1)
	b.mustSend("south", 1, 1, 2)
	b.mustSend("west", 1, 2, 1)
	b.work("south")
	b.stop()
	if !strings.Contains(words.String(), "level=ERROR") {
		t.Errorf("nothing loud is said:\n%s", words.String())
	}
	b.begin() // and the store can be opened
	b.work("south")
}

// TestLookingAheadChangesNothing: what a round begins with is rounded to its lattice,
// and the models that are returned are not.
func TestLookingAheadChangesNothing(t *testing.T) {
	b := newBench(t, nil)
	b.stop()
	s := &fl.State{Round: 1, Hypotheses: []float64{1.0 / 3, -2.0 / 3, 0.1, 0.7}, Idle: []int{0, 1}}
	before := s.Clone()
	if err := b.c.checkOpens(s); err != nil || !reflect.DeepEqual(s, before) {
		t.Errorf("%+v became %+v (%v)", before, s, err)
	}
}

// TestPoisonedStoreIsExplained: a store that an earlier version left with such a state
// is not tried again and again without a word.
func TestPoisonedStoreIsExplained(t *testing.T) {
	b := newBench(t, nil)
	b.work("north")
	b.stop()
	poisoned := b.c.state.Clone()
	poisoned.Round = 1
	poisoned.Hypotheses[0] = 1e300
	state, err := transfer.EncodeGob(poisoned)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.store.CloseRound(t.Context(), b.plan.Run, 0, state, time.Now()); err != nil {
		t.Fatal(err)
	}
	_, err = NewCoordinator(t.Context(), Terms{Plan: b.plan, Names: federationtest.Names, Store: b.store, Signer: federationtest.Signer(b.signer), Log: federationtest.Quiet()})
	if !errors.Is(err, ErrStuck) || !strings.Contains(err.Error(), "--new") || !strings.Contains(err.Error(), "1e+300") {
		t.Errorf("the store's state is 1e300, and the server says %v; want why it cannot go on, and what to do", err)
	}
}

// TestRunThatCannotEndIsNotBegun: a radius that falls to nothing has no lattice.
func TestRunThatCannotEndIsNotBegun(t *testing.T) {
	b := newBench(t, nil)
	b.stop()
	falling := b.plan
	falling.Run = "falling"
	falling.RunFile = strings.Replace(federationtest.Run, "radius: 0.3", "radius: 0.3, radius_decay: 1e-9", 1)
	_, err := NewCoordinator(t.Context(), Terms{Plan: falling, Names: federationtest.Names, Store: b.store, Signer: federationtest.Signer(b.signer), Log: federationtest.Quiet()})
	if !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "radius_decay") {
		t.Errorf("a radius of 0.3*1e-45 in the end: %v; want a word on radius_decay", err)
	}
}

// TestSilosOutOfRangeAreRefused: models, and the numbers declared beside them, with
// which means, relations or strengths would leave the finite numbers. What is at the
// bounds begins the next round.
func TestSilosOutOfRangeAreRefused(t *testing.T) {
	for _, method := range []string{"kind: mr-mtl, lambda: 1", "kind: mr-mtl, lambda: auto", "kind: mocha, lambda: 1", "kind: fedavg", "client"} {
		t.Run(method, func(t *testing.T) {
			b := newBench(t, func(p *plan.Plan) {
				kind := method
				if method == "client" {
					kind = "kind: fedavg"
				}
				p.RunFile = "name: silos\ndata: {kind: vehicle, standardise: none}\nalgorithm: {mode: sound, rounds: 4, " + kind +
					", local: {epochs: 1, step: 0.01, batch: 64}}\nprivacy: {epsilon: 6, delta: 1.0e-4, clip: 1, noise: exact-seeded}\n"
				if method == "client" {
					p.RunFile = strings.Replace(p.RunFile, "clip: 1,", "protects: client, update_clip: 1, relation: add-remove,", 1)
				}
				p.Shape = data.Shape{Features: 2, Classes: 2}
			})
			b.work("north")
			n := b.c.model.Parameters()
			declares := b.c.algorithm.Outline().Declares
			if declares == (method == "client" || strings.Contains(method, "mocha")) {
				t.Fatalf("releases declare something beside the model: %v", declares)
			}
			// A model of one value, then, if anything is declared, weight, cluster, variance and steps.
			release := func(value, weight, variance float64) []float64 {
				out := make([]float64, n)
				for i := range out {
					out[i] = value
				}
				if !declares {
					return out
				}
				return append(out, weight, 0, variance, 1)
			}
			bad := map[string][]float64{"a model of 1e300": release(1e300, 1, 1)}
			model, beside := b.c.bounds[0], fl.Bound{}
			if declares {
				beside = b.c.bounds[1]
				bad["a weight of 1e300"], bad["a variance of 1e300"] = release(1, 1e300, 1), release(1, 1, 1e300)
				bad["a variance of 1e-300"], bad["a weight of 1e-300"] = release(1, 1, 1e-300), release(1, 1e-300, 1)
			}
			for what, values := range bad {
				if _, err := b.send("north", 0, values...); transfer.ReasonOf(err) != transfer.ReasonMalformed {
					t.Errorf("%s: %v; want malformed", what, err)
				}
			}
			for round := range int64(3) {
				b.work("west")
				b.mustSend("north", round, release(model.Most, math.MaxInt32, beside.Least)...)
				b.mustSend("south", round, release(-model.Most, beside.Least, beside.Most)...)
				b.mustSend("west", round, release(0.5, 1, 1)...)
			}
			if w := b.work("south"); w.Round != 3 {
				t.Errorf("after releases at the bounds comes round %d, want 4", w.Round+1)
			}
			for round := range 3 {
				if r, err := b.store.Round(t.Context(), b.plan.Run, round); err != nil || r.Status != store.RoundClosed {
					t.Errorf("round %d is %q: %s (%v)", round+1, r.Status, r.Reason, err)
				}
			}
		})
	}
}
