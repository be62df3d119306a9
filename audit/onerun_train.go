package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/sim"
)

// train makes the run on its data, with the canaries beside one participant's examples.
func (p *oneRun) train(ctx context.Context, federation *data.Federation) error {
	if fl.IsCentral(p.run.Algorithm.Kind) {
		federation = federation.Pooled()
	}
	who, err := victimOf(federation, p.o.Client)
	if err != nil {
		return err
	}
	m, err := model.Of(p.run, federation.Shape())
	if err != nil {
		return fmt.Errorf("one run: %w", err)
	}
	p.client, p.parameters, p.uncovered = federation.Train[who].Name, m.Parameters(), federation.NotCovered
	if p.o.Kind == CanaryExamples {
		return p.trainOnExamples(ctx, federation, who, m)
	}
	g := p.canaries
	if m.Parameters() < len(g.in) {
		return fmt.Errorf("one run: the model has %d parameters, and every one of %d canaries needs its own; allowed: at most %d canaries, or steps alone, without a model", m.Parameters(), len(g.in), m.Parameters())
	}
	order := make([]int, m.Parameters())
	for i := range order {
		order[i] = i
	}
	family := rng.NewFamily(p.run.Seed, "canary coordinates")
	family.Stream(0, 0).Shuffle(order)
	copy(g.at, order)
	s, err := sim.NewOn(p.run, federation, func(m model.Model) model.Model { return withCanaries{m, g} })
	if err != nil {
		return err
	}
	defer s.Close()
	_, participants, _ := s.Prepared()
	g.victim = participants[who].Data
	if err := p.rounds(ctx, s, who, g); err != nil {
		return err
	}
	return g.complete()
}

// rounds makes all of them; the victim pays from a purse.
func (p *oneRun) rounds(ctx context.Context, s *sim.Simulation, who int, purse fl.Purse) error {
	_, participants, _ := s.Prepared()
	participants[who].Purse = purse
	s.Until(ctx)
	for round := 1; ; round++ {
		more, err := s.Step()
		if err != nil {
			return err
		}
		if p.o.Tick != nil {
			p.o.Tick(round)
		}
		if !more {
			return nil
		}
	}
}

// victimOf is the participant of a name; the first one without one.
func victimOf(f *data.Federation, name string) (int, error) {
	if name == "" {
		return 0, nil
	}
	names := f.Names()
	who := slices.Index(names, name)
	if who < 0 {
		return 0, fmt.Errorf("one run: %q is no participant; the first ones are %q", name, names[:min(3, len(names))])
	}
	return who, nil
}

// trainOnExamples has the canaries be examples, scored by the loss that they have in the
// end.
func (p *oneRun) trainOnExamples(ctx context.Context, federation *data.Federation, who int, m model.Model) error {
	g := p.canaries
	canaries, err := exampleCanaries(federation, who, len(g.in), p.run.Seed)
	if err != nil {
		return err
	}
	var in []int
	for i := range g.in {
		if g.in[i] {
			in = append(in, i)
		}
	}
	those, planted := canaries.Pick(in), *federation
	planted.Train = slices.Clone(federation.Train)
	planted.Train[who] = federation.Train[who].With(&those)
	s, err := sim.NewOn(p.run, &planted, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	var paid canaryRun
	if err := p.rounds(ctx, s, who, &paid); err != nil {
		return err
	}
	g.charged = paid.charged
	for _, r := range g.charged {
		g.round = canaryRound{}
		if err := g.round.read(r.What, 1); err != nil {
			return fmt.Errorf("one run: %w", err)
		}
	}
	theta, err := s.ModelOf(who)
	if err != nil {
		return err
	}
	learner, err := m.Learner()
	if err != nil {
		return err
	}
	if err := learner.Losses(g.scores, theta, &canaries); err != nil {
		return fmt.Errorf("one run: %w", err)
	}
	for i := range g.scores {
		g.scores[i] = -g.scores[i] // a small loss looks trained on
	}
	return nil
}

// exampleCanaries are examples that are nobody's: rows of words drawn at random, pictures
// of noise, and rows whose every value is drawn from its own column of the victim's, so
// that scales are right and nothing else is. Labels are drawn too.
func exampleCanaries(f *data.Federation, who, n int, seed uint64) (data.Client, error) {
	victim := &f.Train[who]
	family := rng.NewFamily(seed, "canary examples")
	s := family.Stream(0, 0)
	var c data.Client
	for range victim.Sensitive {
		c.Sensitive = append(c.Sensitive, slices.Repeat([]int32{-1}, n))
	}
	if im := victim.Images; im != nil {
		store := &data.Images{Height: im.Height, Width: im.Width, Channels: im.Channels}
		for i := range n {
			for range im.Height * im.Width * im.Depth() {
				store.Pixels = append(store.Pixels, byte(s.Below(256)))
			}
			if im.Targets != nil {
				store.Targets = append(store.Targets, im.Targets[s.Below(len(im.Targets))])
			} else {
				store.Labels = append(store.Labels, int(s.Below(max(1, f.Classes))))
			}
			c.Index = append(c.Index, i)
		}
		c.Images = store
		return c, nil
	}
	if victim.Len() == 0 && f.Vocabulary == 0 {
		return c, fmt.Errorf("one run: %q has no examples whose values canaries could be drawn from; name another participant", victim.Name)
	}
	c.Rows = data.Rows{Features: victim.Features}
	for range n {
		for j := range victim.Features {
			if f.Vocabulary > 0 {
				c.X = append(c.X, float64(s.Below(f.Vocabulary)))
			} else {
				c.X = append(c.X, victim.X[int(s.Below(victim.Len()))*victim.Features+j])
			}
		}
		switch {
		case f.Vocabulary > 0:
			c.Y = append(c.Y, 0)
		case f.Classes > 0:
			c.Y = append(c.Y, float64(s.Below(f.Classes)))
		default:
			c.Y = append(c.Y, victim.Y[s.Below(victim.Len())])
		}
	}
	return c, nil
}
