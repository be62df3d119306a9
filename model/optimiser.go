package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
)

// The optimisers. What they do to a noised gradient costs no privacy: they read
// nothing else of the examples.
const (
	sgd      = iota // theta -= step*g
	momentum        // v = m*v + g, theta -= step*v: PyTorch's form
	adam            // Kingma and Ba (2015), with their bias correction
	adamW           // Loshchilov and Hutter (2019): Adam, and the parameters shrink by themselves
	adamWOSM        // Adam without second moment: the noise's deviation stands for it
)

// adamEpsilon keeps Adam's divisor from 0.
const adamEpsilon = 1e-8

// Optimiser moves parameters against gradients. The zero value is plain descent.
type Optimiser struct {
	kind         int
	decay        float64 // momentum's
	beta1, beta2 float64 // Adam's
	shrink       float64 // AdamW's
	warmUp       int     // steps in which step sizes rise
	first        []float64
	second       []float64
	steps        int
	keep         float64 // share of the parameters that AdamW leaves
	step, root   float64 // of the gradient that moves parameters now
	lent         bool    // first and second are a Memory's
}

// NewOptimiser reads a run file's block.
func NewOptimiser(l config.Local) (Optimiser, error) {
	o, err := newOptimiser(l)
	o.warmUp = l.WarmUp
	return o, err
}

func newOptimiser(l config.Local) (Optimiser, error) {
	switch l.Optimiser {
	case "", "sgd":
		return Optimiser{}, nil
	case "momentum":
		if !(l.Momentum >= 0 && l.Momentum < 1) {
			return Optimiser{}, fmt.Errorf("momentum %v; allowed: 0 or more, less than 1", l.Momentum)
		}
		return Optimiser{kind: momentum, decay: l.Momentum}, nil
	case "adam", "adamw":
		for _, b := range []float64{l.Beta1, l.Beta2} {
			if !(b >= 0 && b < 1) {
				return Optimiser{}, fmt.Errorf("adam's betas %v and %v; allowed: 0 or more, less than 1", l.Beta1, l.Beta2)
			}
		}
		o := Optimiser{kind: adam, beta1: l.Beta1, beta2: l.Beta2}
		if l.Optimiser == "adamw" {
			o.kind, o.shrink = adamW, l.WeightDecay
		}
		return o, nil
	}
	return Optimiser{}, fmt.Errorf("optimiser %q is not known; allowed: sgd, momentum, adam, adamw", l.Optimiser)
}

// WithoutSecondMoment is AdamWOSM (Mohapatra et al. 2022): where noise is all that is
// seen in a gradient, its known deviation takes the place of Adam's second moment.
func WithoutSecondMoment(l config.Local) (Optimiser, error) {
	if !(l.Beta1 >= 0 && l.Beta1 < 1) {
		return Optimiser{}, fmt.Errorf("adam's beta1 %v; allowed: 0 or more, less than 1", l.Beta1)
	}
	return Optimiser{kind: adamWOSM, beta1: l.Beta1, warmUp: l.WarmUp}, nil
}

// Plain says that gradients move parameters as they are: theta -= step*gradient.
func (o *Optimiser) Plain() bool { return o.kind == sgd && o.warmUp == 0 }

// restart goes on from what is remembered of earlier gradients, or forgets them.
func (o *Optimiser) restart(n int, m *Memory) {
	o.steps = 0
	if o.kind == sgd {
		if m != nil {
			o.steps = m.Moves
		}
		return
	}
	if m != nil {
		if len(m.First) != n {
			m.First, m.Moves = make([]float64, n), 0
		}
		if (o.kind == adam || o.kind == adamW) && len(m.Second) != n {
			m.Second = make([]float64, n)
		}
		o.first, o.second, o.steps, o.lent = m.First, m.Second, m.Moves, true
		return
	}
	if o.lent || len(o.first) != n {
		o.lent = false
		o.first, o.second = make([]float64, n), make([]float64, n)
	}
	clear(o.first)
	clear(o.second)
}

// begin has the next gradient move parameters by a step; noise is the deviation of what
// was added to it.
func (o *Optimiser) begin(step, noise float64) {
	o.steps++
	if o.steps < o.warmUp {
		step *= float64(o.steps) / float64(o.warmUp)
	}
	o.step = step
	switch o.kind {
	case adam, adamW:
		o.keep = 1 - step*o.shrink
		o.step /= 1 - math.Pow(o.beta1, float64(o.steps))
		o.root = 1 / math.Sqrt(1-math.Pow(o.beta2, float64(o.steps)))
	case adamWOSM:
		o.step /= (1 - math.Pow(o.beta1, float64(o.steps))) * (noise + adamEpsilon)
	}
}

// move moves theta by the part of the gradient that begins at from.
func (o *Optimiser) move(theta []float64, from int, gradient []float64) {
	theta = theta[from : from+len(gradient)]
	step := o.step
	switch o.kind {
	case momentum:
		first := o.first[from:]
		for i, g := range gradient {
			first[i] = o.decay*first[i] + g
			theta[i] -= step * first[i]
		}
	case adam, adamW:
		if o.keep != 1 {
			for i := range theta {
				theta[i] *= o.keep
			}
		}
		first, second, root := o.first[from:], o.second[from:], o.root
		for i, g := range gradient {
			first[i] = o.beta1*first[i] + (1-o.beta1)*g
			second[i] = o.beta2*second[i] + (1-o.beta2)*g*g
			theta[i] -= step * first[i] / (math.Sqrt(second[i])*root + adamEpsilon)
		}
	case adamWOSM:
		first := o.first[from:]
		for i, g := range gradient {
			first[i] = o.beta1*first[i] + (1-o.beta1)*g
			theta[i] -= step * first[i]
		}
	default:
		for i, g := range gradient {
			theta[i] -= step * g
		}
	}
}
