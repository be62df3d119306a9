package protect

import (
	"math"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
)

// TestLearnedClipDrawsWhatIsCharged: the noise on the mean and on the count together are
// the plan's, by the accountant's formula; both are seen in what is released.
func TestLearnedClipDrawsWhatIsCharged(t *testing.T) {
	const k = 200
	for _, share := range []float64{0, 1.3} {
		s := newServer(t, k, func(run *config.Run) {
			run.Privacy.Epsilon, run.Privacy.NoiseMultiplier = 0, 4
			run.Privacy.Clipping = config.Clipping{Rule: "quantile", GradientNoise: share}
		})
		joint, err := account.JointNoise(s.m.split.First.Multiplier, s.m.split.Second.Multiplier)
		if err != nil || math.Abs(joint/4-1) > 1e-12 || joint < 4 {
			t.Errorf("both noises amount to %v, not 4: %v", joint, err)
		}
		if want := 4 * 1.3; share > 0 && math.Abs(s.m.split.First.Multiplier/want-1) > 1e-12 {
			t.Errorf("updates have noise %v, not %v", s.m.split.First.Multiplier, want)
		}
		if count := s.m.split.Second.Multiplier * 0.5; share == 0 && math.Abs(count/(k/20)-1) > 1e-12 {
			t.Errorf("the count has noise %v, not that of a twentieth of %d", count, k)
		}
		start := s.a.Start()
		if got := s.deviation(start, nil) * k / (s.m.split.First.Multiplier * 0.5); math.Abs(got*got-1) > 4.9*math.Sqrt(2.0/2000) {
			t.Errorf("the noise on updates is %v of what it should be", got)
		}
		var squares float64
		for i := range serverRounds {
			st := start.Clone()
			st.Round = i
			s.round(st)
			kept := s.m.memory(st)
			// Nobody answered: the noised count, over k, is what moved the clip's logarithm.
			count := -math.Log(kept.clip()/0.5) / 0.2 * k
			squares += count * count / (s.m.split.Second.Multiplier * s.m.split.Second.Multiplier * 0.5 * 0.5)
		}
		if off := (squares - serverRounds) / math.Sqrt(2*serverRounds); math.Abs(off) > 5.5 { // chi-squared with 400 degrees: about once in a million
			t.Errorf("share %v: the count's noise is off by %.1f standard errors", share, off)
		}
	}
}

// TestCountedClipFindsTheQuantile: with hardly any noise the clip ends where the asked
// share of norms lies below it.
func TestCountedClipFindsTheQuantile(t *testing.T) {
	for _, c := range []struct{ quantile, low, high float64 }{{0.5, 5, 6}, {0.9, 9, 10}, {0.1, 1, 2}} {
		s := newServer(t, 10, func(run *config.Run) {
			run.Privacy.Epsilon, run.Privacy.NoiseMultiplier = 0, 1e-6
			run.Privacy.Clipping = config.Clipping{Rule: "quantile", Quantile: c.quantile, GradientNoise: 1.01}
		})
		st := s.a.Start()
		for range 200 {
			var updates [][]float64
			for norm := range 10 {
				u := make([]float64, s.m.n)
				u[norm%s.m.n] = float64(norm + 1)
				updates = append(updates, u)
			}
			s.round(st, updates...)
		}
		kept := s.m.memory(st)
		if clip := kept.clip(); clip < c.low*0.97 || clip > c.high*1.03 { // a step is 2 % at most
			t.Errorf("quantile %v of 1 to 10: the clip is %v", c.quantile, clip)
		}
	}
}

// TestOnlineClipAndStep follows algorithm 3 of paper 001 with hardly any noise: nothing
// moves at first; where updates go on in one direction, clip and step grow; where they turn
// back, both fall; a clip that nothing exceeds has no say.
func TestOnlineClipAndStep(t *testing.T) {
	const rate, stepRate = 0.1, 0.03
	for _, c := range []struct {
		name, learn string
		size        float64
		turns       float64
		clip, step  float64 // signs
	}{
		{"forth", "", 3, 1, 1, 1}, {"back and forth", "", 3, -1, -1, -1},
		{"forth", "clip", 3, 1, 1, 0}, {"forth", "step", 3, 1, 0, 1}, {"forth", "nothing", 3, 1, 0, 0},
	} {
		s := newServer(t, 5, func(run *config.Run) {
			run.Privacy.Epsilon, run.Privacy.NoiseMultiplier = 0, 1e-9
			run.Privacy.Clipping = config.Clipping{Rule: "online", Rate: rate, StepRate: stepRate, Learn: c.learn}
		})
		st, direction := s.a.Start(), 1.0
		for round := range 6 {
			u := make([]float64, s.m.n)
			u[1] = c.size * direction
			kept := s.m.memory(st)
			clip, step := kept.clip(), kept.head[keptStep]
			if before := max(0, float64(round-1)); math.Abs(clip/(0.5*math.Exp(rate*c.clip*before))-1) > 1e-9 || math.Abs(step/math.Exp(stepRate*c.step*before)-1) > 1e-9 {
				t.Errorf("%s, %q, round %d: clip %v, step %v", c.name, c.learn, round, clip, step)
			}
			if moved := s.round(st, u, u, u, u, u); math.Abs(moved[1]-direction*step*clip) > 1e-6 {
				t.Errorf("%s, %q, round %d: moved by %v with clip %v and step %v", c.name, c.learn, round, moved[1], clip, step)
			}
			direction *= c.turns
		}
	}
	s := newServer(t, 5, func(run *config.Run) {
		run.Privacy.Clipping = config.Clipping{Rule: "online", Rate: 1, Learn: "random"}
	})
	st, up := s.a.Start(), 0
	for range 100 {
		kept := s.m.memory(st)
		before := kept.clip()
		s.round(st)
		if kept.clip() > before {
			up++
		}
	}
	if up < 25 || up > 75 { // a coin does so about once in a million
		t.Errorf("coins moved the clip up %d times of 100", up)
	}
}

// TestClipKeepsItsLimits: public limits hold, whatever is released.
func TestClipKeepsItsLimits(t *testing.T) {
	for _, quantile := range []float64{0.999, 0.001} {
		s := newServer(t, 4, func(run *config.Run) {
			run.Privacy.Epsilon, run.Privacy.NoiseMultiplier = 0, 5
			run.Privacy.Clipping = config.Clipping{Rule: "quantile", Quantile: quantile, Rate: 10, GradientNoise: 1.1, Lowest: 0.25, Highest: 2}
		})
		st, seen := s.a.Start(), map[float64]bool{}
		for range 50 {
			s.round(st)
			kept := s.m.memory(st)
			seen[kept.clip()] = true
		}
		for clip := range seen {
			if clip < 0.25 || clip > 2 {
				t.Errorf("the clip reached %v", clip)
			}
		}
		if !seen[0.25] || !seen[2] {
			t.Errorf("the limits were not reached: %v", seen)
		}
	}
}

// TestNoisesOfARoundAreApart: the noise on the updates and the noise on what the clip is
// learned from are independent, or one would take the other away. The mean of 2,000
// products leaves 0 ± 4.9/sqrt(2000) about once in a million.
func TestNoisesOfARoundAreApart(t *testing.T) {
	for _, noise := range []string{"simulated", fl.NoiseSeeded} {
		s := newServer(t, 4, func(run *config.Run) {
			run.Privacy.Noise, run.Privacy.Clipping.Rule = noise, "online"
		})
		var product, n float64
		for i := range serverRounds {
			st := s.a.Start()
			st.Round = i
			s.round(st) // nobody answers: all is noise
			kept := s.m.memory(st)
			for j, v := range kept.mean {
				product += v * 4 / (s.m.split.First.Multiplier * 0.5) * kept.second[j] / s.m.split.Second.Multiplier
				n++
			}
		}
		if product /= n; math.Abs(product) > 4.9/math.Sqrt(n) {
			t.Errorf("%s: the noises' correlation is %v", noise, product)
		}
	}
}

// TestClipAndStepHaveSignsOfTheirOwn: who is beyond the clip decides about the clip, the
// mean of all about the step.
func TestClipAndStepHaveSignsOfTheirOwn(t *testing.T) {
	s := newServer(t, 5, func(run *config.Run) {
		run.Privacy.Epsilon, run.Privacy.NoiseMultiplier = 0, 1e-9
		run.Privacy.Clipping = config.Clipping{Rule: "online", Rate: 0.1, StepRate: 0.03}
	})
	st := s.a.Start()
	along := func(size float64) []float64 {
		u := make([]float64, s.m.n)
		u[2] = size
		return u
	}
	s.round(st, along(0.4), along(0.4), along(0.4), along(0.4), along(-7)) // one is too long, and goes the other way
	s.round(st, along(0.4), along(0.4), along(0.4), along(0.4), along(0.4))
	kept := s.m.memory(st)
	if clip, step := kept.clip()/0.5, kept.head[keptStep]; math.Abs(clip-math.Exp(-0.1)) > 1e-9 || math.Abs(step-math.Exp(0.03)) > 1e-9 {
		t.Errorf("the clip moved by %v and the step by %v; want one down, the other up", clip, step)
	}
}

// TestParticipantsSendWhatALearnedClipMustSee: a clip that may rise is not applied before
// the server has seen what is longer; one that stays is.
func TestParticipantsSendWhatALearnedClipMustSee(t *testing.T) {
	train, _ := fltest.Silos(1, 20, fltest.Features, 3)
	for rule, longer := range map[string]bool{"": false, "quantile": true, "online": true} {
		s := newServer(t, 1, func(run *config.Run) {
			run.Privacy.UpdateClip, run.Privacy.Clipping = 1e-6, config.Clipping{Rule: rule, GradientNoise: 1.1, Highest: 1e-3}
		})
		out, released := fltest.Respond(t, s.a, s.a.Start(), fltest.Prepared(t, s.a, fl.Participant{Data: &train[0]}))
		most := 1e-6
		if longer {
			most = 1e-3
		}
		if norm := distance(out, make([]float64, len(out))); !released || norm > most*(1+1e-9) || norm < most/2 {
			t.Errorf("rule %q: an update of length %v; the server sees up to %v", rule, norm, most)
		}
	}
}
