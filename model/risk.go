package model

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// Risk is a linear model of people: the logarithm of the odds that a person falls ill. A
// person's inputs, one a window, are one example.
type Risk struct {
	Linear
	Windows int
	Start   float64 // of the constant's weight, the last one: how rare the illness is taken to be
	runner  Runner  // nil: one goroutine
}

// Initialise starts from nothing but the constant's weight.
func (m Risk) Initialise(theta []float64, src rand.Source) {
	m.Linear.Initialise(theta, src)
	theta[len(theta)-1] = m.Start
}

// Learner is the model with one worker's memory.
func (m Risk) Learner() (Learner, error) {
	switch {
	case m.Features < 1 || m.Windows < 1:
		return nil, fmt.Errorf("a model of people with %d inputs in %d windows; allowed: 1 or more of both", m.Features, m.Windows)
	case m.Loss != CrossEntropy && m.Loss != Focal:
		return nil, fmt.Errorf("the loss %s for people, who fall ill or do not; allowed: cross-entropy, focal", m.Loss)
	}
	l := &riskLearner{Risk: m}
	if l.runner == nil {
		l.runner = serial{}
	}
	l.desks = make([]desk, l.runner.Workers())
	return l, nil
}

// crowd is how many people are clipped and added at once: their gradients stay in the cache.
const crowd = 1024

// crowded is crowd for a number of inputs: of wide ones there are fewer, so that a batch has
// work for several goroutines.
func crowded(inputs int) int {
	if inputs > wideInputs {
		return 64
	}
	return crowd
}

// wideInputs is from where on inputs are many.
const wideInputs = 256

// desk is one goroutine's memory: of a crowd's gradients, and of one person's inputs.
type desk struct {
	input     []float32
	gradients []float64
	norms     []float64
	factors   []float64
	wide      []float64 // the input in double precision, where kernels multiply it
	_         [128]byte // the next one's fields lie on other cache lines
}

func (d *desk) fit(inputs int) {
	if len(d.input) != inputs {
		n := crowded(inputs)
		d.input, d.gradients = make([]float32, inputs), make([]float64, n*inputs)
		d.norms, d.factors, d.wide = make([]float64, n), make([]float64, n), make([]float64, inputs)
	}
}

// riskLearner is a model of people with memory. Nothing of a population is held but a
// crowd's gradients.
type riskLearner struct {
	Risk
	sum   stepSum[float64]
	desks []desk
	every []int
}

func (l *riskLearner) ready(theta []float64, c *data.Client) error {
	switch {
	case c.People == nil:
		return fmt.Errorf("a model of people, and the examples are none; use data of the kind pandemic")
	case c.People.Inputs() != l.Features || len(theta) != l.Features:
		return fmt.Errorf("%d inputs and %d parameters for a model of %d inputs", c.People.Inputs(), len(theta), l.Features)
	case l.stopped != nil && l.stopped():
		return ErrStopped
	}
	return nil
}

// odds is the model's value of the desk's input.
func (d *desk) odds(theta []float64) float64 {
	if len(theta) > wideInputs {
		for j, v := range d.input {
			d.wide[j] = float64(v)
		}
		return kernel.Dot(theta, d.wide)
	}
	sum := 0.0
	for j, v := range d.input {
		sum += theta[j] * float64(v)
	}
	return sum
}

// add adds the desk's input, times a factor, to a gradient.
func (d *desk) add(gradient []float64, factor float64) {
	if len(gradient) > wideInputs {
		kernel.Axpy(factor, d.wide, gradient)
		return
	}
	for j, v := range d.input {
		gradient[j] += factor * float64(v)
	}
}

// BeyondDoubt is the value of people who cannot fall ill: they are ill, or were.
const BeyondDoubt = -60

// eachValue hands every person's value and label to use, in order. It reads the first
// window: whoever judges has one.
func (l *riskLearner) eachValue(theta []float64, c *data.Client, use func(i int, value, label float64)) error {
	if err := l.ready(theta, c); err != nil {
		return err
	}
	n := c.People.Persons()
	type seen struct{ value, label float64 }
	values := make([]seen, min(n, crowd*len(l.desks)))
	for from := 0; from < n; from += len(values) {
		part := values[:min(len(values), n-from)]
		l.runner.Each((len(part)+crowd-1)/crowd, func(worker, k int) {
			d := &l.desks[worker]
			d.fit(l.Features)
			for i := k * crowd; i < min(len(part), (k+1)*crowd); i++ {
				label := c.People.Input(d.input, from+i, 0)
				if part[i] = (seen{BeyondDoubt, 0}); label >= 0 {
					part[i] = seen{d.odds(theta), float64(label)}
				}
			}
		})
		for i, s := range part {
			if len(c.Y) > 0 {
				s.label = c.Y[from+i]
			}
			use(from+i, s.value, s.label)
		}
		if l.stopped != nil && l.stopped() {
			return ErrStopped
		}
	}
	return nil
}

func (l *riskLearner) Loss(theta []float64, c *data.Client) (float64, error) {
	loss, _, err := l.Judge(theta, c)
	return loss, err
}

func (l *riskLearner) Judge(theta []float64, c *data.Client) (loss float64, wrong int, err error) {
	err = l.eachValue(theta, c, func(_ int, value, label float64) {
		e, missed := l.judge(value, label)
		if loss += e; missed {
			wrong++
		}
	})
	return loss / float64(max(1, c.Len())), wrong, err
}

func (l *riskLearner) Losses(dst, theta []float64, c *data.Client) error {
	return l.eachValue(theta, c, func(i int, value, label float64) { dst[i], _ = l.judge(value, label) })
}

func (l *riskLearner) Outputs(dst, theta []float64, c *data.Client) ([]float64, int, error) {
	err := l.eachValue(theta, c, func(_ int, value, _ float64) { dst = append(dst, value) })
	return dst, 1, err
}

func (l *riskLearner) Train(theta []float64, c *data.Client, p *Pass) error {
	return p.Descend(l, theta, c)
}

func (l *riskLearner) Gradient(dst, theta []float64, c *data.Client, batch []int, s *Step) error {
	if err := s.check(len(theta), l.Linear.Loss); err != nil {
		return err
	}
	if len(dst) != len(theta) || len(theta) != l.Features {
		return fmt.Errorf("step: room for %d values of %d parameters, with %d inputs", len(dst), len(theta), l.Features)
	}
	if blank := s.Paid != nil && c.People == nil && len(batch) == 0; !blank { // a blank step is noise alone
		if err := l.ready(theta, c); err != nil {
			return fmt.Errorf("step: %w", err)
		}
		var err error
		if c, err = redrawn(c, s.Paid); err != nil {
			return fmt.Errorf("step: %w", err)
		}
	}
	if s.Whole {
		batch = identity(&l.every, c.People.Persons())
	}
	for _, i := range batch {
		if i < 0 || i >= c.People.Persons() {
			return fmt.Errorf("step: person %d of %d", i, c.People.Persons())
		}
	}
	bare := s.bound() == 0
	if bare {
		if len(batch) == 0 {
			clear(dst)
			return nil
		}
		s = &Step{Clip: math.MaxFloat64, Divisor: len(batch), Shift: s.Shift, Number: s.Number} // nothing is longer
	}
	sum := l.floats
	if s.exact() {
		sum = l.integers
	}
	if err := sum(dst, theta, data.InStep(c.People, s.Number), batch, s); err != nil {
		return fmt.Errorf("step: %w", err)
	}
	kernel.Scale(dst, 1/float64(s.Divisor), dst)
	return nil
}

// redrawn is the client with the contacts that a step keeps, where they are thinned: by
// what was paid for.
func redrawn(c *data.Client, paid *mech.Steps) (*data.Client, error) {
	secret, keep, err := paid.Thinning()
	people, anew := c.People.(data.Redrawn)
	switch {
	case err != nil:
		return nil, err
	case keep > 0 && !anew:
		return nil, fmt.Errorf("a step paid for thinned contacts, and the people are not prepared for it")
	case anew && keep == 0:
		return nil, fmt.Errorf("people whose contacts are to be thinned, in a step that was not paid for so")
	case !anew:
		return c, nil
	}
	own := *c
	if own.People, err = people.Redraw(secret, keep); err != nil {
		return nil, err
	}
	return &own, nil
}

// floats sets dst to the clipped sum, noised if the step has noise.
func (l *riskLearner) floats(dst, theta []float64, people data.People, batch []int, s *Step) error {
	crowd := crowded(l.Features)
	crowds := (len(batch) + crowd - 1) / crowd
	sum, err := l.sum.floats(len(dst), max(1, crowds), s)
	if err != nil {
		return err
	}
	faults := make([]error, len(l.desks))
	l.runner.Each(crowds, func(worker, k int) {
		d := &l.desks[worker]
		some := batch[k*crowd : min(len(batch), (k+1)*crowd)]
		l.fill(d, theta, people, some, s.Shift)
		err := sum.AddWeighted(k, d.norms[:len(some)], d.factors, func(dst, factors []float64) {
			for i, factor := range factors[:len(some)] {
				if factor != 0 { // what is not finite, times 0, would be no number
					kernel.Axpy(factor, d.gradients[i*len(dst):(i+1)*len(dst)], dst)
				}
			}
		})
		if sum.Complete(k); err != nil {
			faults[worker] = err
		}
	})
	for _, err := range faults {
		if err != nil {
			return err
		}
	}
	return l.sum.release(dst, s)
}

// integers sets dst to the clipped sum with exact noise. Crowds are computed side by side
// and added in order.
func (l *riskLearner) integers(dst, theta []float64, people data.People, batch []int, s *Step) error {
	crowd := crowded(l.Features)
	sum, err := l.sum.integers(len(dst), s)
	if err != nil {
		return err
	}
	for len(batch) > 0 {
		some := batch[:min(len(batch), crowd*len(l.desks))]
		part := func(k int) []int { return some[k*crowd : min(len(some), (k+1)*crowd)] }
		crowds := (len(some) + crowd - 1) / crowd
		l.runner.Each(crowds, func(_, k int) { l.fill(&l.desks[k], theta, people, part(k), s.Shift) })
		for k := range crowds {
			for i, person := range part(k) {
				if err := sum.Add(l.desks[k].gradients[i*len(dst) : (i+1)*len(dst)]); err != nil {
					return fmt.Errorf("person %d: %w", person, err)
				}
			}
		}
		batch = batch[len(some):]
	}
	return l.sum.releaseExact(dst, s)
}

// fill sets a desk's gradients and norms to those of some people: every window's, added up.
func (l *riskLearner) fill(d *desk, theta []float64, people data.People, some []int, shift []float64) {
	d.fit(l.Features)
	n := l.Features
	for k, person := range some {
		gradient := d.gradients[k*n : (k+1)*n]
		if clear(gradient); shift != nil {
			copy(gradient, shift)
		}
		for w := range l.Windows {
			label := people.Input(d.input, person, w)
			if label < 0 {
				continue
			}
			d.add(gradient, l.slope(d.odds(theta), float64(label)))
		}
		d.norms[k] = math.Sqrt(kernel.SquaredNorm(gradient))
	}
}
