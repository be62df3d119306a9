package theory

import (
	"errors"
	"math"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

var target17 = Target{Clip: 1, Epsilon: 0.25, Delta: 1e-5, Relation: event.AddRemove, Calibration: ByRDP}

// TestNoiseOfTheAuthors: golden/cross_silo_and_node.json, base_noise and
// tnb_tuning, from their code on TF-Privacy 0.7.3. Their list of orders is coarser
// than ours, so ours may only be less, and not by much.
func TestNoiseOfTheAuthors(t *testing.T) {
	check := func(what string, got, theirs float64) {
		t.Helper()
		if got > theirs*(1+1e-6) || got < theirs*0.97 {
			t.Errorf("%s: noise %v, the authors' %v", what, got, theirs)
		}
	}
	noise, g, err := target17.Noise()
	if err != nil {
		t.Fatal(err)
	}
	check("one release", noise, 14.56699350005036)
	if g.Epsilon > 0.25 || g.Epsilon < 0.2499 {
		t.Errorf("the noise costs %v, want 0.25 or just below", g.Epsilon)
	}
	for eta, theirs := range map[float64]float64{-0.5: 23.785441513752577, 0: 27.044778963301937, 0.5: 30.188340986736755} {
		trials, err := NegativeBinomialTrials(eta, 10)
		if err != nil {
			t.Fatal(err)
		}
		noise, g, err := target17.TunedNoise(trials, false)
		if err != nil {
			t.Fatal(err)
		}
		check("tuned", noise, theirs)
		if g.Epsilon > 0.25 {
			t.Errorf("eta %v: the tuned noise costs %v, above its target", eta, g.Epsilon)
		}
		if more, _, err := target17.TunedNoise(trials, true); err != nil || more <= noise {
			t.Errorf("eta %v: the pivot costs nothing: noise %v with it, %v without: %v", eta, more, noise, err)
		}
	}
}

func TestCalibrations(t *testing.T) {
	noise := map[Calibration]float64{}
	for _, c := range []Calibration{ByRDP, ByAnalytic, ByFormula} {
		target := target17
		target.Calibration = c
		s, g, err := target.Noise()
		if err != nil {
			t.Fatal(err)
		}
		noise[c] = s
		if g.Epsilon > 0.25*(1+1e-9) || g.Claim != event.ClaimProved || len(g.NotCovered) < 3 {
			t.Errorf("%s: %+v", c, g)
		}
		target.Relation = event.ReplaceOne
		if twice, _, err := target.Noise(); err != nil || math.Abs(twice/s-2) > 1e-6 {
			t.Errorf("%s: noise %v under replace-one, %v under add-remove: %v", c, twice, s, err)
		}
	}
	if !(noise[ByAnalytic] < noise[ByRDP] && noise[ByRDP] < noise[ByFormula]) {
		t.Errorf("%v: want analytic < rdp < classical", noise)
	}
	// Above epsilon 1 the classical formula's promise no longer holds: what is
	// reported must be what it costs.
	wide := Target{Clip: 1, Epsilon: 20, Delta: 1e-5, Relation: event.AddRemove, Calibration: ByFormula}
	if _, g, err := wide.Noise(); err != nil || g.Epsilon <= 20 {
		t.Errorf("the classical formula at epsilon 20 is said to cost %v: %v", g.Epsilon, err)
	}
}

func TestNoNoise(t *testing.T) {
	target := target17
	target.Epsilon = math.Inf(1)
	s, g, err := target.Noise()
	if err != nil || s != 0 || g.Claim != event.ClaimNone || !math.IsInf(g.Epsilon, 1) {
		t.Errorf("noise %v, %+v, %v", s, g, err)
	}
}

func TestTargetsRefused(t *testing.T) {
	for name, change := range map[string]func(*Target){
		"clip": func(t *Target) { t.Clip = 0 }, "epsilon": func(t *Target) { t.Epsilon = -1 }, "delta": func(t *Target) { t.Delta = 1 }, "tiny delta": func(t *Target) { t.Delta = 1e-320 },
		"relation": func(t *Target) { t.Relation = event.Metric }, "calibration": func(t *Target) { t.Calibration = "guess" },
	} {
		target := target17
		change(&target)
		if _, _, err := target.Noise(); !errors.Is(err, ErrRange) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTuningCanBeWorseThanNone is figure 1.7 at the authors' settings: with little
// or much spread the best lambda under charged tuning loses against one of the two
// endpoints without tuning, at every eta; in between it loses at eta 5 and gains
// less than half of what free tuning would at eta -0.5.
func TestTuningCanBeWorseThanNone(t *testing.T) {
	for _, tau := range []float64{0.03, 0.08, 0.2} {
		f := figure17
		f.Spread = tau
		for _, eta := range []float64{-0.5, 0, 0.5, 1, 2, 5} {
			got, err := Tune(f, target17, event.TruncatedNegativeBinomial, eta, 10, false)
			if err != nil {
				t.Fatal(err)
			}
			if pays := tau == 0.08 && eta <= 0.5; got.Pays() != pays {
				t.Errorf("tau %v, eta %v: pays %v, want %v", tau, eta, got.Pays(), pays)
			}
			if got.Expected < got.Best {
				t.Errorf("tau %v, eta %v: random lambdas do better than the best", tau, eta)
			}
			if gain, free := got.Untuned-got.Best, got.Untuned-f.BestError(); tau == 0.08 && gain > free/2 {
				t.Errorf("eta %v: tuning gains %v of %v", eta, gain, free)
			}
		}
	}
	if _, err := Tune(figure17, target17, "naive", 0, 10, false); !errors.Is(err, ErrRange) {
		t.Errorf("a distribution that is none: %v", err)
	}
}
