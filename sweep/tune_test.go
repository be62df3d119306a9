package sweep

import (
	"context"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
)

func tuned(t *testing.T, p *Plan, o Options) Tuned {
	t.Helper()
	r, err := p.Tune(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTunedKeepsTheTarget(t *testing.T) {
	folder := schools(t)
	for _, mode := range []string{"paper", "scaled", "sound"} {
		run := schoolRun // scaled by every school's own rows: nothing is proved
		switch mode {
		case "paper":
			run = strings.Replace(run, "kind: school", "kind: school, standardise: none", 1)
		case "sound":
			run = strings.Replace(run, "accounting: paper", "accounting: sound", 1)
		}
		r := tuned(t, loaded(t, run, charged), options(t, folder))
		if r.Tuning != "charged" || len(r.Silos) != 6 || r.Metric != "loss" || !(r.Test > 0) {
			t.Errorf("%s: %+v", mode, r)
		}
		want := map[string]event.Claim{"paper": event.ClaimHeuristic, "scaled": event.ClaimHeuristic, "sound": event.ClaimProved}[mode]
		for _, s := range r.Silos {
			if s.Epsilon > 6 || s.Epsilon < 5.99 || s.Delta != 0.001 || s.Claim != want {
				t.Errorf("%s: silo %s: %+v", mode, s.Name, s)
			}
			if (s.Proved != nil) != (mode == "paper") || s.Proved != nil && *s.Proved <= s.Epsilon {
				t.Errorf("%s: silo %s: proved %v", mode, s.Name, s.Proved)
			}
		}
		// One run costs less than its tuning, at whose noise the grid's six are priced, too.
		one, grid, random := r.Prices[0], r.Prices[1], r.Prices[2]
		if !(one.Privacy.Epsilon < 4) || !(grid.Privacy.Epsilon > one.Privacy.Epsilon) || random.Privacy.Epsilon != r.Privacy.Epsilon || grid.Runs != 6 || !random.Pivot {
			t.Errorf("%s: prices %+v", mode, r.Prices)
		}
		if !(*one.Noise < *random.Noise && *one.Noise < *grid.Noise) || (grid.Proved != nil) != (mode == "paper") {
			t.Errorf("%s: noises %v, %v, %v, proved %v", mode, *one.Noise, *grid.Noise, *random.Noise, grid.Proved)
		}
		if !slices.ContainsFunc(r.Privacy.NotCovered, func(s string) bool { return strings.Contains(s, "number of trials") }) {
			t.Errorf("%s: not covered: %v", mode, r.Privacy.NotCovered)
		}
	}
}

// TestTheBill holds the price against the events of docs/proofs/tuning.md, written
// out by hand, and shows that leaving any part out would be cheaper.
func TestTheBill(t *testing.T) {
	p := loaded(t, strings.Replace(schoolRun, "accounting: paper", "accounting: sound", 1), charged)
	tn, err := newTuner(t.Context(), p, options(t, schools(t)), new(atomic.Bool))
	if err != nil {
		t.Fatal(err)
	}
	defer tn.pivot.Close()
	if err := tn.price(); err != nil {
		t.Fatal(err)
	}
	silo := tn.pivot.Participants[0]
	noise := silo.Plan.Noise
	// About 40 of 50 pupils train, in batches of 10: the same steps in each of 12 rounds.
	pupils := int64(silo.Data.Len())
	run := 12 * (pupils / 10)
	if pupils < 30 || pupils == 50 {
		t.Fatalf("%d of 50 pupils train", pupils)
	}
	steps := func(times int64) event.Event {
		return event.Repeated{Times: times, Of: event.Sampled{Sampling: event.WithoutReplacement, Batch: 10, Examples: pupils, Of: event.Gaussian{Noise: noise}}}
	}
	score := event.Gaussian{Noise: 5}
	trial := event.Composed{Parts: []event.Event{steps(run), score}}
	cost := func(parts ...event.Event) float64 {
		g, err := account.Spend(event.Release{
			Unit: event.UnitExample, Relation: event.ReplaceOne, Claim: event.ClaimProved, Trust: event.TrustLocal, What: event.Composed{Parts: parts},
		}, account.MethodRDP, 0.001)
		if err != nil {
			t.Fatal(err)
		}
		return g.Epsilon
	}
	tuning := func(of event.Event) event.Event {
		return event.Tuning{Distribution: event.TruncatedNegativeBinomial, Eta: 0, Gamma: p.Trials.Gamma, Of: of}
	}
	all := cost(steps(run), tuning(trial))
	if got := tn.costs[0].Epsilon; math.Abs(got-all) > 1e-9 {
		t.Errorf("the bill is %v, by hand %v", got, all)
	}
	for what, less := range map[string]float64{
		"the pivot": cost(tuning(trial)), "the score": cost(steps(run), tuning(steps(run))),
		"all trials but one": cost(steps(run), trial), "the trials": cost(steps(run)),
	} {
		if less > all-1e-3 {
			t.Errorf("without %s it costs %v of %v: it was not charged", what, less, all)
		}
	}
}

func TestSeededTuningRepeats(t *testing.T) {
	p, folder := loaded(t, schoolRun, charged), schools(t)
	one, two := options(t, folder), options(t, folder)
	one.Workers = 1
	if a, b := tuned(t, p, one), tuned(t, p, two); !reflect.DeepEqual(a, b) {
		t.Error("one worker and two give different results")
	}
	p.Tuning.Entropy = "system"
	a, b := tuned(t, p, one), tuned(t, p, one)
	same := 0
	for i := range a.Silos {
		if reflect.DeepEqual(a.Silos[i].Score, b.Silos[i].Score) {
			same++
		}
	}
	// Two noised scores are equal with probability 0 in effect.
	if same > 0 {
		t.Errorf("%d of 6 silos have the same score twice: the trials do not come from the system's entropy", same)
	}
}

// TestNoTrialTakesThePublicModel: a Poisson draw of 0 returns what everyone knows.
func TestNoTrialTakesThePublicModel(t *testing.T) {
	p := loaded(t, schoolRun, strings.Replace(charged, "mean_trials: 4", "distribution: poisson\n  mean_trials: 1", 1))
	r := tuned(t, p, options(t, schools(t)))
	var without []float64
	for i, s := range r.Silos {
		if s.Settings != nil {
			continue
		}
		if without != nil && !slices.Equal(without, r.Models[i].Values) {
			t.Error("two silos without a trial hold different models")
		}
		without = r.Models[i].Values
		if s.Score != nil {
			t.Errorf("silo %s has a score without a trial", s.Name)
		}
	}
	if without == nil {
		t.Fatal("with 1 trial on average every silo made one: change the seed")
	}
}

func TestExactNoise(t *testing.T) {
	p := loaded(t, strings.Replace(schoolRun, "clip: 1", "clip: 1, noise: exact", 1), charged, "algorithm.rounds=2")
	r := tuned(t, p, options(t, schools(t)))
	if !(r.Test > 0) || r.Silos[0].Epsilon > 6 {
		t.Errorf("%+v", r)
	}
	// Batches that are accounted as Poisson samples: exact noise is charged at whole
	// Rényi orders, which asks for a little more of it.
	p = loaded(t, schoolRun, charged, "algorithm.rounds=2")
	if s := tuned(t, p, options(t, schools(t))); !(r.Silos[0].Noise > s.Silos[0].Noise) || r.Silos[0].Noise > 1.1*s.Silos[0].Noise {
		t.Errorf("exact noise %v, simulated %v", r.Silos[0].Noise, s.Silos[0].Noise)
	}
}

// TestScore: the noised sum of clipped losses has the right mean and spread. Each
// bound is passed once in a million; a clip or a noise that is off by 10 % is seen.
func TestScore(t *testing.T) {
	p := loaded(t, schoolRun, charged)
	o := options(t, schools(t))
	tn, err := newTuner(t.Context(), p, o, new(atomic.Bool))
	if err != nil {
		t.Fatal(err)
	}
	defer tn.pivot.Close()
	silo := &fl.Participant{ID: 0, Data: &tn.federation.Train[0]}
	theta := make([]float64, tn.model.Parameters())
	losses := make([]float64, silo.Data.Len())
	l, err := tn.model.Learner()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Losses(losses, theta, silo.Data); err != nil {
		t.Fatal(err)
	}
	for _, noise := range []string{"simulated", fl.NoiseSeeded} {
		for _, bound := range []float64{0.05, 0.2} {
			p.Tuning.Score.Bound = bound
			want, spread := 0.0, 5*bound
			for _, l := range losses {
				want += math.Min(l, bound)
			}
			const n = 4000
			run := p.Base
			run.Privacy.Noise = noise
			var sum, squares float64
			for i := range n {
				x, err := tn.benches[0].score(p, run, theta, silo, rng.NewFamily(uint64(i), "score"))
				if err != nil {
					t.Fatal(err)
				}
				sum += x
				squares += (x - want) * (x - want)
			}
			if z := math.Abs(sum/n-want) / (spread / math.Sqrt(n)); z > 4.9 {
				t.Errorf("%s, bound %v: mean %v, want %v: %.1f standard errors", noise, bound, sum/n, want, z)
			}
			// The variance's standard error is sqrt(2/n) of it.
			off := func(sd float64) float64 { return math.Abs(squares/n/(sd*sd)-1) / math.Sqrt(2.0/n) }
			if z := off(spread); z > 5.5 {
				t.Errorf("%s, bound %v: the noise's spread is %.1f standard errors off", noise, bound, z)
			}
			if off(spread*1.1) < 5.5 {
				t.Errorf("%s, bound %v: noise that is 10 %% off was not seen", noise, bound)
			}
		}
	}
}

// TestTrialsFollowThePivot: a trial at the pivot's own setting, with the pivot's own
// seed and no noise to speak of, is the pivot's model again.
func TestTrialsFollowThePivot(t *testing.T) {
	p := loaded(t, schoolRun, strings.Replace(charged, "grid: {algorithm.lambda: [0.1, 1, 10], algorithm.local.step: [0.003, 0.01]}", "grid: {algorithm.lambda: [1, 10]}", 1))
	tn, err := newTuner(t.Context(), p, options(t, schools(t)), new(atomic.Bool))
	if err != nil {
		t.Fatal(err)
	}
	defer tn.pivot.Close()
	if err := tn.price(); err != nil {
		t.Fatal(err)
	}
	if err := tn.pivot.train(p.Base.Algorithm.Rounds); err != nil {
		t.Fatal(err)
	}
	own := make([]float64, tn.model.Parameters())
	tn.pivot.Algorithm.Adopt(own, tn.pivot.end(), &tn.pivot.Participants[2], nil)
	for point, same := range []bool{true, false} {
		got, err := tn.benches[0].attempt(p, &tn.pivot, tn.model, &tn.pivot.Participants[2], point, p.Base.Seed)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(got.theta, own) != same {
			t.Errorf("lambda %s: the trial's model equals the pivot's: %v", p.Points[point].Settings[0].Value, !same)
		}
	}
	if len(tn.pivot.sent) != p.Base.Algorithm.Rounds+1 {
		t.Errorf("%d broadcasts for %d rounds", len(tn.pivot.sent), p.Base.Algorithm.Rounds)
	}
}

func TestWildTrialsDoNotTell(t *testing.T) {
	// A step that throws training out of the finite numbers must not end the sweep.
	p := loaded(t, schoolRun, strings.Replace(charged, "[0.003, 0.01]", "[0.01]", 1))
	for i := range p.Points {
		p.Points[i].Run.Algorithm.Local.Step = 1e200
	}
	r := tuned(t, p, options(t, schools(t)))
	for i, m := range r.Models {
		for _, v := range m.Values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("silo %d holds %v", i, v)
			}
		}
	}
}
