package account

import (
	"math"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// Near eta = -1 gamma is far below the least float64. There the mean is all but
// -eta*gamma^-(1+eta), so that ln(1/gamma) is ln(mean/-eta)/(1+eta).
func TestTuningNearMinusOne(t *testing.T) {
	for _, c := range []struct{ noise, eta, mean, epsilon float64 }{
		{0.3, -0.99, 1e12, 36.659879}, {5, -0.999, 10, 0.9134905}, {5, -0.99, 1e6, 1.4157845},
	} {
		depth := trialsDepth(c.eta, c.mean)
		if want := math.Log(c.mean/-c.eta) / (1 + c.eta); apart(depth, want) > 1e-9 {
			t.Errorf("eta %v mean %v: ln(1/gamma) %v, want %v", c.eta, c.mean, depth, want)
		}
		e := event.Tuning{Distribution: event.TruncatedNegativeBinomial, Eta: c.eta, Mean: c.mean, Of: event.Gaussian{Noise: c.noise}}
		if got, _ := rdpEpsilon(t, exampleTerms, e, 1e-5); apart(got, c.epsilon) > 1e-7 {
			t.Errorf("noise %v eta %v mean %v: epsilon %v, want %v", c.noise, c.eta, c.mean, got, c.epsilon)
		}
	}
}

// Whatever the shape, the mean found is the one asked for; and the same gamma, where it
// is a float64, costs the same.
func TestTrialsDepth(t *testing.T) {
	for _, eta := range []float64{-1 + 1e-16, -0.999999, -0.5, -1e-9, 0, 1e-300, 1e-4, 3, 1e8} {
		for _, mean := range []float64{1 + 1e-9, 1.5, 10, 1e6, 1e300, math.MaxFloat64} {
			depth := trialsDepth(eta, mean)
			want := math.Log(mean)
			if got := logTrials(eta, depth); !(got >= want) || got > want*(1+1e-9)+1e-15 || math.IsInf(depth, 1) {
				t.Errorf("eta %v mean %v: ln(1/gamma) %v has a mean of e^%v, want e^%v", eta, mean, depth, got, want)
			}
		}
	}
	for gamma, want := range map[float64]float64{0.5: math.Ln2, 0x1p-1060: 1060 * math.Ln2} { // the second is subnormal
		if got := depthOf(gamma); apart(got, want) > 1e-15 {
			t.Errorf("gamma %v: ln(1/gamma) %v, want %v", gamma, got, want)
		}
	}
}

// The search over all orders is no worse than a list of many.
func TestPoissonTuningFindsItsOrders(t *testing.T) {
	var orders []float64
	for x := math.Log(1e-3); x < math.Log(1e4); x += 0.1 {
		orders = append(orders, 1+math.Exp(x))
	}
	for _, noise := range []float64{1, 5, 50, 200} {
		for _, mean := range []float64{1, 10, 1000} {
			for _, delta := range []float64{1e-2, 1e-5, 1e-10} {
				e := event.Tuning{Distribution: event.PoissonTrials, Mean: mean, Of: event.Gaussian{Noise: noise}}
				searched, _ := rdpEpsilon(t, exampleTerms, e, delta)
				if listed, _ := rdpEpsilon(t, exampleTerms, e, delta, WithOrders(orders...)); searched > listed*(1+1e-4) {
					t.Errorf("noise %v mean %v delta %v: epsilon %v, over a list of orders %v", noise, mean, delta, searched, listed)
				}
			}
		}
	}
	e := event.Tuning{Distribution: event.PoissonTrials, Mean: 10, Of: event.Gaussian{Noise: 50}}
	if got, _ := rdpEpsilon(t, exampleTerms, e, 1e-5); got > 0.166887 {
		t.Errorf("epsilon %v, 0.166887 is attainable", got)
	}
}

// A secret number of trials is named as not covered; a fixed one, which is charged, is not.
func TestTuningNotCovered(t *testing.T) {
	for _, e := range []event.Tuning{
		{Distribution: event.NaiveTrials, Trials: 5}, {Distribution: event.PoissonTrials, Mean: 5}, {Distribution: event.TruncatedNegativeBinomial, Mean: 5},
	} {
		e.Of = event.Gaussian{Noise: 5}
		g := spent(t, releaseOn(exampleTerms, e), MethodRDP, 1e-5)
		if secret := strings.Contains(g.Sentence(), "must stay secret"); secret == (e.Distribution == event.NaiveTrials) {
			t.Errorf("%s: %s", e.Distribution, g.Sentence())
		}
		if !strings.Contains(g.Sentence(), UncoveredScore) || strings.Contains(g.Sentence(), UncoveredTuning) {
			t.Errorf("%s: %s", e.Distribution, g.Sentence())
		}
	}
}
