package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/internal/kernel"
)

// Optimiser moves parameters against a gradient.
type Optimiser[F Float] interface {
	Apply(theta, grad []F)
}

// SGD is plain descent, with momentum if Momentum is above 0: v = m*v + g,
// theta -= step*v (PyTorch's form).
type SGD[F Float] struct {
	Step, Momentum float64
	velocity       []F
}

// Apply takes one step.
func (s *SGD[F]) Apply(theta, grad []F) {
	if s.Momentum == 0 {
		kernel.Axpy(-F(s.Step), grad, theta)
		return
	}
	if s.velocity == nil {
		s.velocity = make([]F, len(theta))
	}
	kernel.Scale(s.velocity, F(s.Momentum), s.velocity)
	kernel.Axpy(1, grad, s.velocity)
	kernel.Axpy(-F(s.Step), s.velocity, theta)
}

// Adam is Kingma and Ba's (2015), with their bias correction.
type Adam[F Float] struct {
	Step, Beta1, Beta2, Epsilon float64
	first, second               []F
	steps                       int
}

// NewAdam has the usual constants.
func NewAdam[F Float](step float64) *Adam[F] {
	return &Adam[F]{Step: step, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
}

// Apply takes one step.
func (a *Adam[F]) Apply(theta, grad []F) {
	if a.first == nil {
		a.first, a.second = make([]F, len(theta)), make([]F, len(theta))
	}
	a.steps++
	step := F(a.Step / (1 - math.Pow(a.Beta1, float64(a.steps))))
	root := F(1 / math.Sqrt(1-math.Pow(a.Beta2, float64(a.steps))))
	b1, b2, eps := F(a.Beta1), F(a.Beta2), F(a.Epsilon)
	for i, g := range grad {
		a.first[i] = b1*a.first[i] + (1-b1)*g
		a.second[i] = b2*a.second[i] + (1-b2)*g*g
		theta[i] -= step * a.first[i] / (F(math.Sqrt(float64(a.second[i])))*root + eps)
	}
}

// NewOptimiser builds one by its run file name.
func NewOptimiser[F Float](name string, step, momentum float64) (Optimiser[F], error) {
	switch name {
	case "sgd":
		return &SGD[F]{Step: step, Momentum: momentum}, nil
	case "adam":
		return NewAdam[F](step), nil
	}
	return nil, fmt.Errorf("optimiser %q is not known; allowed: sgd, adam", name)
}
