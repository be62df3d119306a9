package fl

import (
	"math"

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
	entropy *mech.Entropy // nil: simulated noise
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
}

// openEntropy is where exact noise comes from: the system, or, so that a run can be
// repeated byte by byte, the seed.
func (s *Silo) openEntropy(w *Worker) {
	if s.privacy.Noise == "simulated" {
		return
	}
	if w.silo.entropy == nil {
		w.silo.entropy = mech.SystemEntropy()
	}
	if s.privacy.Noise == NoiseSeeded {
		w.silo.entropy.Reset(&w.noise)
	}
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
		step.Clip, step.Noise = s.privacy.Clip, plan.Noise
		step.Terms = mech.Terms{Unit: event.UnitExample, Relation: plan.terms.Relation, Trust: plan.trust}
		step.Source, step.Exact = &w.noise, w.silo.entropy
	}
	inside := reg.offset != nil && s.cfg.Prox == "inside" && plan.private()
	if inside {
		step.Shift = w.silo.other
	}
	for k := range plan.pass {
		batch := s.batch(w, p, k)
		if inside {
			for i, v := range theta {
				step.Shift[i] = reg.slope*v + reg.offset[i]
			}
		}
		if err := w.silo.learner.Gradient(w.silo.grad, theta, p.Data, batch, step); err != nil {
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

// batch draws the examples of a pass's k-th step, as the plan says. The result is
// valid until the next call.
func (s *Silo) batch(w *Worker, p *Participant, k int) []int {
	plan, size := &p.Plan, p.Data.Len()
	switch plan.drawn {
	case event.Poisson:
		return w.poisson(size, plan.Rate)
	case event.WithoutReplacement:
		w.allInOrder(size)
		for i := range plan.Batch {
			j := i + w.batches.Below(size-i)
			w.index[i], w.index[j] = w.index[j], w.index[i]
		}
		return w.index[:plan.Batch]
	}
	perEpoch := plan.pass / s.cfg.Local.Epochs
	at := k % perEpoch
	if at == 0 {
		w.allInOrder(size)
		w.batches.Shuffle(w.index)
	}
	return w.index[at*plan.Batch : (at+1)*plan.Batch] // what is left of an epoch is dropped
}

func (w *Worker) allInOrder(size int) {
	w.index = w.index[:0]
	for i := range size {
		w.index = append(w.index, i)
	}
}

// poisson takes every example with probability rate, by jumping over geometric gaps.
func (w *Worker) poisson(size int, rate float64) []int {
	if rate >= 1 {
		w.allInOrder(size)
		return w.index
	}
	w.index = w.index[:0]
	perGap := math.Log1p(-rate)
	for i := -1; ; {
		gap := math.Floor(math.Log(1-w.batches.Float64()) / perGap)
		if gap >= float64(size-1-i) {
			return w.index
		}
		i += 1 + int(gap)
		w.index = append(w.index, i)
	}
}
