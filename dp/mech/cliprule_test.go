package mech

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/rng"
)

var (
	onlineRule   = ClipRule{Signal: SignalDirections, GradientNoise: 1.01, Rate: 0.0025, StepRate: 0.0025}
	quantileRule = ClipRule{Signal: SignalCount, GradientNoise: 1.05, Rate: 0.2, Quantile: 0.5}
)

func streamOf(seed uint64, purpose string) *rng.Stream {
	family := rng.NewFamily(seed, purpose)
	return family.Stream(0, 0)
}

// openSteps are many steps of a rule, paid for.
func openSteps(t *testing.T, rule StepRule, from Randomness) *Steps {
	t.Helper()
	s := new(Steps)
	paid := paidFor(t, event.ClaimProved, event.Repeated{Times: 50_000, Of: rule.Event(event.ClaimProved)})
	if err := s.Open(paid, rule, SystemEntropy(), from); err != nil {
		t.Fatal(err)
	}
	return s
}

// makeStep noises one step on given gradients, by floats or integers, and returns the
// released sum.
func makeStep(t *testing.T, s *Steps, lanes **LaneSum[float64], exact **StepSum, gradients [][]float64, n int) []float64 {
	t.Helper()
	if err := s.Blank(); err != nil {
		t.Fatal(err)
	}
	out := make([]float64, n)
	if s.Exact() {
		sum, err := s.PrepareSum(*exact, n)
		if err != nil {
			t.Fatal(err)
		}
		*exact = sum
		for _, g := range gradients {
			if err := sum.Add(slices.Clone(g)); err != nil {
				t.Fatal(err)
			}
		}
		steps := make([]int64, n)
		lattice := sum.Lattice()
		if err := s.Release(steps, sum); err != nil {
			t.Fatal(err)
		}
		lattice.Float(out, steps)
		return out
	}
	sum, err := PrepareLanes(s, *lanes, n, 3)
	if err != nil {
		t.Fatal(err)
	}
	*lanes = sum
	for i, g := range gradients {
		norm, err := Norm(g)
		if err != nil {
			t.Fatal(err)
		}
		err = sum.AddWeighted(i%3, []float64{norm}, make([]float64, 1), func(dst, factors []float64) {
			for j, v := range g {
				dst[j] += factors[0] * v
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := SimulateStep(s, out, sum); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestJointNoiseIsWhatWasPaidFor measures the noise of both sums of a step on nothing,
// and holds what they amount to together against what the step was charged for. Each
// variance is of 20,000 values, so that 6 deviations of it (a false alarm in 1e8 runs) are
// 6 %; noising the directions as line 13 of algorithm 3 prints it, by the gradients'
// share, would be off by a factor of 50.
func TestJointNoiseIsWhatWasPaidFor(t *testing.T) {
	const n, tolerance = 20_000, 0.06
	for name, from := range map[string]Randomness{"simulated": randomness(), "exact": {Exact: NewEntropy(streamOf(5, "exact"))}} {
		for _, clipping := range []ClipRule{onlineRule, {Signal: SignalDirections, GradientNoise: 1.5}} {
			rule := StepRule{Clip: 0.3, Noise: 0.8, Sampling: event.Poisson, Rate: 0.1, Batch: 100, Clipping: clipping}
			s := openSteps(t, rule, from)
			var lanes *LaneSum[float64]
			var exact *StepSum
			gradient := makeStep(t, s, &lanes, &exact, nil, n)
			var state ClipState
			s.Save(&state)
			direction := make([]float64, n)
			for i, v := range state.Direction {
				direction[i] = float64(v)
			}
			spread := func(v []float64) float64 {
				norm, _ := Norm(v)
				return norm / math.Sqrt(n)
			}
			nuG, nuQ := spread(gradient)/rule.Clip, spread(direction)
			joint, err := account.JointNoise(nuG, nuQ)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(joint/rule.Noise-1) > tolerance || math.Abs(nuG/(clipping.GradientNoise*rule.Noise)-1) > tolerance {
				t.Errorf("%s: noises %v and %v amount to %v, charged was %v", name, nuG, nuQ, joint, rule.Noise)
			}
			g, q := clipping.noises(rule.Noise)
			if joint, err := account.JointNoise(g, q); err != nil || joint < rule.Noise {
				t.Errorf("the split %v, %v amounts to %v, charged was %v: %v", g, q, joint, rule.Noise, err)
			}
		}
	}
}

// TestUndrawnNoiseMovesTheClipAsDrawnNoise: where of the directions' noise only its product
// with the next gradient is drawn, the clip rises as often as with exact noise, of which
// every coordinate is. Shares of 6,000 pairs of steps, 0.82 each, differ by more than 0.037,
// 5.2 deviations, in one of 5e6 runs; without the noise the first would be 0.09 larger.
func TestUndrawnNoiseMovesTheClipAsDrawnNoise(t *testing.T) {
	const pairs, tolerance = 6_000, 0.037
	rule := StepRule{Clip: 0.03, Noise: 1, Sampling: event.Poisson, Rate: 0.1, Batch: 100, Clipping: ClipRule{Signal: SignalDirections, GradientNoise: 1.5, Rate: 1e-12}}
	rises := func(from Randomness, kept bool) float64 {
		var lanes *LaneSum[float64]
		var exact *StepSum
		s, up := openSteps(t, rule, from), 0.0
		for range pairs {
			makeStep(t, s, &lanes, &exact, [][]float64{{5, 0}, {5, 0}}, 2)
			if kept {
				s.Save(new(ClipState))
			}
			before := s.Clip()
			makeStep(t, s, &lanes, &exact, [][]float64{{5, 0}, {5, 0}}, 2)
			if s.Clip() > before {
				up++
			}
		}
		return up / pairs
	}
	want := rises(Randomness{Exact: NewEntropy(streamOf(6, "exact"))}, false)
	for _, kept := range []bool{false, true} {
		if got := rises(randomness(), kept); math.Abs(got-want) > tolerance {
			t.Errorf("kept in between %v: the clip rises in %v of all steps, with exact noise in %v", kept, got, want)
		}
	}
}

// TestOneExampleMovesBothSumsByWhatIsPaid takes an example away, by integers: gradients
// and directions, each divided by its own noise, move by at most 1/nu together.
func TestOneExampleMovesBothSumsByWhatIsPaid(t *testing.T) {
	stream := streamOf(8, "gradients")
	for _, clipping := range []ClipRule{onlineRule, quantileRule} {
		rule := StepRule{Clip: 0.7, Noise: 1.3, Sampling: event.Poisson, Rate: 0.1, Batch: 100, Clipping: clipping}
		nuG, nuQ := clipping.noises(rule.Noise)
		unit := 1.0
		if clipping.Signal == SignalCount {
			unit = 0.5
		}
		for _, length := range []float64{0, 1e-9, 0.69, 0.7, 0.7000001, 5, 1e12, math.Inf(1), math.NaN()} {
			s := openSteps(t, rule, Randomness{Exact: SystemEntropy()})
			sum, err := s.PrepareSum(nil, 5)
			if err != nil {
				t.Fatal(err)
			}
			v := make([]float64, 5)
			for i := range v {
				v[i] = stream.Normal()
			}
			norm, _ := Norm(v)
			for i := range v {
				v[i] *= length / norm
			}
			if err := sum.Add(v); err != nil {
				t.Fatal(err)
			}
			gradient, second := make([]float64, 5), make([]float64, len(sum.second.sum))
			sum.gradients.lattice.Float(gradient, sum.gradients.sum)
			sum.second.lattice.Float(second, sum.second.sum)
			g, _ := Norm(gradient)
			q, _ := Norm(second)
			moved := math.Hypot(g/(nuG*rule.Clip), q/(nuQ*unit))
			if moved > 1/rule.Noise {
				t.Errorf("signal %d: an example of norm %v moves the sums by %v, paid was %v", clipping.Signal, length, moved, 1/rule.Noise)
			}
			if length == 5 && moved < 0.99/rule.Noise {
				t.Errorf("signal %d: the test cannot see a move: %v of %v", clipping.Signal, moved, 1/rule.Noise)
			}
		}
	}
}

// TestRulesAreTheirFormulas: with next to no noise, clip and pace are those of algorithm 3
// and of Andrew et al., worked out plainly, by floats and by integers alike; and steps
// that are interrupted and go on end where the others do.
func TestRulesAreTheirFormulas(t *testing.T) {
	const n, steps = 6, 12
	for _, clipping := range []ClipRule{
		{Signal: SignalDirections, GradientNoise: 1.01, Rate: 0.03, StepRate: 0.05, Decay: 0.01, StepDecay: 0.02},
		{Signal: SignalCount, GradientNoise: 1.01, Rate: 0.2, Quantile: 0.3},
		{Decay: 0.1, Lowest: 0.5},
	} {
		for _, from := range []Randomness{randomness(), {Exact: SystemEntropy()}} {
			for _, interrupted := range []bool{false, true} {
				rule := StepRule{Clip: 1, Noise: 1e-7, Sampling: event.Poisson, Rate: 0.1, Batch: 8, Clipping: clipping}
				s := openSteps(t, rule, from)
				var lanes *LaneSum[float64]
				var exact *StepSum
				clip, pace := 1.0, 1.0
				var lastG, lastQ []float64
				stream := streamOf(4, "gradients")
				for step := range steps {
					gradients := make([][]float64, 8)
					g, q, inside := make([]float64, n), make([]float64, n), 0.0
					for i := range gradients {
						v := make([]float64, n)
						for j := range v {
							v[j] = 0.5*stream.Normal() + 0.2*math.Sin(float64(step))
						}
						gradients[i] = v
						norm, _ := Norm(v)
						for j, x := range v {
							g[j] += x / math.Max(1, norm/clip)
							if norm > clip {
								q[j] += x / norm
							}
						}
						if norm <= clip {
							inside++
						}
					}
					got := makeStep(t, s, &lanes, &exact, gradients, n)
					for j := range g {
						if math.Abs(got[j]-g[j]) > 1e-4 {
							t.Fatalf("%+v, step %d: the sum is %v, want %v", clipping, step, got, g)
						}
					}
					switch clipping.Signal {
					case SignalDirections:
						if lastG != nil {
							clip *= math.Exp(clipping.Rate * sign(dotOf(g, lastQ)))
							pace *= math.Exp(clipping.StepRate * sign(dotOf(g, lastG)))
						}
					case SignalCount:
						clip *= math.Exp(-0.2 * (inside/8 - 0.3))
					}
					lastG, lastQ = g, q
					clip, pace = math.Max(clip*math.Exp(-clipping.Decay), clipping.Lowest), pace*math.Exp(-clipping.StepDecay)
					if math.Abs(s.Clip()/clip-1) > 1e-6 || math.Abs(s.Pace()/pace-1) > 1e-6 {
						t.Fatalf("%+v, step %d: clip %v and pace %v, want %v and %v", clipping, step, s.Clip(), s.Pace(), clip, pace)
					}
					if interrupted {
						var state ClipState
						s.Save(&state)
						s = openSteps(t, rule, from)
						s.Continue(&state)
					}
				}
			}
		}
	}
}

func dotOf(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// TestRuleWithoutAShareIsRefused: a second sum that nothing pays for, limits that the
// clip begins outside of, and numbers that are none.
func TestRuleWithoutAShareIsRefused(t *testing.T) {
	for name, clipping := range map[string]ClipRule{
		"no share":      {Signal: SignalDirections, GradientNoise: 1},
		"less than all": {Signal: SignalCount, GradientNoise: 0.9},
		"above":         {Highest: 0.5},
		"below":         {Lowest: 2},
		"not a number":  {Decay: math.NaN()},
	} {
		rule := StepRule{Clip: 1, Noise: 1, Sampling: event.Poisson, Rate: 0.1, Clipping: clipping}
		paid := paidFor(t, event.ClaimProved, rule.Event(event.ClaimProved))
		if err := new(Steps).Open(paid, rule, SystemEntropy(), randomness()); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

// TestTraceCounts holds what a watched step counts against plain counting.
func TestTraceCounts(t *testing.T) {
	rule := StepRule{Clip: 1, Noise: 1e-9, Sampling: event.Poisson, Rate: 0.1, Batch: 4, Clipping: onlineRule}
	s := openSteps(t, rule, randomness())
	var trace StepTrace
	s.Watch(&trace)
	var lanes *LaneSum[float64]
	var exact *StepSum
	for range 3 {
		makeStep(t, s, &lanes, &exact, [][]float64{{3, 0}, {0.5, 0}, {0, 2e-8}, {0, 0}}, 2)
	}
	want := StepTrace{Made: 3, Inside: 9, Beyond: 3, ClipUp: 2, ClipSigns: 2, StepUp: 2, StepSigns: 2, ClipAgree: 2, StepAgree: 2, Compared: 2}
	want.Norms[0], want.Norms[8], want.Norms[23], want.Norms[24] = 3, 3, 3, 3
	if trace != want {
		t.Errorf("%+v\nwant %+v", trace, want)
	}
}

// TestAgreementIsWithTheSumsWithoutNoise: where all steps have the same gradients, their sums
// without noise always point the same way, so that signs agree where they raise clip and
// step, however large the noise is: of few values, which are kept, and of many, whose noise
// is drawn again to be taken away. That a noise of this size raises the step in all of 40
// steps has a probability of 2^-39.
func TestAgreementIsWithTheSumsWithoutNoise(t *testing.T) {
	const steps = 40
	rule := StepRule{Clip: 1, Noise: 50, Sampling: event.Poisson, Rate: 0.1, Batch: 4, Clipping: onlineRule}
	rule.Clipping.Rate, rule.Clipping.StepRate = 1e-9, 1e-9
	for _, n := range []int{5, manyNormals, manyWords + 7} {
		s := openSteps(t, rule, randomness())
		var trace StepTrace
		s.Watch(&trace)
		var lanes *LaneSum[float64]
		var exact *StepSum
		gradient := make([]float64, n)
		gradient[0], gradient[n-1] = 2, 1
		for range steps {
			makeStep(t, s, &lanes, &exact, [][]float64{gradient, gradient}, n)
		}
		switch {
		case trace.Compared != steps-1:
			t.Errorf("%d values: %d of %d steps were compared", n, trace.Compared, steps)
		case trace.StepUp == 0 || trace.StepUp == steps-1:
			t.Errorf("%d values: noise moves no sign", n)
		case trace.StepAgree != trace.StepUp || trace.ClipAgree != trace.ClipUp:
			t.Errorf("%d values: %d and %d signs agree, %d and %d are up", n, trace.StepAgree, trace.ClipAgree, trace.StepUp, trace.ClipUp)
		}
		s.Save(new(ClipState)) // which noises the last directions
		made := trace.Compared
		if makeStep(t, s, &lanes, &exact, [][]float64{gradient, gradient}, n); trace.Compared != made {
			t.Errorf("%d values: signs were compared with what a state had noised", n)
		}
	}
}
