package account

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

func gridComposition(times float64, sources ...lossSource) composition {
	c := composition{maxGrid: defaultGrid}
	for _, s := range sources {
		c.sources, c.times = append(c.sources, s), append(c.times, times)
	}
	return c
}

// The FFT of k Gaussian losses, against the exact delta of the composition.
func TestPLDGaussianAgainstExact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mu    float64
		times float64
	}{{1, 1}, {0.1, 1}, {3, 1}, {1, 10}, {0.05, 100}, {0.01, 10000}, {2, 50}, {0.001, 1e6}} {
		if c.times > 100 && !*soak {
			continue
		}
		for _, delta := range []float64{0.3, 1e-2, 1e-5, 1e-9, 1e-15, 1e-60} {
			exact := gaussianEpsilon(c.mu*math.Sqrt(c.times), delta)
			got := gridComposition(c.times, gaussianLoss{c.mu}).epsilon(delta)
			if got.high < exact*(1-1e-9) || got.low > exact {
				t.Errorf("mu %v times %v delta %v: [%v, %v] does not hold %v", c.mu, c.times, delta, got.low, got.high, exact)
			}
			if got.high > exact*(1+2e-3)+1e-6 {
				t.Errorf("mu %v times %v delta %v: %v is loose, exact %v", c.mu, c.times, delta, got.high, exact)
			}
		}
	}
}

// The FFT of one sampled release, against its closed form.
func TestPLDOneReleaseAgainstExact(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range samples(10, 100) {
		m := poissonGaussian{math.Exp(-7 * r.Float64()), math.Exp(-1 + 3*r.Float64())}
		delta := math.Exp(-3 - 12*r.Float64())
		exact := solveEpsilon(delta, m.delta)
		high, low := 0.0, 0.0
		for _, remove := range []bool{true, false} {
			c := gridComposition(1, poissonLoss{m, remove})
			c.least = 2e-5
			b := c.epsilon(delta)
			high, low = math.Max(high, b.high), math.Max(low, b.low)
		}
		if high < exact*(1-1e-9) || low > exact || high > exact*(1+5e-3)+1e-6 {
			t.Errorf("%+v delta %v: [%v, %v], exact %v", m, delta, low, high, exact)
		}
	}
}

// The closed form of one sampled release, against Monte-Carlo-free integration:
// delta = integral of max(0, p - e^eps q).
func TestPoissonDeltaIntegral(t *testing.T) {
	for _, m := range []poissonGaussian{{0.1, 1}, {0.01, 0.6}, {0.5, 3}, {0.9, 0.8}} {
		for _, epsilon := range []float64{0, 0.1, 0.5, 2} {
			removed, added := 0.0, 0.0
			const step = 1e-4
			for x := -12 * m.noise; x < 1+12*m.noise; x += step {
				q := normalDensity(x/m.noise) / m.noise
				p := (1-m.rate)*q + m.rate*normalDensity((x-1)/m.noise)/m.noise
				removed += step * math.Max(0, p-math.Exp(epsilon)*q)
				added += step * math.Max(0, q-math.Exp(epsilon)*p)
			}
			if got, want := m.delta(epsilon), math.Max(removed, added); math.Abs(got-want) > 1e-7 {
				t.Errorf("%+v epsilon %v: %v, by integration %v", m, epsilon, got, want)
			}
		}
	}
}

// PLD is tighter than RDP, and grows with steps.
func TestPLDBelowRDP(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for range samples(8, 100) {
		noise, rate := math.Exp(-0.7+2*r.Float64()), math.Exp(-1-6*r.Float64())
		steps := int64(math.Exp(9 * r.Float64()))
		rdp, _ := rdpEpsilon(t, exampleTerms, dpsgd(noise, rate, steps), 1e-5)
		low, high := pldBounds(t, exampleTerms, dpsgd(noise, rate, steps), 1e-5)
		if high > rdp*(1+1e-3)+1e-3 || low > high {
			t.Errorf("noise %v rate %v steps %v: PLD [%v, %v], RDP %v", noise, rate, steps, low, high, rdp)
		}
		if _, more := pldBounds(t, exampleTerms, dpsgd(noise, rate, 2*steps), 1e-5); more < high {
			t.Errorf("noise %v rate %v: %v steps cost %v, twice as many %v", noise, rate, steps, high, more)
		}
	}
}

// A finer grid is tighter and keeps above the optimistic bound.
func TestPLDInterval(t *testing.T) {
	t.Parallel()
	e := releaseOn(exampleTerms, dpsgd(1, 1e-4, 10000))
	coarse, err := NewPLD(exampleTerms, WithInterval(1e-4))
	if err != nil {
		t.Fatal(err)
	}
	fine, err := NewPLD(exampleTerms)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*PLD{coarse, fine} {
		if err := p.Compose(e); err != nil {
			t.Fatal(err)
		}
	}
	lowCoarse, highCoarse, _ := coarse.Bounds(1e-5)
	lowFine, highFine, _ := fine.Bounds(1e-5)
	if !(highFine < 0.97*highCoarse) || lowFine < lowCoarse || lowFine > highFine {
		t.Errorf("interval 1e-4: [%v, %v]; as fine as needed: [%v, %v]", lowCoarse, highCoarse, lowFine, highFine)
	}
	if highFine > lowFine*(1+DefaultExcess) {
		t.Errorf("the fine grid leaves [%v, %v]", lowFine, highFine)
	}
}

// Mixed mechanisms: several Gaussians and sampled steps, checked against RDP and
// against the parts alone.
func TestPLDMixed(t *testing.T) {
	t.Parallel()
	parts := []event.Event{
		dpsgd(1, 0.01, 1000),
		event.Repeated{Times: 3, Of: event.Gaussian{Noise: 8}},
		event.Laplace{Scale: 5},
		event.Repeated{Times: 10, Of: event.Selection{Mechanism: event.NoisyMax, Epsilon: 0.05}},
	}
	_, all := pldBounds(t, exampleTerms, event.Composed{Parts: parts}, 1e-5)
	rdp, _ := rdpEpsilon(t, exampleTerms, event.Composed{Parts: parts}, 1e-5)
	if !(all < rdp) {
		t.Errorf("PLD %v, RDP %v", all, rdp)
	}
	for _, part := range parts {
		if _, one := pldBounds(t, exampleTerms, part, 1e-5); one >= all {
			t.Errorf("%+v alone costs %v, all together %v", part, one, all)
		}
	}
}

// Shifting every loss down one grid step, as a rounding in the wrong direction
// would, must be seen by the comparison with the exact value.
func TestPLDTestsHavePower(t *testing.T) {
	exact := gaussianEpsilon(0.05*10, 1e-5)
	got := gridComposition(100, roundedDown{gaussianLoss{0.05}}).epsilon(1e-5)
	if got.high >= exact*(1-1e-9) {
		t.Errorf("losses rounded down give %v, which is not below the exact %v", got.high, exact)
	}
}

type roundedDown struct{ gaussianLoss }

func (s roundedDown) spread(step, tail float64) gridLoss {
	g := s.gaussianLoss.spread(step, tail)
	g.first--
	return g
}

func TestPLDCorners(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]event.Event{
		"no steps": dpsgd(1, 0.1, 0), "rate 0": dpsgd(1, 0, 100), "1e9 steps": dpsgd(100, 1e-3, 1e9),
		"tiny noise": dpsgd(0.01, 0.1, 10), "tiny noise, many": dpsgd(0.02, 0.5, 1e6), "huge noise": dpsgd(1e9, 0.5, 100),
		"tiny rate": dpsgd(1, 1e-12, 1000), "rate near 1": dpsgd(1, 1-1e-9, 100), "unprotected": event.Unprotected{},
		"tiny laplace": event.Repeated{Times: 100, Of: event.Laplace{Scale: 1e6}}, "loud laplace": event.Repeated{Times: 7, Of: event.Laplace{Scale: 1e-3}},
	} {
		for _, delta := range []float64{0, 1e-150, 1e-5, 0.5} {
			small := func(p *PLD) { p.maxGrid = 1 << 15 } // for speed; what is lost is tightness
			low, high := pldBounds(t, exampleTerms, e, delta, small, WithInterval(1e-4))
			if !(high >= 0) || !(low >= 0) || low > high {
				t.Errorf("%s delta %v: [%v, %v]", name, delta, low, high)
			}
			low, high = pldBounds(t, exampleTerms, e, delta, small)
			if !(high >= 0) || !(low >= 0) || low > high {
				t.Errorf("%s delta %v, fine grid: [%v, %v]", name, delta, low, high)
			}
			rdp, _ := rdpEpsilon(t, exampleTerms, e, delta)
			if high > rdp {
				t.Errorf("%s delta %v: PLD %v is above RDP %v", name, delta, high, rdp)
			}
		}
	}
}

// samples is how many cases to draw: more in a soak.
func samples(usual, long int) int {
	if *soak {
		return long
	}
	return usual
}

// Two grids enclose the same epsilon: neither's upper bound is below the other's
// lower bound.
func TestPLDGridsAgree(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 10))
	for range samples(8, 200) {
		noise, rate := math.Exp(-1+3*r.Float64()), math.Exp(-0.3-8*r.Float64())
		steps, delta := int64(math.Exp(10*r.Float64())), math.Exp(-3-20*r.Float64())
		low1, high1 := pldBounds(t, exampleTerms, dpsgd(noise, rate, steps), delta, WithInterval(1e-4))
		low2, high2 := pldBounds(t, exampleTerms, dpsgd(noise, rate, steps), delta)
		if low1 > high2 || low2 > high1 || high2 > high1*(1+2e-3)+1e-9 {
			t.Errorf("noise %v rate %v steps %v delta %v: [%v, %v] and [%v, %v]", noise, rate, steps, delta, low1, high1, low2, high2)
		}
	}
}

// TestPLDExcess: the upper bound is within 1 % of the lower one, at tiny rates too, where
// a fixed grid of 1e-4 is up to 2.9 times above it; and the truth, where a closed form
// knows it, lies between.
func TestPLDExcess(t *testing.T) {
	t.Parallel()
	cases := []struct {
		noise, rate float64
		steps       int64
		delta       float64
	}{
		{8, 1e-4, 10000, 1e-5}, {8, 1e-4, 1000, 1e-5}, {4, 1e-4, 100, 1e-6}, {3, 1e-5, 1000, 1e-9},
		{10, 1e-3, 1000, 1e-5}, {1.1, 0.01, 1000, 1e-5}, {1, 0.5, 20, 1e-4}, {1, 0.01, 2, 1e-5},
	}
	if *soak {
		cases = append(cases, struct {
			noise, rate float64
			steps       int64
			delta       float64
		}{1, 1e-6, 1e6, 1e-6}, cases[0])
	}
	for _, c := range cases {
		low, high := pldBounds(t, exampleTerms, dpsgd(c.noise, c.rate, c.steps), c.delta)
		if !(low > 0) || high > low*(1+DefaultExcess) || low > high {
			t.Errorf("%+v: [%v, %v]", c, low, high)
		}
		if _, coarse := pldBounds(t, exampleTerms, dpsgd(c.noise, c.rate, c.steps), c.delta, WithInterval(1e-4)); high > coarse*(1+1e-9) {
			t.Errorf("%+v: %v, on a fixed grid %v", c, high, coarse)
		}
	}
	if _, coarse := pldBounds(t, exampleTerms, dpsgd(8, 1e-4, 10000), 1e-5, WithInterval(1e-4)); !(coarse > 2.9*0.0025244) {
		t.Errorf("the fixed grid says %v: the test has no power", coarse)
	}
	// Composed Gaussians have a closed form; the grid does not know it.
	for _, times := range []float64{1, 30, 1000} {
		exact := gaussianEpsilon(0.01*math.Sqrt(times), 1e-5)
		c := gridComposition(times, gaussianLoss{0.01})
		got := c.refine(c.epsilon(1e-5), 1e-5, 0, DefaultExcess)
		if got.low > exact || got.high < exact*(1-1e-9) || got.high > got.low*(1+DefaultExcess) {
			t.Errorf("%v Gaussians: [%v, %v], exact %v", times, got.low, got.high, exact)
		}
	}
}

// TestBestAccountant: the smaller number leads and is named; where PLD has no answer or
// orders are fixed, RDP leads; a solved plan is the cheaper one.
func TestBestAccountant(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		e      event.Event
		terms  Terms
		orders []float64
		want   Method
	}{
		"sampled":     {dpsgd(1, 0.01, 100), exampleTerms, nil, MethodPLD},
		"orders":      {dpsgd(1, 0.01, 100), exampleTerms, []float64{4, 8}, MethodRDP},
		"replacement": {event.Sampled{Sampling: event.WithoutReplacement, Batch: 5, Examples: 100, Of: event.Gaussian{Noise: 4}}, replaceTerms, nil, MethodRDP},
		"choices":     {event.Repeated{Times: 400, Of: event.Selection{Mechanism: event.Exponential, Epsilon: 0.05}}, exampleTerms, nil, MethodRDP},
	} {
		r := releaseOn(c.terms, c.e)
		best, err := Spend(r, MethodBest, 1e-5, c.orders...)
		if err != nil || best.Accountant != string(c.want) {
			t.Errorf("%s: %+v, %v", name, best, err)
		}
		for _, m := range []Method{MethodRDP, MethodPLD} {
			if one, err := Spend(r, m, 1e-5, c.orders...); err == nil && one.Epsilon < best.Epsilon {
				t.Errorf("%s: %s says %v, the best %v", name, m, one.Epsilon, best.Epsilon)
			}
		}
	}
	plan := poissonTraining(0.01, 100)
	byRDP, _, err := plan.WithNoiseFor(MethodRDP, 2, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	byBest, g, err := plan.WithNoiseFor(MethodBest, 2, 1e-5)
	if err != nil || !(byBest.Noise < byRDP.Noise) || g.Epsilon > 2 || g.Epsilon < 1.99 {
		t.Errorf("noise %v, by RDP %v: %+v, %v", byBest.Noise, byRDP.Noise, g, err)
	}
}

// widest notes the largest grid that a source was put on.
type widest struct {
	lossSource
	points *int
}

func (s widest) spread(step, tail float64) gridLoss {
	if points := s.span(tail) / step; points > 1e8 {
		panic("a grid that does not fit into memory")
	}
	g := s.lossSource.spread(step, tail)
	*s.points = max(*s.points, len(g.mass))
	return g
}

// At small deltas a source reaches much further than the window of what is composed; its
// grid is bounded all the same, in a last, finer try too.
func TestPLDGridsFit(t *testing.T) {
	for _, delta := range []float64{1e-12, 1e-100, 1e-199} {
		points := 0
		c := gridComposition(7, widest{poissonLoss{poissonGaussian{0.5, 1}, true}, &points})
		c.maxGrid = 1 << 14
		best := c.epsilon(delta)
		if most := 2*c.maxGrid + 4; points > most {
			t.Errorf("delta %v: a grid of %d points, want at most %d", delta, points, most)
		}
		narrow := best // a window that would let the step be anything
		narrow.low, narrow.step, narrow.window.bottom = 0, 1e-4, narrow.window.top-1e-6
		narrow = c.refine(narrow, delta, 0, DefaultExcess)
		if most := 8*c.maxGrid + 4; points > most {
			t.Errorf("delta %v, finer: a grid of %d points, want at most %d", delta, points, most)
		}
		if best.high < narrow.high || !(narrow.high > 0) || math.IsInf(narrow.high, 1) {
			t.Errorf("delta %v: epsilon %v, on a finer grid %v", delta, best.high, narrow.high)
		}
	}
}

// A finer grid is for the lower bound's sake: it is not made where the mass that sources
// move up is more than delta, which no grid mends.
func TestPLDRefinesNotInVain(t *testing.T) {
	for delta, refined := range map[float64]bool{1e-12: true, 1e-30: false} {
		points := 0
		c := gridComposition(7, widest{poissonLoss{poissonGaussian{0.5, 1}, true}, &points})
		c.maxGrid = 1 << 14
		best := c.epsilon(delta)
		best.low, points = 0, 0
		if c.refine(best, delta, 0, DefaultExcess); points > 0 != refined {
			t.Errorf("delta %v: refined on %d points, want refined %v", delta, points, refined)
		}
	}
}
