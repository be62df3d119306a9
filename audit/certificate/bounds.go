package certificate

import (
	"context"
	"math"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
)

var inf = math.Inf(1)

// mechanism plays gradient canaries against the run's noised steps.
func mechanism(ctx context.Context, s Subject, p Planned, seed uint64, tick func(int)) (Bound, error) {
	run := s.Target.Run
	run.Seed = seed
	g, err := audit.PlayGradients(ctx, run, audit.CanaryOptions{Runs: p.Canaries / 2, Confidence: p.Confidence, Tick: tick})
	if err != nil {
		return Bound{}, refused(err)
	}
	b := ofCanary(Mechanism, p, g.Canary)
	b.AtLeast, b.Suspicious = max(b.AtLeast, g.StepAtLeast), g.Suspicious() && !g.Exceeds
	return b, nil
}

// canary plays many tiny runs with one row more or less.
func canary(ctx context.Context, s Subject, p Planned, seed uint64, tick func(int)) (Bound, error) {
	run := s.Target.Run
	run.Seed = seed
	c, err := audit.PlayCanary(ctx, run, audit.CanaryOptions{Runs: p.Canaries / 2, Confidence: p.Confidence, Tick: tick})
	if err != nil {
		return Bound{}, refused(err)
	}
	return ofCanary(Canary, p, c), nil
}

func ofCanary(name string, p Planned, c audit.Canary) Bound {
	power, half, alarm := event.Number(c.Power), event.Number(c.HalfPower), event.Number(c.FalseAlarm)
	return Bound{
		Audit: name, Confidence: p.Confidence, AtLeast: max(c.AtLeast, c.CurveFree), Charged: c.Privacy, Power: &power, HalfPower: &half, FalseAlarm: &alarm,
		Exceeds: c.Exceeds, Suspicious: c.Suspicious() && !c.Exceeds, Verdict: c.Verdict, Assumes: c.Assumes,
	}
}

// oneRun trains the run once, with canaries that are in by coins.
func oneRun(ctx context.Context, s Subject, folder *data.Folder, p Planned, seed uint64, tick func(int)) (Bound, error) {
	run := s.Target.Run
	run.Seed = seed
	r, err := audit.PlayOneRun(ctx, run, folder, audit.OneRunOptions{Canaries: p.Canaries, StepsOnly: p.StepsOnly, Confidence: p.Confidence, Tick: tick})
	if err != nil {
		return Bound{}, refused(err)
	}
	return Bound{
		Audit: OneRun, Confidence: p.Confidence, AtLeast: r.AtLeast, Ceiling: &r.Ceiling, Charged: r.Privacy,
		Exceeds: r.Exceeds, Verdict: r.Verdict, Assumes: r.Assumes,
	}, nil
}
