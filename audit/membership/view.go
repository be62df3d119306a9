package membership

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/compute"
	"github.com/coterie-fl/coterie/internal/pool"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/sim"
)

// eye computes losses of a population's examples under its models.
type eye struct {
	*population
	learner model.Learner
	pool    *pool.Pool
	ctx     context.Context
	placed  compute.Placed // where the target's run asks for it
}

// newEye must be closed.
func newEye(ctx context.Context, p *population) (*eye, error) {
	m, err := model.Of(p.run, p.federation.Shape())
	if err != nil {
		return nil, err
	}
	e := &eye{population: p, pool: pool.New(runtime.GOMAXPROCS(0)), ctx: ctx}
	m = model.Stoppable(m, func() bool { return ctx.Err() != nil })
	if e.placed, err = compute.On(p.run, m, data.PictureCount(p.federation.Train, p.federation.Validation)); err != nil {
		e.pool.Close()
		return nil, err
	}
	if e.learner, err = model.Spread(e.placed.Model, e.pool).Learner(); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *eye) close() {
	e.pool.Close()
	_ = e.placed.Close() // the losses are here
}

// sight is an attacked subject's examples, as a model reads them, and that model.
type sight struct {
	theta    []float64
	examples data.Client
	role     artifact.Role // of the model
}

// sights are the attacked subjects' under one folder of models.
func (e *eye) sights(m *artifact.Model) ([]sight, error) {
	var out []sight
	for k := range e.subjects {
		s := &e.subjects[k]
		if len(s.scored) == 0 {
			continue
		}
		c, err := e.choose(m, s)
		if err != nil {
			return nil, e.stopped(err)
		}
		shown := s.pool
		if len(s.scored) < s.pool.Len() {
			shown = s.pool.Pick(s.scored)
		}
		out = append(out, sight{c.Parameters(), scaled(shown, &c), c.Role})
	}
	return out, nil
}

// scaled are examples as a model reads them.
func scaled(examples data.Client, c *artifact.Choice) data.Client {
	if centre, scale := c.Scaled(); scale != nil {
		examples.Rows = examples.Standardised(centre, scale)
	}
	return examples
}

// choose is the model that a subject's examples are attacked by: its own, where it holds
// examples out to compare with; otherwise that of the client whose examples are attacked,
// or what the server can give a newcomer. Of clusters it is the one that fits all the
// subject's examples best.
func (e *eye) choose(m *artifact.Model, s *subject) (artifact.Choice, error) {
	name := e.by
	if e.own {
		name = s.name
	}
	c, err := m.Choose(name)
	if err == nil || !errors.Is(err, artifact.ErrNeedsLabels) {
		return c, err
	}
	var best artifact.Choice
	least := 0.0
	for k := range m.Clusters() {
		c, err := m.Cluster(k)
		if err != nil {
			return c, err
		}
		all := scaled(s.pool, &c)
		loss, _, err := e.learner.Judge(c.Parameters(), &all)
		if err != nil {
			return c, err
		}
		if k == 0 || loss < least {
			best, least = c, loss
		}
	}
	return best, nil
}

// losses are those of all attacked examples.
func (e *eye) losses(sights []sight) (losses, error) {
	return e.each(sights, func(_ int, dst []float64, s *sight) error { return e.learner.Losses(dst, s.theta, &s.examples) })
}

// noisy are those of one noisy neighbour of every example. Sigma is in units of the root
// mean square of what the noise is added to.
func (e *eye) noisy(sights []sight, seed uint64, neighbour int, sigma float64) (losses, error) {
	family := rng.NewFamily(seed, "noise of subjects")
	return e.each(sights, func(k int, dst []float64, s *sight) error {
		unit, err := model.InputRMS(e.learner, s.theta, &s.examples)
		if err != nil {
			return err
		}
		n := model.Noise{Deviation: sigma * unit, Seed: family.Stream(k, 0).Uint64(), Neighbour: neighbour}
		return model.NoisyLosses(e.learner, dst, s.theta, &s.examples, n)
	})
}

func (e *eye) each(sights []sight, losses func(k int, dst []float64, s *sight) error) (losses, error) {
	out, at := make([]float64, len(e.member)), 0
	for k := range sights {
		n := sights[k].examples.Len()
		if err := losses(k, out[at:at+n], &sights[k]); err != nil {
			return nil, e.stopped(err)
		}
		at += n
	}
	return out, nil
}

// stopped says that the context ended, if that is what happened.
func (e *eye) stopped(err error) error {
	if e.ctx.Err() != nil {
		return fmt.Errorf("%w while losses were computed; other models that were trained are kept", sim.ErrInterrupted)
	}
	return err
}
