package theory

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Max(math.Abs(want), 1e-300)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// The settings of the authors' script for figure 1.7.
var figure17 = Equal{Silos: 20, Examples: 200, Deviation: 0.4, Spread: 0.08, Noise: 14.567}

func anyEqual(t *rapid.T) Equal {
	size := rapid.Float64Range(-3, 3)
	return Equal{
		Silos: rapid.IntRange(1, 200).Draw(t, "silos"), Examples: rapid.IntRange(1, 5000).Draw(t, "examples"),
		Deviation: math.Exp(size.Draw(t, "sigma")), Spread: math.Exp(size.Draw(t, "tau")), Noise: math.Exp(size.Draw(t, "noise")),
	}
}

func close(t *rapid.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*math.Abs(want)+1e-15) {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}

// TestClosedForms holds every printed formula of section 1.6 against the one it
// follows from.
func TestClosedForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyEqual(t)
		k, n, v, tau2 := float64(f.Silos), float64(f.Examples), f.LocalVariance(), f.Spread*f.Spread
		lambda := math.Exp(rapid.Float64Range(-8, 8).Draw(t, "lambda"))

		close(t, "1.9", v, f.Deviation*f.Deviation/n+f.Noise*f.Noise/n/n)
		close(t, "1.8", f.Weight(lambda), (k+lambda)/((1+lambda)*k))
		own, variance := f.Posterior()
		if f.Silos > 1 {
			close(t, "1.10, variance", variance, 1/(1/v+(k-1)/(k*tau2+v)))
			close(t, "1.10, own share", own, variance/v)
			close(t, "1.10, others' share", 1-own, variance*(k-1)/(k*tau2+v))
		}
		close(t, "1.11", f.BestLambda(), (f.Deviation*f.Deviation+f.Noise*f.Noise/n)/(n*tau2))
		close(t, "D.15", f.Weight(f.BestLambda()), own)
		close(t, "1.12", f.BestError(), variance)
		close(t, "1.13", f.BestError()+f.GapToLocal(), f.LocalError())
		close(t, "1.14", f.BestError()+f.GapToAverage(), f.AverageError())
		close(t, "1.15", f.Error(lambda), (1-1/k)*(v+lambda*lambda*tau2)/(lambda+1)/(lambda+1)+v/k)
		close(t, "lambda 0", f.Error(0), f.LocalError())
		close(t, "lambda infinite", f.Error(math.Inf(1)), f.AverageError())
		close(t, "lambda best", f.Error(f.BestLambda()), f.BestError())
		if f.Error(lambda) < f.BestError()*(1-1e-12) {
			t.Fatalf("lambda %v beats the best one", lambda)
		}
		without := f
		without.Noise = 0
		close(t, "1.16", without.Error(lambda)+f.PrivacyCost(lambda), f.Error(lambda))
		close(t, "factor K", f.PrivacyCost(0)/f.PrivacyCost(math.Inf(1)), k)
	})
}

// TestDifferentSilos checks D.5: no other lambda does better for a silo, and
// equal silos give back section 1.6.
func TestDifferentSilos(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := anyEqual(t)
		f := Different{Spread: one.Spread}
		for range one.Silos%7 + 2 {
			e := anyEqual(t)
			f.Silos = append(f.Silos, Silo{e.Examples, e.Deviation, e.Noise})
		}
		for k := range f.Silos {
			best := f.BestLambda(k)
			least := f.Error(k, best)
			own, variance := f.Posterior(k)
			if math.IsInf(best, 1) {
				if own > 1/float64(len(f.Silos))*(1+1e-9) {
					t.Fatalf("silo %d falls back to the average at a share of %v", k, own)
				}
			} else {
				close(t, "D.31", weight(len(f.Silos), best), own)
				close(t, "error at the best lambda", least, variance)
			}
			for _, other := range Range(1e-4, 1e4, 30) {
				if f.Error(k, other) < least*(1-1e-9) {
					t.Fatalf("silo %d: lambda %v has error %v, the best one, %v, has %v", k, other, f.Error(k, other), best, least)
				}
			}
		}
		if one.Silos > 1 {
			close(t, "equal silos", one.Each().BestLambda(one.Silos-1), one.BestLambda())
		}
	})
}

func TestANoisySiloFallsBackToTheAverage(t *testing.T) {
	f := Different{Silos: []Silo{{10, 1, 1000}, {100, 1, 0}, {100, 1, 0}}, Spread: 0.1}
	if got := f.BestLambda(0); !math.IsInf(got, 1) {
		t.Errorf("the noisy silo's lambda is %v, want infinity", got)
	}
	if got := f.BestLambda(1); !(got > 0 && got < 1) {
		t.Errorf("a quiet silo's lambda is %v, want a small one: the average holds the noisy silo", got)
	}
}

// deviation is the largest distance of the points from the closed form, in
// standard errors.
func deviation(points []Point, want func(lambda float64) float64) float64 {
	worst := 0.0
	for _, p := range points {
		worst = math.Max(worst, math.Abs(p.Error-want(p.Lambda))/p.StandardError)
	}
	return worst
}

// TestSimulationAgrees: within 4 standard errors over the whole range of lambda.
// The seed is fixed; over seeds a false alarm would come about once in 5000 runs,
// the points of one run being nearly one draw. The planted errors are of 2 %.
func TestSimulationAgrees(t *testing.T) {
	for _, f := range []Equal{figure17, {5, 20, 1, 2, 0}, {5, 20, 1, 0.5, 4}, {2, 10, 1, 0, 3}, {1, 10, 1, 1, 1}, {40, 50, 0.1, 0.3, 1}} {
		s := Simulation{Federation: f.Each(), Centre: 0.7, Lambdas: Range(1e-3, 1e2, 21), Repetitions: 4000, Seed: 1}
		points, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		if d := deviation(points, f.Error); d > 4 {
			t.Errorf("%+v: %.1f standard errors from the closed form", f, d)
		}
		if f != figure17 {
			continue
		}
		if d := deviation(points, func(l float64) float64 { return 1.02 * f.Error(l) }); d < 4 {
			t.Errorf("an error of 2 %% was not seen: %.1f standard errors", d)
		}
		wrong := f // the noise's share taken with n instead of n^2
		if d := deviation(points, func(l float64) float64 {
			return wrong.Error(l) + wrong.PrivacyCost(l)*float64(f.Examples-1)
		}); d < 100 {
			t.Errorf("noise over n instead of n^2 was not seen: %.1f standard errors", d)
		}
	}
}

func TestSimulationOfDifferentSilosAgrees(t *testing.T) {
	f := Different{Silos: []Silo{{10, 1, 2}, {100, 1, 5}, {40, 3, 0}, {7, 0.5, 20}}, Spread: 0.6}
	s := Simulation{Federation: f, Lambdas: Range(1e-2, 1e2, 9), Repetitions: 20_000, Seed: 2}
	points, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		for k := range f.Silos {
			// 4.9 standard errors: once in a million for each of 44 figures.
			if d := math.Abs(p.Silos[k]-f.Error(k, p.Lambda)) / p.SiloStandardErrors[k]; d > 4.9 {
				t.Errorf("silo %d at lambda %v: %.1f standard errors from the closed form", k, p.Lambda, d)
			}
		}
	}
}

// TestClippingBiases: the formulas assume that the clip touches nothing.
func TestClippingBiases(t *testing.T) {
	f := Equal{Silos: 10, Examples: 400, Deviation: 1, Spread: 0.1}
	s := Simulation{Federation: f.Each(), Centre: 0.5, Clip: 0.8, Lambdas: []float64{0}, Repetitions: 500, Seed: 1}
	points, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	if points[0].Error < 10*f.Error(0) {
		t.Errorf("clipping far below the data left an error of %v, the closed form without it is %v", points[0].Error, f.Error(0))
	}
}

func TestRefusals(t *testing.T) {
	for name, f := range map[string]Equal{
		"no silos": {0, 10, 1, 1, 1}, "no examples": {5, 0, 1, 1, 1}, "sigma": {5, 10, math.NaN(), 1, 1},
		"tau": {5, 10, 1, -1, 1}, "noise": {5, 10, 1, 1, math.Inf(1)},
	} {
		if err := f.Validate(); !errors.Is(err, ErrRange) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := (Simulation{Federation: f.Each(), Lambdas: []float64{1}, Repetitions: 10}).Run(); !errors.Is(err, ErrRange) {
			t.Errorf("simulation, %s: %v", name, err)
		}
	}
	if _, err := (Simulation{Federation: figure17.Each(), Lambdas: []float64{math.NaN()}, Repetitions: 10}).Run(); !errors.Is(err, ErrRange) {
		t.Errorf("lambda: %v", err)
	}
}

// Posterior is a silo's centre given its own estimate and the mean of the others':
// own times the one and 1-own times the other, with this variance (lemma 1.6.2).
func (f Equal) Posterior() (own, variance float64) { return f.Each().Posterior(0) }

// Posterior is silo k's centre given its own estimate and the mean of the others':
// own times the one and 1-own times the other, with this variance (lemma D.5.1).
func (f Different) Posterior(k int) (own, variance float64) {
	local := f.Silos[k].Variance()
	if len(f.Silos) == 1 {
		return 1, local
	}
	others := f.others(k)
	if local+others == 0 {
		return 1, 0
	}
	own = others / (local + others)
	return own, own * local
}
