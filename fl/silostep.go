package fl

import (
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/model"
)

// siloScratch is what a silo's training needs of a worker.
type siloScratch struct {
	learner model.SiloLearner
	grad    []float64
	other   []float64 // a second model
	offset  []float64
	losses  []float64
	exact   *mech.Entropy // of exact noise; nil: noise is simulated
	batches *mech.Entropy
	paid    *mech.Paid   // what the round may draw
	steps   mech.Steps   // the round's noised steps, if the silo adds noise
	sampler mech.Sampler // otherwise
}

// ready gives the worker its memory.
func (s *Silo) ready(w *Worker) {
	if w.silo.learner != nil {
		return
	}
	w.silo.learner = s.model.Learner().(model.SiloLearner) // NewSilo asked
	// Two workers' small vectors must not share a cache line.
	room := max(s.n, 32)
	w.theta = make([]float64, s.n, room)
	w.silo.grad, w.silo.other, w.silo.offset = make([]float64, s.n, room), make([]float64, s.n, room), make([]float64, s.n, room)
	w.silo.batches = mech.SystemEntropy()
	if s.privacy.Noise != "simulated" {
		w.silo.exact = mech.SystemEntropy()
	}
}

// open prepares what a round may draw. Exact noise, and with it who is in a batch,
// comes from the system: whoever could guess a batch would see through the
// amplification. In simulation, and so that a run can be repeated byte by byte, both
// follow from the seed.
func (s *Silo) open(w *Worker, b Broadcast, p *Participant, paid *mech.Paid) error {
	x, plan := &w.silo, &p.Plan
	x.paid = paid
	if s.privacy.Noise != "exact" {
		w.batches.Key(&s.batches, b.Round, p.ID)
		w.noise.Key(&s.noise, b.Round, p.ID)
		x.batches.Reset(&w.batches)
	}
	if s.privacy.Noise == NoiseSeeded {
		x.exact.Reset(&w.noise)
	}
	if plan.private() && plan.terms.Unit == event.UnitExample {
		return x.steps.Open(paid, plan.rule(s.privacy.Clip), x.batches, mech.Randomness{Exact: x.exact, Keyed: &w.noise})
	}
	return nil
}

// pull is a regulariser's gradient, slope*theta + offset.
type pull struct {
	slope  float64
	offset []float64
}

// towards is the gradient of lambda/2*|theta - centre|^2.
func (w *Worker) towards(centre []float64, lambda float64) pull {
	for i, c := range centre {
		w.silo.offset[i] = -lambda * c
	}
	return pull{lambda, w.silo.offset}
}

// descend makes one pass's steps on theta. A regulariser costs no privacy outside:
// it depends on models that are private already (DESIGN, erratum 12).
func (s *Silo) descend(w *Worker, p *Participant, theta []float64, reg pull) error {
	plan := &p.Plan
	step := model.SiloStep{Divisor: plan.Batch}
	if plan.private() {
		step.Steps = &w.silo.steps
	} else if err := w.silo.sampler.Open(plan.drawn, plan.Rate, plan.Batch, w.silo.batches); err != nil {
		return err
	}
	mine := p.Data
	if p.Blank { // nothing is read of what may be the very fault
		mine = &data.Client{Rows: data.Rows{Features: p.Data.Features}, Pictures: data.Pictures{Images: p.Data.Images}}
	}
	inside := reg.offset != nil && s.cfg.Prox == "inside" && plan.private()
	if inside {
		step.Shift = w.silo.other
	}
	for range plan.pass {
		batch, err := s.batch(w, p, step.Steps)
		if err != nil {
			return err
		}
		if inside {
			for i, v := range theta {
				step.Shift[i] = reg.slope*v + reg.offset[i]
			}
		}
		if err := w.silo.learner.Gradient(w.silo.grad, theta, mine, batch, step); err != nil {
			return err
		}
		if reg.offset != nil && !inside {
			for i, v := range theta {
				w.silo.grad[i] += reg.slope*v + reg.offset[i]
			}
		}
		for i, g := range w.silo.grad {
			theta[i] -= s.cfg.Local.Step * g
		}
	}
	return nil
}

// batch draws the examples of the next step, as the plan says: none, if what the
// examples say must not count. The result is valid until the next call.
func (s *Silo) batch(w *Worker, p *Participant, steps *mech.Steps) ([]int, error) {
	switch {
	case steps != nil && p.Blank:
		return nil, steps.Blank()
	case steps != nil:
		return steps.Batch(p.Data.Len())
	case p.Blank:
		return nil, nil
	}
	return w.silo.sampler.Batch(p.Data.Len())
}
