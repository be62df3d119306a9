package model

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// ownLine is how many values a worker's buffer holds at least: smaller ones would
// share cache lines with other workers' and make them wait for each other.
const ownLine = 32

// Shuffler permutes in place.
type Shuffler interface{ Shuffle([]int) }

// Pull is a regulariser's gradient, Slope*theta + Offset; without an Offset there is
// none.
type Pull struct {
	Slope  float64
	Offset []float64
	// Inside adds it to every example's gradient before that is clipped; otherwise it
	// is added to the noised mean, where it costs no privacy: it depends on models that
	// are private already (DESIGN, erratum 12).
	Inside bool
}

// Pass is one client's local training: which examples make each step, how a step
// protects them, and how it moves the parameters. It is prepared once for a worker,
// whose memory it keeps, and serves one client after another. It is not safe for
// concurrent use.
type Pass struct {
	Step // Shift and Whole are the pass's own
	// Count steps on batches that Paid draws, or else Sampler.
	Count   int
	Sampler *mech.Sampler
	// Blank has every one of these batches empty: what is trained is noise alone.
	Blank bool

	// Without Paid and Sampler: Epochs in batches of Batch examples (0: all) in the
	// order that Shuffle draws; all examples at once need none.
	Epochs  int
	Batch   int
	Shuffle Shuffler
	Drop    bool // the last, smaller batch of an epoch is left out

	StepSize  float64 // of the round: At sets it
	Optimiser Optimiser
	Pull      Pull
	// Single keeps a network of pictures in single precision from the first step to the
	// last, where plain descent is all there is to do: its steps then add to the
	// parameters in place. Otherwise every step's gradient is added in double precision.
	Single bool

	// Begun counts the steps that were begun, for whoever watches from outside; nil: nobody.
	Begun *atomic.Int64

	// Memory is what the pass goes on with, and leaves behind at its end. Nil: every pass
	// begins anew.
	Memory *Memory

	longest  float64 // norm of a step's gradient; 0: any
	decay    float64 // of the step size, step by step, where nothing is paid
	schedule schedule
	base     float64 // step size of the first round
	rounds   int
	round    int

	examples int // the client's, and those that are planted
	left     int // steps to come
	at       int // where in order the next batch begins
	order    []int
	gradient []float64
	shift    []float64
	own      []int // of a batch with planted examples, the client's own
}

// Memory is what training keeps from one pass to the next, where it goes on: the
// optimiser's means, and how far clip and step size have moved. Of noised gradients all
// of it is post-processing.
type Memory struct {
	First, Second []float64 // the optimiser's; empty: it begins
	Moves         int       // of the optimiser
	Clip          mech.ClipState
}

// NewPass reads a run file's block; rounds is what its schedule runs over.
func NewPass(l config.Local, rounds int) (Pass, error) {
	p := Pass{Epochs: l.Epochs, Batch: l.Batch, Drop: l.Remainder == "drop", StepSize: l.Step, base: l.Step, decay: l.StepDecay, longest: l.GradientNorm, rounds: rounds}
	var err error
	if p.Optimiser, err = NewOptimiser(l); err != nil {
		return Pass{}, err
	}
	p.schedule, err = parseSchedule(l.Schedule)
	return p, err
}

// Descend takes the pass's steps on theta, by the gradients of a learner. Without a
// Memory optimisers start anew: what they remember of one pass is not carried into the
// next.
func (p *Pass) Descend(l Learner, theta []float64, c *data.Client) error {
	if err := p.begin(c.Len()); err != nil {
		return err
	}
	pulled := p.Pull.Offset != nil
	if pulled && len(p.Pull.Offset) != len(theta) {
		return fmt.Errorf("pass: a regulariser of %d values for %d parameters", len(p.Pull.Offset), len(theta))
	}
	inside := pulled && p.Pull.Inside && p.bound() > 0
	if inside {
		if cap(p.shift) < len(theta) {
			p.shift = make([]float64, max(len(theta), ownLine))
		}
		p.Shift = p.shift[:len(theta)]
	}
	parted, _ := l.(inParts)
	if p.longest > 0 { // whose length all parts decide
		parted = nil
	}
	var gradient []float64
	var use func(from int, part []float64)
	if parted != nil {
		use = func(from int, part []float64) { p.follow(theta, from, part, pulled && !inside) }
	} else {
		if cap(p.gradient) < len(theta) {
			p.gradient = make([]float64, max(len(theta), ownLine))
		}
		gradient = p.gradient[:len(theta)]
	}
	p.Optimiser.restart(len(theta), p.Memory)
	made := int64(0)
	for {
		batch, more, err := p.next()
		if err != nil {
			return err
		}
		if !more {
			p.remember(made)
			return nil
		}
		size, noise := p.size(made) // before the step moves them
		p.Number = uint64(p.round)<<32 | uint64(made)
		made++
		if inside {
			for i, v := range theta {
				p.Shift[i] = p.Pull.Slope*v + p.Pull.Offset[i]
			}
		}
		p.Optimiser.begin(size, noise)
		if parted != nil {
			err = parted.gradientParts(theta, c, batch, &p.Step, use)
		} else if err = l.Gradient(gradient, theta, c, batch, &p.Step); err == nil {
			p.shorten(gradient)
			p.follow(theta, 0, gradient, pulled && !inside)
		}
		if err != nil {
			return err
		}
	}
}

// inParts is a learner whose gradient comes part by part, in order, so that nobody holds
// all of it in double precision.
type inParts interface {
	gradientParts(theta []float64, c *data.Client, batch []int, s *Step, use func(from int, part []float64)) error
}

// shorten scales a gradient that is longer than the pass's longest.
func (p *Pass) shorten(gradient []float64) {
	if p.longest == 0 {
		return
	}
	if norm := math.Sqrt(kernel.SquaredNorm(gradient)); norm > p.longest {
		kernel.Scale(gradient, p.longest/norm, gradient)
	}
}

// follow moves theta by the part of the gradient that begins at from, with the
// regulariser's added if it is to be.
func (p *Pass) follow(theta []float64, from int, gradient []float64, pulled bool) {
	if pulled {
		for i := range gradient {
			gradient[i] += p.Pull.Slope*theta[from+i] + p.Pull.Offset[from+i]
		}
	}
	p.Optimiser.move(theta, from, gradient)
}

// size is the next step's, and the deviation of the noise in its gradient.
func (p *Pass) size(made int64) (step, noise float64) {
	switch {
	case p.Paid != nil:
		return p.StepSize * p.Paid.Pace(), p.Paid.Deviation() / float64(max(1, p.Divisor))
	case p.decay == 0:
		return p.StepSize, 0
	case p.Memory != nil:
		made += p.Memory.Clip.Steps
	}
	return p.StepSize * math.Exp(-p.decay*float64(made)), 0
}

// remember leaves behind what the next pass goes on with.
func (p *Pass) remember(made int64) {
	if p.Memory == nil {
		return
	}
	p.Memory.Moves = p.Optimiser.steps
	if p.Paid == nil { // whoever opened the paid steps has them saved
		p.Memory.Clip.Steps += made
	}
}

// drawn says whether batches are drawn one by one, instead of epoch by epoch.
func (p *Pass) drawn() bool { return p.Paid != nil || p.Sampler != nil }

// plain says whether the pass is gradient descent and nothing else.
func (p *Pass) plain() bool {
	return !p.drawn() && p.Clip == 0 && p.Pull.Offset == nil && p.Optimiser.Plain() && p.decay == 0 && p.longest == 0
}

// begin walks to the pass's first batch, on so many examples.
func (p *Pass) begin(examples int) error {
	p.examples, p.Shift = examples+p.Planted.count(), nil
	if p.Planted != nil && !p.drawn() {
		return fmt.Errorf("pass: planted examples are drawn into batches, but there is nothing to draw them by")
	}
	p.Whole = !p.drawn() && (p.Batch <= 0 || p.Batch >= examples)
	switch {
	case p.drawn():
		p.left = p.Count
	case p.Whole:
		p.left = p.Epochs
	default:
		if p.Shuffle == nil {
			return fmt.Errorf("pass: batches of %d from %d examples, and nothing to draw them by", p.Batch, examples)
		}
		p.order = p.order[:0]
		p.order = identity(&p.order, examples)
		p.at, p.left = examples, p.Epochs*((examples+p.Batch-1)/p.Batch)
		if p.Drop {
			p.left = p.Epochs * (examples / p.Batch)
		}
	}
	return nil
}

// next is the next batch, until there is none. All examples at once are told by
// Whole; the batch is valid until the next call.
func (p *Pass) next() (batch []int, more bool, err error) {
	if p.left <= 0 {
		return nil, false, nil
	}
	p.left--
	if p.Begun != nil {
		p.Begun.Add(1)
	}
	if p.Whole {
		return nil, true, nil
	}
	batch, err = p.draw()
	return p.part(batch), true, err
}

// ahead has the batch of the next step, if there is one, drawn while this step's gradient is
// made elsewhere.
func (p *Pass) ahead() {
	switch {
	case p.left <= 0 || p.Blank:
	case p.Paid != nil:
		p.Paid.Ahead(p.examples)
	case p.Sampler != nil:
		p.Sampler.Ahead(p.examples)
	}
}

// settle ends that, of a pass that ends early.
func (p *Pass) settle() {
	if p.Paid != nil {
		p.Paid.Settle()
	}
	if p.Sampler != nil {
		p.Sampler.Settle()
	}
}

func (p *Pass) draw() ([]int, error) {
	switch {
	case p.Paid != nil && p.Blank:
		return nil, p.Paid.Blank()
	case p.Paid != nil:
		return p.Paid.Batch(p.examples)
	case p.Sampler != nil && p.Blank:
		return nil, nil
	case p.Sampler != nil:
		return p.Sampler.Batch(p.examples)
	}
	least := 1
	if p.Drop {
		least = p.Batch
	}
	if p.examples-p.at < least {
		p.Shuffle.Shuffle(p.order)
		p.at = 0
	}
	from := p.at
	p.at = min(from+p.Batch, p.examples)
	return p.order[from:p.at], nil
}

// schedule is how the step size changes over the rounds.
type schedule int

const (
	constant    schedule = iota
	linear               // falls to 0 in a straight line
	cosine               // falls to 0 in half a wave
	inverseRoot          // falls as 1/sqrt(round)
)

func parseSchedule(name string) (schedule, error) {
	switch name {
	case "", "constant":
		return constant, nil
	case "linear":
		return linear, nil
	case "cosine":
		return cosine, nil
	case "inverse-root":
		return inverseRoot, nil
	}
	return 0, fmt.Errorf("schedule %q is not known; allowed: constant, linear, cosine, inverse-root", name)
}

// At begins a round, from 0, and sets its step size. That is public: it follows from the
// round alone.
func (p *Pass) At(round int) {
	p.round = round
	if p.schedule == constant {
		return
	}
	part := 1.0
	switch through := float64(round) / float64(max(1, p.rounds)); p.schedule {
	case linear:
		part = 1 - through
	case cosine:
		part = (1 + math.Cos(math.Pi*through)) / 2
	case inverseRoot:
		part = 1 / math.Sqrt(1+float64(round))
	}
	p.StepSize = p.base * part
}
