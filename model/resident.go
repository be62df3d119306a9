package model

import (
	"fmt"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
)

// Resident are parameters that stay on a device from the first step of a pass to its last:
// steps are taken there, and what is private about them is what dp/mech tells it to do.
// Nobody else uses the device meanwhile.
type Resident interface {
	mech.Remote
	// Norms takes rows forwards and back, in chunks, one after another. Of every chunk use is
	// given the norms of its rows' gradients, not below the true ones; Add is of these rows.
	Norms(c *data.Client, rows []int, use func(norms []float64) error) error
	// Mean adds the rows' mean gradient to sum 0.
	Mean(c *data.Client, rows []int) error
	// Move ends a step: parameters move by sum 0, and the sums are empty.
	Move(m Move) error
	// Leave brings home what is not nil, and ends the stay.
	Leave(end Start) error
}

// Start is what stays on a device: parameters, the optimiser's means of gradients and of
// their squares, and a regulariser's offset; nil: there is none.
type Start struct{ Theta, First, Second, Offset []float64 }

// Move is what an Optimiser does in one step: Kind and the values are its own. The gradient
// is sum 0 times Factor; where it is Pulled, Slope times the parameters and the offset are
// added to it.
type Move struct {
	Kind                                                 int
	Factor, Step, Decay, Beta1, Beta2, Keep, Root, Slope float64
	Pulled                                               bool
}

// next is the movement of the step that has begun.
func (o *Optimiser) next(factor float64) Move {
	m := Move{Kind: o.kind, Factor: factor, Step: o.step, Decay: o.decay, Beta1: o.beta1, Beta2: o.beta2, Keep: 1, Root: o.root}
	if o.kind == adam || o.kind == adamW {
		m.Keep = o.keep
	}
	return m
}

// means are what the optimiser remembers of gradients; nil: nothing.
func (o *Optimiser) means() (first, second []float64) {
	switch o.kind {
	case momentum, adamWOSM:
		return o.first, nil
	case adam, adamW:
		return o.first, o.second
	}
	return nil, nil
}

// stays says whether a pass's steps can be taken where the parameters are: not those that
// need single gradients, or the whole one, in this process.
func (l *networkLearner[F]) stays(p *Pass) bool {
	inside := p.Pull.Offset != nil && p.Pull.Inside && p.bound() > 0
	return l.device != nil && p.Planted == nil && !inside && p.longest == 0 && (p.Paid == nil || p.Paid.Remotely(len(l.theta)))
}

// trainThere is Pass.Descend with parameters that stay on the device.
func (l *networkLearner[F]) trainThere(theta []float64, c *data.Client, p *Pass) error {
	if err := p.begin(c.Len()); err != nil {
		return err
	}
	switch {
	case len(theta) != len(l.theta):
		return fmt.Errorf("step: %d parameters for a network of %d", len(theta), len(l.theta))
	case p.Pull.Offset != nil && len(p.Pull.Offset) != len(theta):
		return fmt.Errorf("pass: a regulariser of %d values for %d parameters", len(p.Pull.Offset), len(theta))
	}
	p.Optimiser.restart(len(theta), p.Memory)
	start := Start{Theta: theta, Offset: p.Pull.Offset}
	start.First, start.Second = p.Optimiser.means()
	there, err := l.device.Stay(start)
	if err != nil {
		return err
	}
	made, err := l.stepsThere(there, c, p)
	p.settle()
	if err == nil && p.Paid != nil {
		err = p.Paid.Home()
	}
	if err != nil {
		_ = there.Leave(Start{}) // the first failure is the one to tell
		return err
	}
	if err := there.Leave(start); err != nil {
		return err
	}
	p.remember(made)
	return nil
}

// stepsThere takes the steps, and counts them.
func (l *networkLearner[F]) stepsThere(there Resident, c *data.Client, p *Pass) (made int64, err error) {
	for {
		batch, more, err := p.next()
		if err != nil || !more {
			return made, err
		}
		if l.stopped != nil && l.stopped() {
			return made, ErrStopped
		}
		size, noise := p.size(made) // before the step moves them
		made++
		p.Optimiser.begin(size, noise)
		if err := p.check(len(l.theta), l.loss); err != nil {
			return made, err
		}
		if p.Whole {
			batch = identity(&l.every, c.Len())
		}
		if p.bound() > 0 {
			batch = l.readable(c, batch)
		}
		rows, err := l.deviceRows(c, batch)
		if err != nil {
			return made, fmt.Errorf("step: %w", err)
		}
		p.ahead()
		factor, err := l.gradientThere(there, c, rows, &p.Step)
		if err != nil {
			return made, fmt.Errorf("step: %w", err)
		}
		m := p.Optimiser.next(factor)
		m.Slope, m.Pulled = p.Pull.Slope, p.Pull.Offset != nil
		if err := there.Move(m); err != nil {
			return made, err
		}
	}
}

// gradientThere makes a step's gradient, up to a factor, in sum 0.
func (l *networkLearner[F]) gradientThere(there Resident, c *data.Client, rows []int, s *Step) (factor float64, err error) {
	if s.bound() == 0 {
		return 1, there.Mean(c, rows)
	}
	var sum *mech.RemoteSum
	if s.Paid != nil {
		sum, err = s.Paid.RemoteSum(there, len(l.theta))
	} else {
		sum, err = mech.NewRemoteSum(there, len(l.theta), s.bound())
	}
	if err != nil {
		return 0, err
	}
	err = there.Norms(c, rows, func(norms []float64) error { return sum.AddWeighted(norms, l.factors(len(norms))) })
	if err == nil && s.Paid != nil {
		err = mech.SimulateRemote(s.Paid, sum)
	}
	return 1 / float64(s.Divisor), err
}
