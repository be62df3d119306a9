package audit

import (
	"context"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// sabotage is a fault of the step itself: it gets the noised sum as shipped and the
// clipped sum without noise, at a clip of choice.
type sabotage func(step int, noised []float64, clean func(clip float64) []float64, clip float64)

// sabotaged is a model whose steps have a fault.
type sabotaged struct {
	model.Model
	fault sabotage
}

func (m sabotaged) Learner() (model.Learner, error) {
	l, err := m.Model.Learner()
	return &sabotagedLearner{Learner: l, fault: m.fault}, err
}

type sabotagedLearner struct {
	model.Learner
	fault sabotage
	step  int
}

func (l *sabotagedLearner) Gradient(dst, theta []float64, c *data.Client, batch []int, s *model.Step) error {
	clip := s.Paid.Clip()
	if err := l.Learner.Gradient(dst, theta, c, batch, s); err != nil {
		return err
	}
	l.step++
	var fault error
	l.fault(l.step, dst, func(clip float64) []float64 {
		bare := *s
		bare.Paid, bare.Clip = nil, clip
		clean := make([]float64, len(dst))
		fault = l.Learner.Gradient(clean, theta, c, batch, &bare)
		return clean
	}, clip)
	return fault
}

// lessNoisy has a share of the noise.
func lessNoisy(share float64) sabotage {
	return func(_ int, noised []float64, clean func(float64) []float64, clip float64) {
		for j, v := range clean(clip) {
			noised[j] = v + share*(noised[j]-v)
		}
	}
}

// faults are the three that must be found, and fainter ones.
var faults = map[string]sabotage{
	"noise times 0.5": lessNoisy(0.5),
	"clip ignored": func(_ int, noised []float64, clean func(float64) []float64, clip float64) {
		wide := clean(1e9)
		for j, v := range clean(clip) {
			noised[j] += wide[j] - v
		}
	},
	"one step without noise": func(step int, noised []float64, clean func(float64) []float64, clip float64) {
		if step == 7 {
			copy(noised, clean(clip))
		}
	},
}

// gradientRun is a run of 24 full batches, whose curve is quick to compute, or with -soak
// at rate 0.5, whose is not.
func gradientRun(seed uint64) config.Run {
	run := studyRun(seed)
	run.Algorithm.Rounds, run.Algorithm.Local.Steps, run.Algorithm.Local.Batch = 2, 12, 256
	run.Privacy.PublicSize, run.Privacy.NoiseMultiplier = 256, 3.2
	if *soak {
		run.Algorithm.Local.Batch, run.Privacy.NoiseMultiplier = 128, 1.5
	}
	return run
}

// play is one play of the steps, with a fault if there is one.
func play(t *testing.T, run config.Run, each int, fault sabotage) *gradientCanaries {
	t.Helper()
	in := make([]bool, 2*each)
	for i := range in {
		in[i] = i%2 == 1
	}
	g := newGradientCanaries(in)
	var meddle func(model.Model) model.Model
	if fault != nil {
		meddle = func(m model.Model) model.Model { return sabotaged{m, fault} }
	}
	if err := g.playSteps(context.Background(), run, "", meddle, nil); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestGradientAudit: nothing is found in the mechanism as shipped, with float noise and
// on the lattice, and the three faults are, at 500 canaries a side, whatever the seed:
// half the noise and no clip through the curve, a step without noise by that step. Of
// 3*20 audits that must find, none misses; were the power below 0.95, that would come
// with a chance of 5 %. Of 21 that must not, none may exceed the claim, which has the
// chance FalseAlarm (below 1e-3, as is held) each.
func TestGradientAudit(t *testing.T) {
	const each = 500
	honest := play(t, gradientRun(1), each, nil)
	plan, err := honest.plan(gradientRun(1), CanaryOptions{Runs: each, Delta: 1e-5, Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	judged := func(name string, g *gradientCanaries) GradientAudit {
		t.Helper()
		a, err := g.judge(plan)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: claim %.3f tight %.3f; at least %.3f (curve), %.3f (curve-free), %.3f (step %d); %d of %d right, noise at most %.3f, of a step %.3f; false alarm %.1e, power %.4f: %s",
			name, float64(a.Privacy.Epsilon), float64(a.Tight), float64(a.AtLeast), float64(a.CurveFree), float64(a.StepAtLeast), a.Step, a.Right, a.Guesses, float64(a.NoiseAtMost), float64(a.StepNoiseAtMost), a.FalseAlarm, a.Power, a.Verdict)
		return a
	}
	// found is what makes judge say that the claim is exceeded, without its searches.
	found := func(g *gradientCanaries) bool {
		share, _ := quietest(g.noises(plan.level()))
		return g.sides().guess(plan.o) >= plan.overAt || share < 0.1
	}
	if a := judged("as shipped", honest); a.Exceeds || a.Suspicious() || a.AtLeast < 0.6*a.Tight || a.AllSteps != 24 || a.Rounds != 2 || a.Steps != 12 || a.FalseAlarm > 1e-3 {
		t.Errorf("as shipped: %+v", a)
	}
	for name, fault := range faults {
		g := play(t, gradientRun(1), each, fault)
		a := judged(name, g)
		if !a.Exceeds || !found(g) || !a.Suspicious() {
			t.Errorf("%s is not found: %s", name, a.Verdict)
		}
		if name == "one step without noise" && (a.Step != 7 || a.StepNoiseAtMost > 1e-6 || a.StepAtLeast < 20) {
			t.Errorf("%s: step %d has %v of its noise at most, epsilon %v at least", name, a.Step, a.StepNoiseAtMost, a.StepAtLeast)
		}
	}
	for seed := uint64(2); seed <= 21; seed++ {
		for name, fault := range faults {
			if !found(play(t, gradientRun(seed), each, fault)) {
				t.Errorf("seed %d: %s is not found", seed, name)
			}
		}
		run := gradientRun(seed)
		if seed%5 == 0 || *soak {
			run.Privacy.Noise = fl.NoiseSeeded
		}
		if found(play(t, run, each, nil)) {
			t.Errorf("seed %d, noise %s: something is found where nothing is", seed, run.Privacy.Noise)
		}
	}
}
