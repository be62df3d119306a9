package account

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"pgregory.net/rapid"
)

func gaussianRelease(t Terms) event.Release { return releaseOn(t, event.Gaussian{Noise: 2}) }

// newAccountants starts one of each on the same terms.
func newAccountants(t *testing.T, terms Terms) map[string]Accountant {
	t.Helper()
	rdp, err1 := NewRDP(terms)
	pld, err2 := NewPLD(terms)
	zcdp, err3 := NewZCDP(terms, Improved)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return map[string]Accountant{"rdp": rdp, "pld": pld, "zcdp": zcdp}
}

var nodeTerms = Terms{event.UnitNode, event.AddRemove, event.ClaimProved}

func TestRefusalsLeaveTheAccountAsItWas(t *testing.T) {
	sampled := func(s event.Sampling, of event.Event) event.Event {
		e := event.Sampled{Sampling: s, Rate: 0.1, Of: of}
		if s != event.Poisson {
			e.Rate, e.Batch, e.Examples = 0, 10, 100
		}
		return e
	}
	g := event.Gaussian{Noise: 1}
	for name, c := range map[string]struct {
		terms   Terms
		release event.Release
		want    error
	}{
		"other unit":            {exampleTerms, gaussianRelease(Terms{event.UnitClient, event.AddRemove, event.ClaimProved}), ErrUnit},
		"other relation":        {exampleTerms, gaussianRelease(replaceTerms), ErrRelation},
		"other claim":           {exampleTerms, gaussianRelease(Terms{event.UnitExample, event.AddRemove, event.ClaimHeuristic}), ErrClaim},
		"metric event":          {exampleTerms, releaseOn(exampleTerms, event.MetricLaplace{Dimension: 2, NoiseMultiplier: 1, Radius: 1}), ErrRelation},
		"poisson, replace-one":  {replaceTerms, releaseOn(replaceTerms, sampled(event.Poisson, g)), ErrSampling},
		"batches, add-remove":   {exampleTerms, releaseOn(exampleTerms, sampled(event.WithoutReplacement, g)), ErrSampling},
		"sampled laplace":       {exampleTerms, releaseOn(exampleTerms, sampled(event.Poisson, event.Laplace{Scale: 1})), ErrUnsupported},
		"sample of a sample":    {exampleTerms, releaseOn(exampleTerms, sampled(event.Poisson, sampled(event.Poisson, g))), ErrUnsupported},
		"node event elsewhere":  {exampleTerms, releaseOn(exampleTerms, event.NodeGaussian{Nodes: 9, Occurrences: 1, Batch: 1, Noise: 1, Formula: event.Theorem}), ErrUnit},
		"authors' code, proved": {nodeTerms, releaseOn(nodeTerms, event.NodeGaussian{Nodes: 9, Occurrences: 1, Batch: 1, Noise: 1, Formula: event.AuthorsCode}), ErrClaim},
		"no noise":              {exampleTerms, releaseOn(exampleTerms, event.Gaussian{}), ErrParameter},
		"NaN noise":             {exampleTerms, releaseOn(exampleTerms, event.Gaussian{Noise: math.NaN()}), ErrParameter},
		"nothing":               {exampleTerms, releaseOn(exampleTerms, nil), ErrParameter},
		"good part, then bad":   {exampleTerms, releaseOn(exampleTerms, event.Composed{Parts: []event.Event{g, sampled(event.WithoutReplacement, g)}}), ErrSampling},
	} {
		for kind, a := range newAccountants(t, c.terms) {
			if err := a.Compose(gaussianRelease(c.terms)); err != nil {
				t.Fatal(err)
			}
			before, err := a.Guarantee(1e-5)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Compose(c.release); !errors.Is(err, c.want) {
				t.Errorf("%s, %s: error %v, want %v", kind, name, err, c.want)
			}
			if after, err := a.Guarantee(1e-5); err != nil || !reflect.DeepEqual(after, before) {
				t.Errorf("%s, %s: the refused release changed %+v to %+v (%v)", kind, name, before, after, err)
			}
		}
	}
}

func TestTermsRefused(t *testing.T) {
	for _, c := range []struct {
		terms Terms
		want  error
	}{
		{Terms{event.UnitNeighbourhood, event.AddRemove, event.ClaimProved}, ErrUnit},
		{Terms{event.UnitExample, event.Metric, event.ClaimProved}, ErrRelation},
		{Terms{event.UnitExample, event.AddRemove, event.ClaimMetric}, ErrClaim},
		{Terms{}, ErrParameter},
	} {
		_, err1 := NewRDP(c.terms)
		_, err2 := NewPLD(c.terms)
		_, err3 := NewZCDP(c.terms, Improved)
		_, err4 := NewRenyiFilter(c.terms, 1, 1e-5, 8)
		for _, err := range []error{err1, err2, err3, err4} {
			if !errors.Is(err, c.want) {
				t.Errorf("%+v: %v, want %v", c.terms, err, c.want)
			}
		}
	}
}

// Shuffled epochs are one release each, whatever the batch; the planted bugs, to
// account for them as Poisson or fresh batches, give less and would be seen.
func TestShuffleIsNotAccountedAsPoissonOrFreshBatches(t *testing.T) {
	for _, terms := range []Terms{exampleTerms, replaceTerms} {
		epoch := event.Sampled{Sampling: event.Shuffle, Batch: 512, Examples: 60000, Of: event.Gaussian{Noise: 4}}
		shuffled, _ := rdpEpsilon(t, terms, event.Repeated{Times: 10, Of: epoch}, 1e-5)
		plain, _ := rdpEpsilon(t, terms, event.Repeated{Times: 10, Of: event.Gaussian{Noise: 4}}, 1e-5)
		if shuffled != plain {
			t.Errorf("%v: ten shuffled epochs cost %v, ten releases %v", terms.Relation, shuffled, plain)
		}
		poisson, _ := rdpEpsilon(t, exampleTerms, dpsgd(4, 512.0/60000, 1180), 1e-5)
		fresh, _ := rdpEpsilon(t, replaceTerms, withoutReplacementSteps(2, 512, 60000, 1180), 1e-5)
		if poisson > 0.5*shuffled || fresh > 0.5*shuffled {
			t.Errorf("the planted bugs give %v and %v, too near to %v for this test to see them", poisson, fresh, shuffled)
		}
	}
}

// Replace-one has twice the sensitivity.
func TestRelationFactor(t *testing.T) {
	for name, e := range map[string][2]event.Event{
		"gaussian": {event.Gaussian{Noise: 3}, event.Gaussian{Noise: 6}},
		"laplace":  {event.Laplace{Scale: 3}, event.Laplace{Scale: 6}},
		"discrete": {event.DiscreteGaussian{Sigma: 3, Bound: 1}, event.DiscreteGaussian{Sigma: 6, Bound: 1}},
	} {
		add, _ := rdpEpsilon(t, exampleTerms, e[0], 1e-5)
		replace, _ := rdpEpsilon(t, replaceTerms, e[1], 1e-5)
		if apart(add, replace) > 1e-12 {
			t.Errorf("%s: %v under add-remove, %v under replace-one at twice the noise", name, add, replace)
		}
	}
}

// Proposition 1 of paper 001: two sums on one batch cost as one, and noising both
// with nu_g, as algorithm 3 prints, is seen.
func TestJointClipping(t *testing.T) {
	const nu = 1.1
	nuQ := 7.124 * nu
	nuG, err := SplitJointNoise(nu, nuQ)
	if err != nil || math.Abs(nuG/nu-1.01) > 1e-5 {
		t.Fatalf("nu_g = %v (%v), want 1 %% above nu", nuG, err)
	}
	if back, err := JointNoise(nuG, nuQ); err != nil || apart(back, nu) > 1e-12 {
		t.Errorf("joint noise %v, %v", back, err)
	}
	joint := func(first, second float64) float64 {
		e := event.Repeated{Times: 1000, Of: event.Sampled{Sampling: event.Poisson, Rate: 0.01,
			Of: event.Composed{Parts: []event.Event{event.Gaussian{Noise: first}, event.Gaussian{Noise: second}}}}}
		epsilon, _ := rdpEpsilon(t, exampleTerms, e, 1e-5)
		return epsilon
	}
	one, _ := rdpEpsilon(t, exampleTerms, dpsgd(nu, 0.01, 1000), 1e-5)
	if got := joint(nuG, nuQ); apart(got, one) > 1e-9 {
		t.Errorf("two sums cost %v, one %v", got, one)
	}
	if bug := joint(nuG, nuG); bug < 1.3*one {
		t.Errorf("nu_g in place of nu_q costs %v, hardly more than %v: the test would miss it", bug, one)
	}
	for _, bad := range [][2]float64{{1, 1}, {1, 0.5}, {0, 1}, {math.NaN(), 1}, {1, math.Inf(1)}} {
		if got, err := SplitJointNoise(bad[0], bad[1]); !errors.Is(err, ErrParameter) {
			t.Errorf("split of %v: %v, %v", bad, got, err)
		}
	}
}

// Corners of the whole account: never NaN, never below zero, zero for nothing.
func TestAccountCorners(t *testing.T) {
	for name, c := range map[string]struct {
		e         event.Event
		delta     float64
		low, high float64
	}{
		"no steps":             {dpsgd(1, 0.1, 0), 1e-5, 0, 0},
		"no steps, delta 0":    {dpsgd(1, 0.1, 0), 0, 0, 0},
		"rate 0":               {dpsgd(1, 0, 1e9), 1e-5, 0, 0},
		"rate 1":               {dpsgd(1, 1, 1), 1e-5, 4.37, 4.74},
		"delta 0":              {dpsgd(1, 0.1, 1), 0, math.Inf(1), math.Inf(1)},
		"delta 0, laplace":     {event.Repeated{Times: 4, Of: event.Laplace{Scale: 2}}, 0, 2, 2},
		"delta 0, selection":   {event.Selection{Mechanism: event.Exponential, Epsilon: 0.5}, 0, 0.5, 0.5},
		"billion steps":        {dpsgd(1000, 1e-3, 1e9), 1e-5, 0.1, 0.3},
		"billion billion":      {event.Repeated{Times: math.MaxInt64, Of: event.Repeated{Times: math.MaxInt64, Of: event.Gaussian{Noise: 1}}}, 1e-5, 1e37, math.Inf(1)},
		"tiny noise":           {dpsgd(1e-200, 0.1, 1), 1e-5, math.Inf(1), math.Inf(1)},
		"small noise":          {dpsgd(1e-3, 0.1, 1), 1e-5, 1e5, 1e6},
		"huge noise":           {dpsgd(1e200, 0.1, 1e9), 1e-5, 0, 0},
		"tiny delta":           {event.Gaussian{Noise: 1}, 1e-300, 37, 38},
		"delta near 1":         {event.Gaussian{Noise: 1}, 0.999999, 0, 0},
		"unprotected":          {event.Unprotected{}, 0.5, math.Inf(1), math.Inf(1)},
		"unprotected, 0 times": {event.Repeated{Times: 0, Of: event.Unprotected{}}, 1e-5, 0, 0},
	} {
		got, _ := rdpEpsilon(t, exampleTerms, c.e, c.delta)
		if !(got >= c.low && got <= c.high) {
			t.Errorf("%s: %v, want %v to %v", name, got, c.low, c.high)
		}
	}
	for _, delta := range []float64{-1e-9, 1, 2, math.NaN(), math.Inf(1), 1e-320, 0.99e-300} {
		for kind, a := range newAccountants(t, exampleTerms) {
			if g, err := a.Guarantee(delta); !errors.Is(err, ErrParameter) {
				t.Errorf("%s: delta %v gives %v, %v", kind, delta, g.Epsilon, err)
			}
		}
		if epsilon, err := GaussianEpsilon(2, 1, delta, event.AddRemove); !errors.Is(err, ErrParameter) {
			t.Errorf("closed form: delta %v gives %v, %v", delta, epsilon, err)
		}
		if noise, err := AnalyticNoise(1, delta, 1, event.AddRemove); !errors.Is(err, ErrParameter) {
			t.Errorf("closed form: delta %v gives noise %v, %v", delta, noise, err)
		}
	}
}

// More is never cheaper, for any event that the accountant takes.
func TestComposingIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		draw := func() event.Event {
			noise := rapid.Float64Range(0.3, 50).Draw(rt, "noise")
			switch rapid.IntRange(0, 3).Draw(rt, "kind") {
			case 0:
				return event.Gaussian{Noise: noise}
			case 1:
				return event.Laplace{Scale: noise}
			case 2:
				return event.Selection{Mechanism: event.PermuteAndFlip, Epsilon: 1 / noise}
			}
			return dpsgd(noise, rapid.Float64Range(0, 1).Draw(rt, "rate"), rapid.Int64Range(0, 1e6).Draw(rt, "steps"))
		}
		a, err := NewRDP(exampleTerms)
		if err != nil {
			rt.Fatal(err)
		}
		last := 0.0
		for range 4 {
			if err := a.Compose(releaseOn(exampleTerms, draw())); err != nil {
				rt.Fatal(err)
			}
			epsilon, _, err := a.Epsilon(1e-6)
			if err != nil || math.IsNaN(epsilon) || epsilon < last*(1-1e-6) {
				rt.Fatalf("epsilon went from %v to %v (%v)", last, epsilon, err)
			}
			last = epsilon
		}
	})
}

func TestAnalyticGaussian(t *testing.T) {
	// Balle and Wang 2018: sigma at epsilon 1, delta 1e-5 is 3.7303; delta by
	// integration of max(0, p - e^eps q) elsewhere.
	noise, err := AnalyticNoise(1, 1e-5, 1, event.AddRemove)
	if err != nil || math.Abs(noise-3.730631634944469) > 1e-6 {
		t.Errorf("noise %v, %v", noise, err)
	}
	for _, mu := range []float64{0.005, 0.02, 0.3, 1, 4} {
		for _, epsilon := range []float64{0, 0.01, 0.5, 3} {
			want := 0.0
			const step = 2e-5
			for x := -9.0; x < 9+mu; x += step {
				want += step * math.Max(0, normalDensity(x-mu)-math.Exp(epsilon)*normalDensity(x))
			}
			if got := gaussianDelta(mu, epsilon); math.Abs(got-want) > 1e-8*want+1e-13 {
				t.Errorf("mu %v epsilon %v: delta %v, by integration %v", mu, epsilon, got, want)
			}
		}
	}
	for _, delta := range []float64{1e-300, 1e-100, 1e-12, 1e-5, 0.1} {
		for _, epsilon := range []float64{1e-6, 0.1, 1, 50} {
			noise, err := AnalyticNoise(epsilon, delta, 10, event.ReplaceOne)
			if err != nil {
				t.Fatal(err)
			}
			back, err := GaussianEpsilon(noise, 10, delta, event.ReplaceOne)
			if err != nil || back > epsilon || apart(back, epsilon) > 1e-6 {
				t.Errorf("epsilon %v delta %v: noise %v gives %v back (%v)", epsilon, delta, noise, back, err)
			}
			rdp, _ := rdpEpsilon(t, replaceTerms, event.Repeated{Times: 10, Of: event.Gaussian{Noise: noise}}, delta)
			if rdp < back*(1-1e-9) {
				t.Errorf("epsilon %v delta %v: RDP %v is below the exact %v", epsilon, delta, rdp, back)
			}
		}
	}
}

func TestSelectionZCDP(t *testing.T) {
	for mechanism, share := range map[string]float64{event.Exponential: 8, event.PermuteAndFlip: 2, event.NoisyMax: 2} {
		z, err := NewZCDP(exampleTerms, Classical)
		if err != nil {
			t.Fatal(err)
		}
		if err := z.Compose(releaseOn(exampleTerms, event.Repeated{Times: 10, Of: event.Selection{Mechanism: mechanism, Epsilon: 0.3}})); err != nil {
			t.Fatal(err)
		}
		if want := 10 * 0.09 / share; apart(z.Rho(), want) > 1e-12 {
			t.Errorf("%s: rho %v, want %v", mechanism, z.Rho(), want)
		}
		g, err := z.Guarantee(1e-5)
		if want := z.Rho() + 2*math.Sqrt(z.Rho()*math.Log(1e5)); err != nil || apart(g.Epsilon, want) > 1e-12 {
			t.Errorf("%s: epsilon %v, want %v (%v)", mechanism, g.Epsilon, want, err)
		}
	}
}

func TestLaplaceRDP(t *testing.T) {
	// E[(p/q)^a] under q by its two tails and the middle, in closed form, at sizes
	// where the plain formula keeps its digits.
	for _, eps := range []float64{0.3, 1, 5} {
		for _, a := range []float64{1.5, 2, 10, 40} {
			want := math.Log(a/(2*a-1)*math.Exp((a-1)*eps)+(a-1)/(2*a-1)*math.Exp(-a*eps)) / (a - 1)
			if got := (laplace{eps}).RDP(a); got < want*(1-1e-13) || apart(got, want) > 1e-10 {
				t.Errorf("epsilon %v order %v: %v, want %v", eps, a, got, want)
			}
		}
	}
	// For small epsilon it approaches a*eps^2/2 from below.
	for _, eps := range []float64{1e-3, 1e-6, 1e-12} {
		if got, near := (laplace{eps}).RDP(3), 1.5*eps*eps; got > near || apart(got, near) > 3*eps {
			t.Errorf("epsilon %v: %v, near %v", eps, got, near)
		}
	}
}

func TestTuningDistributions(t *testing.T) {
	for _, eta := range []float64{-0.9, -0.5, -1e-9, 0, 1e-9, 0.5, 1, 7} {
		for _, gamma := range []float64{0.01, 0.3, 0.9} {
			// The probabilities of the definition, summed up.
			total, mean, product := 0.0, 0.0, 1.0
			for k := 1.0; k < 20000; k++ {
				// (1-gamma)^k * prod over l < k of (l+eta)/(l+1), divided by eta.
				if k == 1 {
					product = 1 - gamma
				} else {
					product *= (1 - gamma) * (k - 1 + eta) / k
				}
				total += product
				mean += k * product
			}
			if got := math.Exp(logTrials(eta, depthOf(gamma))); apart(got, mean/total) > 1e-7 {
				t.Errorf("eta %v gamma %v: mean %v, summed %v", eta, gamma, got, mean/total)
			}
		}
	}
	base, _ := rdpEpsilon(t, exampleTerms, event.Gaussian{Noise: 5}, 1e-5)
	naive, _ := rdpEpsilon(t, exampleTerms, event.Tuning{Distribution: event.NaiveTrials, Trials: 10, Of: event.Gaussian{Noise: 5}}, 1e-5)
	ten, _ := rdpEpsilon(t, exampleTerms, event.Repeated{Times: 10, Of: event.Gaussian{Noise: 5}}, 1e-5)
	random, _ := rdpEpsilon(t, exampleTerms, event.Tuning{Distribution: event.TruncatedNegativeBinomial, Mean: 10, Of: event.Gaussian{Noise: 5}}, 1e-5)
	if naive != ten || !(base < random && random < naive) {
		t.Errorf("one run %v, random number %v, naive %v, ten runs %v", base, random, naive, ten)
	}
}

func TestFederation(t *testing.T) {
	g := Guarantee{Claim: event.ClaimProved, Unit: event.UnitExample, Relation: event.AddRemove, Trust: event.TrustLocal, Epsilon: 1, Delta: 1e-5}
	other := g
	other.Epsilon, other.Delta = 3, 1e-7
	all, err := Federation(g, other)
	if err != nil || all.Epsilon != 3 || all.Delta != 1e-5 {
		t.Errorf("%+v, %v", all, err)
	}
	// What does not hold at the smaller delta may hold at the federation's.
	g.Optimistic, other.Optimistic, other.Accountant = 0.9, 2.9, "pld"
	for _, silos := range [][]Guarantee{{g, other}, {other, g}} {
		if all, err := Federation(silos...); err != nil || all.Optimistic != 0.9 || all.Epsilon != 3 || all.Accountant != "pld" {
			t.Errorf("%+v, %v", all, err)
		}
	}
	for want, change := range map[error]func(*Guarantee){
		ErrUnit:     func(g *Guarantee) { g.Unit = event.UnitClient },
		ErrRelation: func(g *Guarantee) { g.Relation = event.ReplaceOne },
		ErrClaim:    func(g *Guarantee) { g.Claim = event.ClaimHeuristic },
	} {
		other := g
		change(&other)
		if _, err := Federation(g, other); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if _, err := Federation(); !errors.Is(err, ErrParameter) {
		t.Errorf("no silo: %v", err)
	}
}

func TestGuaranteeJSON(t *testing.T) {
	data, err := json.Marshal(Guarantee{Claim: event.ClaimProved, Unit: event.UnitExample, Epsilon: math.Inf(1)})
	if err != nil || !strings.Contains(string(data), `"epsilon":"inf"`) || !strings.Contains(string(data), `"not_covered":[]`) {
		t.Errorf("%s, %v", data, err)
	}
	if _, err := json.Marshal(Guarantee{Epsilon: math.NaN()}); err == nil {
		t.Error("NaN was written")
	}
}

func TestSentenceRoundsUp(t *testing.T) {
	for x, want := range map[float64]string{
		1.5697112: "1.56972", 3: "3", 2.9999999999999: "3", 0.0123456789: "0.0123457", 0.01234561: "0.0123457",
		999999.1: "1e+06", 12.00000001: "12.0001", 0: "0",
	} {
		if got := Upward(x); got != want {
			t.Errorf("%v is written %s, want %s", x, got, want)
		}
	}
	for x, want := range map[float64]string{
		1.5697192: "1.56971", 3: "3", 3.0000000000001: "3", 0.01234569: "0.0123456", 1000000.9: "1e+06", 12.9999999: "12.9999", 0: "0",
	} {
		if got := Downward(x); got != want {
			t.Errorf("%v is written %s as what does not hold, want %s", x, got, want)
		}
	}
}
