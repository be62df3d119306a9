package account

import (
	"errors"
	"math"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// latticeMoments are the moments of order a between neighbours, by sums over the whole
// lattice: of (1-q)*N(0) + q*N(v) against N(0), and the other way round. N is the
// discrete Gaussian of deviation sigma in len(v) dimensions.
func latticeMoments(q, sigma, a float64, v []int) (forward, backward float64) {
	reach := int(14*sigma) + 3
	for _, c := range v {
		reach = max(reach, int(a)*abs(c)+int(14*sigma)+3)
	}
	total := 0.0
	x := make([]int, len(v))
	var walk func(i int, log, shift float64)
	walk = func(i int, log, shift float64) {
		if i == len(v) {
			weight := math.Exp(log)
			base := 1 + q*math.Expm1(shift)
			total += weight
			// One exponential, since the base may be large where the weight is nothing.
			forward += math.Exp(log + a*math.Log(base))
			backward += math.Exp(log + (1-a)*math.Log(base))
			return
		}
		c := float64(v[i])
		for x[i] = -reach; x[i] <= reach; x[i]++ {
			at := float64(x[i])
			walk(i+1, log-at*at/(2*sigma*sigma), shift+(2*at*c-c*c)/(2*sigma*sigma))
		}
	}
	walk(0, 0, 0)
	return forward / total, backward / total
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// At whole orders the sampled discrete Gaussian has the continuous one's moments, for
// every shift on the lattice and down to noise that hardly reaches the next point; and
// the other direction is the smaller one, at every order.
func TestWholeOrdersHoldOnTheLattice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sigma float64
		v     []int
	}{{0.3, []int{1}}, {0.5, []int{2}}, {1, []int{1}}, {1, []int{3}}, {4, []int{2}}, {20, []int{13}}, {0.4, []int{1, 1}}, {0.7, []int{2, -1}}, {2, []int{1, 3}}} {
		norm := 0.0
		for _, x := range c.v {
			norm = math.Hypot(norm, float64(x))
		}
		for _, q := range []float64{1e-3, 0.1, 0.5, 0.9} {
			curve := &poissonCurve{poissonGaussian: poissonGaussian{q, c.sigma / norm}, whole: true}
			for _, a := range []float64{2, 3, 4, 7, 12} {
				bound := curve.RDP(a)
				if (a-1)*bound > 600 {
					continue // the sum leaves float64
				}
				forward, backward := latticeMoments(q, c.sigma, a, c.v)
				if got := math.Log(forward) / (a - 1); !(math.Abs(got-bound) <= 1e-9*bound+1e-14) {
					t.Errorf("sigma %v shift %v rate %v order %v: divergence %v, bound %v", c.sigma, c.v, q, a, got, bound)
				}
				if !(backward <= forward*(1+1e-12)) {
					t.Errorf("sigma %v shift %v rate %v order %v: backward %v, forward %v", c.sigma, c.v, q, a, backward, forward)
				}
			}
		}
	}
}

// Between whole orders the chord holds on the lattice, and the continuous moment does
// not: where noise is small, it lies below the discrete one. An accountant that used it
// for exact noise would be wrong.
func TestContinuousMomentsFailBetweenWholeOrders(t *testing.T) {
	t.Parallel()
	const sigma = 0.5
	failed := 0
	for _, q := range []float64{1e-3, 0.01, 0.1, 0.5} {
		m := poissonGaussian{q, sigma}
		continuous, whole := m.curve(nil), poissonLattice{m}.curve(nil)
		for _, a := range []float64{1.2, 1.5, 2.5, 3.5, 4.3, 6.5} {
			forward, backward := latticeMoments(q, sigma, a, []int{1})
			divergence := math.Log(math.Max(forward, backward)) / (a - 1)
			if divergence > whole.RDP(a)*(1+1e-12) {
				t.Errorf("rate %v order %v: divergence %v, chord %v", q, a, divergence, whole.RDP(a))
			}
			if divergence > continuous.RDP(a)*(1+1e-6) {
				failed++
			}
		}
	}
	if failed == 0 {
		t.Error("the continuous curve bounds the discrete one everywhere: this test has no power")
	}
}

// Between whole orders the discrete moment exceeds the continuous one by a share of at
// most kappa, which is nothing for the lattices of dp/mech: what was stated at such
// orders in the past still holds.
func TestExcessBetweenWholeOrders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sigma float64
		v     []int
	}{{0.5, []int{1}}, {0.6, []int{1}}, {0.8, []int{1}}, {1, []int{1}}, {0.8, []int{1, 1}}, {1.1, []int{1, -1}}, {2, []int{1, 3}}} {
		norm, n := 0.0, float64(len(c.v))
		for _, x := range c.v {
			norm = math.Hypot(norm, float64(x))
		}
		s := c.sigma / norm
		kappa := math.Inf(1)
		for share := 0.02; share <= 1; share += 0.02 { // every strip gives a bound
			strip := share * math.Pi * s / 2
			one := 1 + 2/math.Expm1(2*math.Pi*strip*c.sigma/math.Sqrt(n))
			kappa = math.Min(kappa, math.Exp(strip*strip)*(math.Pow(one, n)-1))
		}
		for _, q := range []float64{0.01, 0.3} {
			curve := poissonGaussian{q, s}.curve(nil)
			for _, a := range []float64{1.5, 2.5, 5.3} {
				forward, _ := latticeMoments(q, c.sigma, a, c.v)
				if continuous := math.Exp((a - 1) * curve.RDP(a)); forward > continuous*(1+kappa)*(1+1e-9) {
					t.Errorf("sigma %v shift %v rate %v order %v: %v, continuous %v, kappa %v", c.sigma, c.v, q, a, forward, continuous, kappa)
				}
			}
		}
	}
}

// The chords of theorem 27 for batches without replacement rest on whole moments alone:
// those of even order around 1 are the continuous ones on the lattice too.
func TestCentralMomentsHoldOnTheLattice(t *testing.T) {
	t.Parallel()
	for _, sigma := range []float64{0.7, 1.5, 5} {
		c := &withoutReplacementCurve{withoutReplacement: withoutReplacement{0.1, sigma}}
		for _, i := range []int{1, 2, 4} {
			total, moment := 0.0, 0.0
			for x := -20*sigma - 60; x <= 20*sigma+60; x++ {
				at := math.Round(x)
				weight := math.Exp(-at * at / (2 * sigma * sigma))
				total += weight
				moment += weight * math.Pow(math.Expm1((2*at-1)/(2*sigma*sigma)), float64(2*i))
			}
			if want := math.Exp(c.logCentral(i)); apart(moment/total, want) > 1e-8 {
				t.Errorf("sigma %v, B(%d): %v, continuous %v", sigma, 2*i, moment/total, want)
			}
		}
	}
}

// Exact noise costs at least as much as continuous noise by every accountant, nothing
// more without sampling by RDP, and a filter charges it.
func TestExactNoiseIsCharged(t *testing.T) {
	t.Parallel()
	l := Lattice{Coordinates: 10000}
	for name, e := range map[string]event.Event{
		"sampled": dpsgd(0.8, 0.01, 1000), "full": event.Repeated{Times: 100, Of: event.Gaussian{Noise: 20}},
		"tuned": event.Tuning{Distribution: event.TruncatedNegativeBinomial, Mean: 5, Of: dpsgd(2, 0.01, 100)},
	} {
		r := releaseOn(exampleTerms, e)
		continuous, err := Spend(r, MethodRDP, 1e-5)
		if err != nil {
			t.Fatal(err)
		}
		exact, err := SpendExact(r, MethodRDP, 1e-5, l)
		if err != nil {
			t.Fatal(err)
		}
		if name == "full" && exact.Epsilon != continuous.Epsilon || name != "full" && !(exact.Epsilon > continuous.Epsilon) {
			t.Errorf("%s: exact %v, continuous %v", name, exact.Epsilon, continuous.Epsilon)
		}
		best, err := SpendExact(r, MethodBest, 1e-5, l)
		if err != nil || best.Epsilon > exact.Epsilon {
			t.Errorf("%s: best %v, rdp %v: %v", name, best.Epsilon, exact.Epsilon, err)
		}
	}
	const order = 2.5
	f, err := NewRenyiFilter(exampleTerms, 8, 1e-5, order)
	if err != nil {
		t.Fatal(err)
	}
	prices, _, err := f.price(releaseOn(exampleTerms, event.Sampled{Sampling: event.Poisson, Rate: 0.01, Of: event.Gaussian{Noise: 0.5}}), f.cached)
	if err != nil {
		t.Fatal(err)
	}
	if want := (poissonLattice{poissonGaussian{0.01, 0.5}}).curve(nil).RDP(order); prices[0] != want {
		t.Errorf("the filter charges %v, exact noise costs %v", prices[0], want)
	}
}

// The term of exact noise: the total variation that it is made of, against a sum over
// the integers; what it adds to delta; and a refusal where it leaves nothing.
func TestLatticeTerm(t *testing.T) {
	t.Parallel()
	const sigma = 1 << 10
	total, apart := 0.0, 0.0
	for k := -12 * sigma; k <= 12*sigma; k++ {
		total += math.Exp(-float64(k) * float64(k) / (2 * sigma * sigma))
	}
	for k := -12 * sigma; k <= 12*sigma; k++ {
		p := math.Exp(-float64(k)*float64(k)/(2*sigma*sigma)) / total
		q, _ := normalInterval((float64(k)-0.5)/sigma, (float64(k)+0.5)/sigma)
		apart += math.Abs(p-q) / 2
	}
	one := Lattice{Coordinates: 1, Sigma: sigma}
	if bound := one.distance(1); !(apart <= bound) || !(apart > bound/5) {
		t.Errorf("total variation %v, bound %v", apart, bound)
	}
	if four := (Lattice{Coordinates: 4, Sigma: sigma}); math.Abs(four.distance(9)/one.distance(1)-6) > 1e-12 {
		t.Errorf("4 coordinates and 9 releases: %v of %v", four.distance(9), one.distance(1))
	}

	// The model and the run of issue T: the old term of every release would be above delta.
	big := Lattice{Coordinates: 1206590}
	e := dpsgd(0.82, 0.01, 1000)
	r := releaseOn(exampleTerms, e)
	continuous, err := Spend(r, MethodPLD, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	exact, err := SpendExact(r, MethodPLD, 1e-5, big)
	if err != nil {
		t.Fatal(err)
	}
	// What it says holds with the term: delta at its epsilon, and the term, are within delta.
	term := (1 + math.Exp(exact.Epsilon)) * big.distance(1000)
	check, err := Spend(r, MethodPLD, 1e-5-term)
	if err != nil || check.Epsilon > exact.Epsilon || !(exact.Epsilon > continuous.Epsilon) || exact.Epsilon > 1.01*continuous.Epsilon {
		t.Errorf("continuous %v, exact %v, at delta less the term of %v %v: %v", continuous.Epsilon, exact.Epsilon, term, check.Epsilon, err)
	}
	if !(exact.Optimistic > 0) || exact.Optimistic > exact.Epsilon {
		t.Errorf("optimistic %v, epsilon %v", exact.Optimistic, exact.Epsilon)
	}
	// The analytic Gaussian takes the same way.
	plain := releaseOn(exampleTerms, event.Repeated{Times: 10, Of: event.Gaussian{Noise: 5}})
	analytic, err := GaussianEpsilon(5, 10, 1e-5, event.AddRemove)
	if err != nil {
		t.Fatal(err)
	}
	if g, err := SpendExact(plain, MethodPLD, 1e-5, big); err != nil || !(g.Epsilon > analytic) || g.Epsilon > 1.01*analytic {
		t.Errorf("analytic %v, exact %+v: %v", analytic, g, err)
	}

	for name, refused := range map[string]struct {
		lattice Lattice
		e       event.Event
		want    error
	}{
		"nothing left":   {Lattice{Coordinates: 1206590}, dpsgd(0.5, 0.1, 1000), ErrUnsupported},
		"no coordinates": {Lattice{}, e, ErrParameter},
		"coarse":         {Lattice{Coordinates: 1, Sigma: 100}, e, ErrParameter},
		"not a number":   {Lattice{Coordinates: 1, Sigma: math.NaN()}, e, ErrParameter},
	} {
		if g, err := SpendExact(releaseOn(exampleTerms, refused.e), MethodPLD, 1e-5, refused.lattice); !errors.Is(err, refused.want) {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
		// RDP asks for none of it, and leads then.
		if g, err := SpendExact(releaseOn(exampleTerms, refused.e), MethodBest, 1e-5, refused.lattice); err != nil || g.Accountant != string(MethodRDP) {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
}
