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
)

// adamEpsilon keeps Adam's divisor from 0.
const adamEpsilon = 1e-8

// Optimiser moves parameters against gradients. The zero value is plain descent.
type Optimiser struct {
	kind         int
	decay        float64 // momentum's
	beta1, beta2 float64 // Adam's
	first        []float64
	second       []float64
	steps        int
}

// NewOptimiser reads a run file's block.
func NewOptimiser(l config.Local) (Optimiser, error) {
	switch l.Optimiser {
	case "", "sgd":
		return Optimiser{}, nil
	case "momentum":
		if !(l.Momentum >= 0 && l.Momentum < 1) {
			return Optimiser{}, fmt.Errorf("momentum %v; allowed: 0 or more, less than 1", l.Momentum)
		}
		return Optimiser{kind: momentum, decay: l.Momentum}, nil
	case "adam":
		for _, b := range []float64{l.Beta1, l.Beta2} {
			if !(b >= 0 && b < 1) {
				return Optimiser{}, fmt.Errorf("adam's betas %v and %v; allowed: 0 or more, less than 1", l.Beta1, l.Beta2)
			}
		}
		return Optimiser{kind: adam, beta1: l.Beta1, beta2: l.Beta2}, nil
	}
	return Optimiser{}, fmt.Errorf("optimiser %q is not known; allowed: sgd, momentum, adam", l.Optimiser)
}

// Plain says that gradients move parameters as they are: theta -= step*gradient.
func (o *Optimiser) Plain() bool { return o.kind == sgd }

// restart forgets all earlier gradients.
func (o *Optimiser) restart(n int) {
	if o.kind == sgd {
		return
	}
	o.steps = 0
	if len(o.first) != n {
		o.first, o.second = make([]float64, n), make([]float64, n)
	}
	clear(o.first)
	clear(o.second)
}

// move takes one step.
func (o *Optimiser) move(theta, gradient []float64, step float64) {
	switch o.kind {
	case momentum:
		for i, g := range gradient {
			o.first[i] = o.decay*o.first[i] + g
			theta[i] -= step * o.first[i]
		}
	case adam:
		o.steps++
		step /= 1 - math.Pow(o.beta1, float64(o.steps))
		root := 1 / math.Sqrt(1-math.Pow(o.beta2, float64(o.steps)))
		for i, g := range gradient {
			o.first[i] = o.beta1*o.first[i] + (1-o.beta1)*g
			o.second[i] = o.beta2*o.second[i] + (1-o.beta2)*g*g
			theta[i] -= step * o.first[i] / (math.Sqrt(o.second[i])*root + adamEpsilon)
		}
	default:
		for i, g := range gradient {
			theta[i] -= step * g
		}
	}
}
