package whatif

import (
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

var terms = account.Terms{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved}

func poisson(noise, rate float64, steps int64) account.Training {
	return account.Training{Terms: terms, Trust: event.TrustLocal, Sampling: event.Poisson, Noise: noise, Rate: rate, Steps: steps}
}

// Whatever is solved for, the plan that comes out costs what the answer says, and no more
// than the target.
func TestTrainingSolves(t *testing.T) {
	by := By{Delta: 1e-5, Method: account.MethodRDP}
	for solve, plan := range map[Unknown]account.Training{
		Noise: poisson(0, 0.01, 1000), Length: poisson(1, 0.01, 0), Rate: poisson(1, 0, 1000),
	} {
		a, err := Training{By: by, Plan: plan, Solve: solve, Target: 2}.Answer()
		if err != nil {
			t.Fatalf("%s: %v", solve, err)
		}
		solved := poisson(a.Own["noise"].(float64), a.Own["rate"].(float64), a.Own["steps"].(int64))
		again, err := Training{By: by, Plan: solved, Solve: Epsilon}.Answer()
		if err != nil || again.Cost.Epsilon != a.Cost.Epsilon || a.Cost.Epsilon > 2 || a.Cost.Epsilon < 1.98 {
			t.Errorf("%s: epsilon %v, asked again %v (%v)", solve, a.Cost.Epsilon, again.Cost.Epsilon, err)
		}
		if len(a.Lines) != 1 || len(again.Lines) != 0 {
			t.Errorf("%s says %v, then %v", solve, a.Lines, again.Lines)
		}
	}
}

// A target that not one step keeps is answered with the noise that would do.
func TestNotOneStep(t *testing.T) {
	a, err := Training{By: By{Delta: 1e-5, Method: account.MethodRDP}, Plan: poisson(1, 0.5, 0), Solve: Length, Target: 0.01}.Answer()
	if err != nil || a.Own["steps"] != int64(0) || len(a.Lines) != 1 || !strings.Contains(a.Lines[0], "would do for one") {
		t.Errorf("%+v, %v", a, err)
	}
}

// Sizes that rate and length come from are named as not covered, of Poisson samples.
func TestSizesAreNotCovered(t *testing.T) {
	for _, sized := range []bool{true, false} {
		a, err := Training{By: By{Delta: 1e-5, Method: account.MethodRDP}, Plan: poisson(1, 0.01, 10), Solve: Epsilon, Sized: sized}.Answer()
		if err != nil || strings.Contains(a.Cost.Sentence(), account.SizeNotCovered) != sized {
			t.Errorf("sized %v: %s, %v", sized, a.Cost.Sentence(), err)
		}
	}
}

// Exact noise costs more than continuous noise, and is charged where it is asked for.
func TestSpendByLattice(t *testing.T) {
	r := event.Release{Unit: terms.Unit, Relation: terms.Relation, Claim: terms.Claim, Trust: event.TrustLocal, What: Steps{Noise: 1, Rate: 0.01, Times: 100}.Event()}
	by := By{Delta: 1e-5, Method: account.MethodRDP}
	plain, err := by.Spend(r)
	if err != nil {
		t.Fatal(err)
	}
	by.Lattice = &account.Lattice{Coordinates: 100}
	if exact, err := by.Spend(r); err != nil || !(exact.Epsilon > plain.Epsilon) {
		t.Errorf("exact %v, continuous %v, %v", exact.Epsilon, plain.Epsilon, err)
	}
}

// A tuning costs more than one run, which is told beside it with its terms.
func TestTuningTellsOneRun(t *testing.T) {
	q := Tuning{By: By{Delta: 1e-5, Method: account.MethodRDP}, Terms: terms, Run: Steps{Noise: 5, Rate: 1, Times: 1},
		Trials: event.Tuning{Distribution: event.TruncatedNegativeBinomial, Mean: 10}}
	a, err := q.Answer()
	if err != nil {
		t.Fatal(err)
	}
	one := float64(a.Own["base_epsilon"].(event.Number))
	if !(one < a.Cost.Epsilon) || !strings.Contains(a.Lines[0], "relation add-remove") {
		t.Errorf("one run %v, tuned %v, says %v", one, a.Cost.Epsilon, a.Lines)
	}
	q.Run.Noise = -1
	if _, err := q.Answer(); err == nil {
		t.Error("negative noise was priced")
	}
}

func TestFieldsHoldBoth(t *testing.T) {
	a, err := Metric(account.MetricPlan{Dimension: 2, NoiseMultiplier: 5, Releases: 6, Radius: 0.5, Distance: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	if f := a.Fields(); f["claim"] != event.ClaimMetric || f["epsilon_per_release"] != event.Number(0.4) || f["releases"] != int64(6) {
		t.Errorf("%v", f)
	}
}

// A plan that is solved for is told in its own sampling's words: no rate but of Poisson
// samples, and epochs of shuffled batches.
func TestPlansAreToldBySampling(t *testing.T) {
	by := By{Delta: 1e-5, Method: account.MethodRDP}
	for sampling, c := range map[event.Sampling]struct {
		relation event.Relation
		want     []string
	}{
		event.Poisson:            {event.AddRemove, []string{", rate 0.01, steps 10"}},
		event.Shuffle:            {event.AddRemove, []string{", batch 5, examples 500, epochs 10", "the papers' reading"}},
		event.WithoutReplacement: {event.ReplaceOne, []string{", batch 5, examples 500, steps 10"}},
	} {
		plan := account.Training{
			Terms: account.Terms{Unit: terms.Unit, Relation: c.relation, Claim: terms.Claim}, Trust: event.TrustLocal,
			Sampling: sampling, Steps: 10,
		}
		if sampling == event.Poisson {
			plan.Rate = 0.01
		} else {
			plan.Batch, plan.Examples = 5, 500
		}
		a, err := Training{By: by, Plan: plan, Solve: Noise, Target: 2}.Answer()
		if err != nil {
			t.Fatalf("%s: %v", sampling, err)
		}
		for i, want := range c.want {
			if len(a.Lines) != len(c.want) || !strings.Contains(a.Lines[i], want) || sampling != event.Poisson && strings.Contains(a.Lines[0], "rate") {
				t.Errorf("%s: %q, want %q", sampling, a.Lines, want)
			}
		}
		plan.Steps, plan.Noise = 0, 1
		none, err := Training{By: by, Plan: plan, Solve: Length, Target: 0.02}.Answer()
		if err != nil {
			t.Fatalf("%s: %v", sampling, err)
		}
		if line := none.Lines[0]; (sampling == event.Poisson) != strings.Contains(line, "at rate 0.01") || (sampling == event.Shuffle) != strings.HasPrefix(line, "epochs 0: one epoch") {
			t.Errorf("%s: %q", sampling, line)
		}
	}
}
