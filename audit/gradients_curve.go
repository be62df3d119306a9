package audit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// GradientAudit is what an attacker who sees every noised step learned about gradients
// that were in or not. Embedded are the two bounds of the many-run audit, with every
// canary in the place of a run: its coordinate's noise, and whether a batch draws it, are
// its own. Epsilons are at Privacy.Delta.
type GradientAudit struct {
	Canary
	AllSteps int `json:"all_steps"`
	// StepNoiseAtMost is the least of all steps' shares of the noise that was charged, as
	// far as the coordinates without a canary prove; Step is whose, from 1.
	StepNoiseAtMost event.Number `json:"step_noise_at_most"`
	Step            int          `json:"step"`
	StepAtLeast     event.Number `json:"step_epsilon_at_least"` // of that step alone

	steps []stepNoise
}

// stepNoise is a step's noise as a share of what was charged, with an interval.
type stepNoise struct{ share, low, high float64 }

// PlayGradients audits a run's mechanism by its own curve: o.Runs canaries are in and as
// many out, in one play of the run's steps without data. The confidence is of all three
// bounds together.
func PlayGradients(ctx context.Context, run config.Run, o CanaryOptions) (GradientAudit, error) {
	return playGradients(ctx, run, o, nil)
}

func playGradients(ctx context.Context, run config.Run, o CanaryOptions, meddle func(model.Model) model.Model) (GradientAudit, error) {
	if err := o.CheckGradients(); err != nil {
		return GradientAudit{}, err
	}
	if faults := append(fl.Check(run), CheckMechanism(run)...); len(faults) > 0 {
		return GradientAudit{}, fmt.Errorf("gradient canaries: %w", faults)
	}
	o.Delta, o.Confidence = cmp.Or(o.Delta, run.Privacy.Delta), cmp.Or(o.Confidence, 0.95)
	in := make([]bool, 2*o.Runs)
	for i := range in {
		in[i] = i%2 == 1
	}
	g := newGradientCanaries(in)
	if err := g.playSteps(ctx, run, "", meddle, o.Tick); err != nil {
		return GradientAudit{}, err
	}
	plan, err := g.plan(run, o)
	if err != nil {
		return GradientAudit{}, err
	}
	return g.judge(plan)
}

// gradientPlan is what the plays are held against: it follows from what was charged.
type gradientPlan struct {
	*canaryPlan         // of two bounds
	confidence  float64 // of all three
}

// level is each bound's share of what may go wrong.
func (p *gradientPlan) level() float64 { return (1 - p.confidence) / 3 }

func (g *gradientCanaries) plan(run config.Run, o CanaryOptions) (*gradientPlan, error) {
	p := &gradientPlan{confidence: o.Confidence}
	o.Confidence = 1 - 2*p.level()
	game := &canaryGame{run: run, charged: []event.Release{g.together()}, attack: g.steps}
	for i := range game.attack {
		game.attack[i].settle()
	}
	var err error
	p.canaryPlan, err = game.plan(o)
	return p, err
}

// sides are the scores of those that are out and in.
func (g *gradientCanaries) sides() (scores canaryScores) {
	for i, in := range g.in {
		side := 0
		if in {
			side = 1
		}
		scores[side] = append(scores[side], g.scores[i])
	}
	return scores
}

// judge turns what was seen into bounds.
func (g *gradientCanaries) judge(plan *gradientPlan) (GradientAudit, error) {
	c, err := plan.canaryPlan.judge(g.sides())
	if err != nil {
		return GradientAudit{}, err
	}
	out := GradientAudit{Canary: c, AllSteps: len(g.still)}
	out.Rounds, out.Steps, out.Confidence, out.Assumes = len(g.charged), g.round.steps, plan.confidence, gradientAssumes
	if g.round.nodes > 0 {
		out.Assumes = append(slices.Clone(gradientAssumes), personAssumes)
		out.Multiplier *= g.round.moves() // in clips
	}
	out.steps = g.noises(plan.level())
	out.StepNoiseAtMost, out.Step = quietest(out.steps)
	if out.StepAtLeast, err = g.stepEpsilon(plan, out.Step, out.StepNoiseAtMost); err != nil {
		return GradientAudit{}, err
	}
	out.Exceeds = max(out.AtLeast, out.CurveFree, out.StepAtLeast) > out.Privacy.Epsilon
	out.Verdict = out.verdict()
	return out, nil
}

// together is all that was charged, as one release.
func (g *gradientCanaries) together() event.Release {
	all := g.charged[0]
	parts := make([]event.Event, len(g.charged))
	same := true
	for i, r := range g.charged {
		parts[i] = r.What
		same = same && fmt.Sprint(r.What) == fmt.Sprint(all.What)
	}
	if same {
		all.What = event.Repeated{Of: all.What, Times: int64(len(parts))}
	} else {
		all.What = event.Composed{Parts: parts}
	}
	return all
}

// noises are every step's shares of what was charged. Where no canary is, the squares add up
// to a chi-square of what the step drew, so that no step exceeds its upper end, all steps
// together at a level; nor does any fall below its lower end, at the same level.
func (g *gradientCanaries) noises(level float64) []stepNoise {
	free := 0
	for _, in := range g.in {
		if !in {
			free++
		}
	}
	half, each := float64(free)/2, level/float64(len(g.still))
	least, most := 2*mathext.GammaIncRegInv(half, each), 2*mathext.GammaIncRegCompInv(half, each)
	out := make([]stepNoise, len(g.still))
	for i, squares := range g.still {
		out[i] = stepNoise{math.Sqrt(squares / float64(free)), math.Sqrt(squares / most), math.Sqrt(squares / least)}
	}
	return out
}

// quietest is the step with the least noise, from 1, and a share of what was charged that
// it does not exceed.
func quietest(steps []stepNoise) (share event.Number, step int) {
	share = event.Number(math.Inf(1))
	for i, n := range steps {
		if s := event.Number(n.high); s < share {
			share, step = s, i+1
		}
	}
	return share, step
}

// stepEpsilon is epsilon of one step with at most a share of its noise, rounded down.
func (g *gradientCanaries) stepEpsilon(plan *gradientPlan, step int, share event.Number) (event.Number, error) {
	charged, one := g.steps[step-1], plan.curve
	alone := g.charged[0]
	alone.What = charged.alone()
	one.charged = []event.Release{alone}
	// With less noise still epsilon is larger: a share that the curve is quick at will do.
	least, err := one.atLeast(max(float64(share), min(1.0/16, 0.1/charged.noise)), plan.o.Delta)
	return event.Number(least), err
}

// gradientAssumes is what the bounds rest on.
var gradientAssumes = []string{
	"all: the noise of different coordinates, and which canaries a batch draws, are independent of one another",
	"through the curve: the steps have the trade-off curve of what was charged, with all noise times one unknown factor; a mechanism that errs otherwise is taken for the one of these that can be guessed as well",
	"of one step: its noise is normal, times an unknown factor",
}

func (a *GradientAudit) verdict() string {
	claim, least := float64(a.Privacy.Epsilon), float64(max(a.AtLeast, a.CurveFree, a.StepAtLeast))
	switch {
	case a.Exceeds && a.StepAtLeast > a.Privacy.Epsilon && a.AtLeast <= a.Privacy.Epsilon:
		return fmt.Sprintf("the mechanism leaks more than it claims: step %d of %d has at most %.3f of the noise that was charged, and epsilon %.4g at least, where %.4g was charged for all", a.Step, a.AllSteps, float64(a.StepNoiseAtMost), least, claim)
	case a.Exceeds:
		return fmt.Sprintf("the mechanism leaks more than it claims: epsilon is at least %.4g, %.4g was charged", least, claim)
	case a.Suspicious():
		return fmt.Sprintf("the claim of %.4g is not exceeded, but the noise is at most %.3f of what was charged (step %d: %.3f): something is wrong, or this is the one audit in %.0f that errs", claim, float64(a.NoiseAtMost), a.Step, float64(a.StepNoiseAtMost), 1/(1-a.Confidence))
	}
	return fmt.Sprintf("nothing was found: epsilon is at least %.4g, %.4g was charged; that does not show that the claim holds", least, claim)
}

// Suspicious says that less noise than was charged is proved, be it in one step.
func (a *GradientAudit) Suspicious() bool { return a.NoiseAtMost < 1 || a.StepNoiseAtMost < 1 }
