package protect

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
	"github.com/coterie-fl/coterie/model"
)

// drawingRuns are all methods for silos that draw noise at the silo, in both modes.
func drawingRuns() map[string]config.Run {
	out := map[string]config.Run{}
	for _, kind := range fltest.PersonalMethods {
		run := fltest.Run(kind)
		if kind == "ifca" {
			run.Algorithm.Hypotheses = 2
		}
		out[kind+", paper"] = run
		run.Algorithm.Mode, run.Algorithm.Weights, run.Privacy.Relation, run.Data.Standardise = "sound", "equal", "replace-one", "none"
		out[kind+", replace-one"] = run
		run.Privacy.Relation, run.Privacy.PublicSize = "add-remove", 30
		out[kind+", add-remove"] = run
		run.Privacy.Noise = "exact"
		out[kind+", exact"] = run
	}
	for _, relation := range bothRelations {
		out["paid moments, "+relation] = paidRun("mr-mtl", relation, 3)
	}
	return out
}

// respondWith is Respond with a guard that can be looked into afterwards.
func respondWith(t *testing.T, a *fl.Algorithm, w *fl.Worker, b fl.Broadcast, p *fl.Participant, out []float64) *exampleGuard {
	t.Helper()
	g, err := a.Protection().Guard()
	if err != nil {
		t.Fatal(err)
	}
	open, err := g.Open(&b, p)
	if err != nil || !open {
		t.Fatal(open, err)
	}
	if released, err := a.Method().Respond(g, w, &b, p, out); err != nil || !released {
		t.Fatalf("released %v, %v", released, err)
	}
	return g.(*exampleGuard)
}

// TestEveryRoundDrawsWhatItPaysFor: exactly as many steps, choices and moments as the
// purse was charged for, in every round of every method. (One more is refused when it
// is drawn.)
func TestEveryRoundDrawsWhatItPaysFor(t *testing.T) {
	train, _ := fltest.Silos(2, 40, fltest.Features, 0.2)
	for name, run := range drawingRuns() {
		s := fltest.New(t, run, 2)
		purse := &fltest.Purse{}
		p := &fl.Participant{Data: &train[0], Purse: purse}
		if err := s.Prepare(p); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		st, w, out := s.Start(), new(fl.Worker), make([]float64, s.ReleaseLength())
		for round := range 4 {
			b, err := s.Broadcast(st)
			if err != nil {
				t.Fatal(err)
			}
			g := respondWith(t, s, w, b, p, out)
			if left := g.paid.Left(); left != 0 || len(purse.Asked) != round+1 {
				t.Errorf("%s, round %d: %d draws were paid for and not made; paid %d times", name, round+1, left, len(purse.Asked))
			}
			st.Round++
		}
	}
}

// TestBlankAnswersSayNothing: with the same randomness, what a silo releases without
// counting its examples is the same for any examples, it costs as much as any other
// release, and it is of the same length.
func TestBlankAnswersSayNothing(t *testing.T) {
	train, _ := fltest.Silos(2, 40, fltest.Features, 5)
	for name, run := range drawingRuns() {
		if run.Privacy.Noise == "exact" {
			run.Privacy.Noise = fl.NoiseSeeded
		}
		var outs [2][]float64
		var prices [2]string
		for i := range 2 {
			s := fltest.New(t, run, 2)
			purse := &fltest.Purse{}
			p := &fl.Participant{Data: &train[i], Purse: purse, Blank: true}
			if err := s.Prepare(p); err != nil {
				t.Fatal(err)
			}
			b, err := s.Broadcast(s.Start())
			if err != nil {
				t.Fatal(err)
			}
			outs[i] = make([]float64, s.ReleaseLength())
			if g := respondWith(t, s, new(fl.Worker), b, p, outs[i]); g.paid.Left() != 0 {
				t.Fatalf("%s: %d left", name, g.paid.Left())
			}
			prices[i] = fmt.Sprint(purse.Asked)
			full := &fl.Participant{Data: &train[i], Purse: &fltest.Purse{}}
			if err := s.Prepare(full); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Respond(new(fl.Worker), b, full, make([]float64, s.ReleaseLength())); err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(full.Purse.(*fltest.Purse).Asked) != prices[i] {
				t.Errorf("%s: another price", name)
			}
		}
		if !slices.Equal(outs[0], outs[1]) || prices[0] != prices[1] {
			t.Errorf("%s: %v and %v at %s and %s", name, outs[0], outs[1], prices[0], prices[1])
		}
	}
}

// TestUncoveredRowsAreNotProved: what is done to rows before the mechanism sees them,
// and is not paid for, withholds the claim, in sound mode and beside paper mode's.
func TestUncoveredRowsAreNotProved(t *testing.T) {
	train, _ := fltest.Silos(1, 40, fltest.Features, 0.2)
	for name, run := range drawingRuns() {
		for _, uncovered := range [][]string{nil, {"standardisation"}} {
			s := fltest.New(t, run, 1)
			purse := &fltest.Purse{}
			p := &fl.Participant{Data: &train[0], Purse: purse, Uncovered: uncovered}
			if err := s.Prepare(p); err != nil {
				t.Fatal(err)
			}
			b, err := s.Broadcast(s.Start())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Respond(new(fl.Worker), b, p, make([]float64, s.ReleaseLength())); err != nil {
				t.Fatal(err)
			}
			spent, proved, err := p.Plan.Spend(p.Paid)
			if err != nil {
				t.Fatal(err)
			}
			any := spent.Claim == event.ClaimProved || proved != nil || purse.Asked[0].Claim == event.ClaimProved
			if any != (uncovered == nil) {
				t.Errorf("%s, uncovered %v: claim %s, paid as %s, proved beside it: %v", name, uncovered, spent.Claim, purse.Asked[0].Claim, proved != nil)
			}
		}
	}
}

// TestUnpaidChoicesAreNotProved: a cluster that is chosen by examples, and not paid for,
// withholds the claim in both modes; one that follows from one's own last release, or
// is paid for, does not.
func TestUnpaidChoicesAreNotProved(t *testing.T) {
	train, _ := fltest.Silos(2, 40, fltest.Features, 0.2)
	for _, mode := range []string{"paper", "sound"} {
		for rule, covered := range map[string]bool{"best": false, "nearest": true, "private": true} {
			run := fltest.Run("ifca")
			run.Algorithm.Hypotheses, run.Algorithm.Selection.Rule = 2, rule
			if mode == "sound" {
				run.Algorithm.Mode, run.Privacy.Relation, run.Data.Standardise = mode, "replace-one", "none"
			}
			_, ps, _ := fltest.Federate(t, run, train)
			spent, proved, err := ps[0].Plan.Spend(ps[0].Paid)
			if err != nil {
				t.Fatal(err)
			}
			if (spent.Claim == event.ClaimProved || proved != nil) != covered {
				t.Errorf("%s, chosen by the rule %s: claim %s, proved beside it: %v", mode, rule, spent.Claim, proved != nil)
			}
		}
	}
}

// TestNonFiniteRowsCountAsZeroInASilo: a row that overflows at the broadcast's model
// changes nothing but itself: with the same randomness the release is that of the
// silo whose row says nothing.
func TestNonFiniteRowsCountAsZeroInASilo(t *testing.T) {
	run := fltest.Run("fedavg")
	run.Algorithm.Mode, run.Algorithm.Weights, run.Privacy.Relation, run.Privacy.PublicSize = "sound", "equal", "add-remove", 30
	run.Data.Standardise, run.Privacy.Noise, run.Algorithm.Local.Batch = "none", fl.NoiseSeeded, 30 // every row in every batch
	train, _ := fltest.Silos(1, 30, fltest.Features, 0.2)
	release := func(x float64) []float64 {
		rows := train[0].Rows
		rows.X = slices.Clone(rows.X)
		for j := range fltest.Features {
			rows.X[7*fltest.Features+j] = x
		}
		s := fltest.New(t, run, 1)
		p := &fl.Participant{Data: &data.Client{Rows: rows}, Purse: &fltest.Purse{}}
		if err := s.Prepare(p); err != nil {
			t.Fatal(err)
		}
		b, err := s.Broadcast(s.Start())
		if err != nil {
			t.Fatal(err)
		}
		for j := range b.Hypotheses {
			b.Hypotheses[j] = 1e9
		}
		out := make([]float64, s.ReleaseLength())
		released, err := s.Respond(new(fl.Worker), b, p, out)
		if !released || err != nil || p.Mishap != nil {
			t.Fatalf("x of %v: released %v, %v, %v", x, released, err, p.Mishap)
		}
		return out
	}
	// The output at 1e305 is infinite; at 0 only the intercept has a gradient.
	huge, zero := release(1e305), release(0)
	apart := 0.0
	for j := range huge {
		apart += (huge[j] - zero[j]) * (huge[j] - zero[j])
	}
	most := run.Algorithm.Local.Step * run.Privacy.Clip / 30
	if apart = math.Sqrt(apart); !(apart <= most*(1+1e-6)) || apart == 0 {
		t.Errorf("one row moves a step by %v; the clip allows %v", apart, most)
	}
}

// watched is a model whose learner writes down which rows every step takes.
type watched struct {
	model.Model
	batches *[]string
}

func (w watched) Learner() (model.Learner, error) {
	l, err := w.Model.Learner()
	return watchedLearner{l, w.batches}, err
}

type watchedLearner struct {
	model.Learner
	batches *[]string
}

func (l watchedLearner) Gradient(dst, theta []float64, c *data.Client, batch []int, s *model.Step) error {
	*l.batches = append(*l.batches, fmt.Sprint(batch))
	return l.Learner.Gradient(dst, theta, c, batch, s)
}

func (l watchedLearner) Train(theta []float64, c *data.Client, p *model.Pass) error {
	return p.Descend(l, theta, c)
}

// TestBatchesAreSecret: with noise that is to protect somebody, who is in a batch does
// not follow from the run file, which the server knows: amplification would be gone.
// Two draws of ten of forty rows are the same once in 10^9 times a step.
func TestBatchesAreSecret(t *testing.T) {
	train, _ := fltest.Silos(1, 40, fltest.Features, 0.2)
	for _, relation := range bothRelations {
		for _, noise := range []string{"exact", fl.NoiseSeeded, "simulated"} {
			run := fltest.Run("fedavg")
			run.Algorithm.Mode, run.Algorithm.Weights, run.Privacy.Relation, run.Data.Standardise = "sound", "equal", relation, "none"
			run.Privacy.Noise, run.Algorithm.Local.Epochs = noise, 3
			if relation == "add-remove" {
				run.Privacy.PublicSize = 40
			}
			var seen [2][]string
			for i := range seen {
				m := watched{fltest.Linear, &seen[i]}
				s, err := fl.New(run, m, 1)
				if err != nil {
					t.Fatal(err)
				}
				p := &fl.Participant{Data: &train[0]}
				if err := s.Prepare(p); err != nil {
					t.Fatal(err)
				}
				b, err := s.Broadcast(s.Start())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Respond(new(fl.Worker), b, p, make([]float64, s.ReleaseLength())); err != nil {
					t.Fatal(err)
				}
			}
			same := slices.Equal(seen[0], seen[1])
			if len(seen[0]) < 12 || same != (noise != "exact") {
				t.Errorf("%s, %s: %d steps, drawn again the same: %v", relation, noise, len(seen[0]), same)
			}
		}
	}
}

// TestARowLimitNeedsAPublicSize: under add-remove a row less would let another one in.
func TestARowLimitNeedsAPublicSize(t *testing.T) {
	for _, relation := range bothRelations {
		run := paidRun("mr-mtl", relation, 3)
		run.Data.TrainLimit = 10
		faults := fl.Check(run)
		if refused := faults != nil && strings.Contains(faults.Error(), "data.train_limit"); refused != (relation == "add-remove") {
			t.Errorf("%s: %v", relation, faults)
		}
	}
}
