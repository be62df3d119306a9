package audit

import (
	"context"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/internal/kernel"
)

// objective gives a value at a point, and sets gradient.
type objective func(x, gradient []float64) (float64, error)

// The constants of L-BFGS. PyTorch, which the attack's authors use, remembers 100
// steps too. The line search asks for the weak Wolfe conditions (Nocedal and
// Wright 2006, section 3.1, with their constants) by bisection.
const (
	memory     = 100
	decrease   = 1e-4
	curvature  = 0.9
	bisections = 20
)

// step is a step that was taken and the change of the gradient along it.
type step struct {
	s, y []float64
	rho  float64 // 1/<s, y>
}

// minimise follows an objective downhill by L-BFGS (Nocedal and Wright 2006,
// algorithm 7.5) until so many evaluations are used up, the value is low enough,
// or rounding ends the descent, and returns the lowest point.
func minimise(ctx context.Context, f objective, start []float64, evaluations int, enough float64) ([]float64, float64, error) {
	x, g := slices.Clone(start), make([]float64, len(start))
	value, err := f(x, g)
	if err != nil {
		return nil, 0, err
	}
	evaluations--
	var past []step
	direction := make([]float64, len(x))
	trial, gTrial := make([]float64, len(x)), make([]float64, len(x))
	for evaluations > 0 && value > enough {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		newton(direction, g, past)
		slope := dot(direction, g)
		if !(slope < 0) { // rounding: start again from the gradient
			if len(past) == 0 {
				break
			}
			past = past[:0]
			continue
		}
		length := 1.0
		if len(past) == 0 {
			length = min(1, 1/math.Sqrt(-slope)) // the direction is the gradient's: its length says nothing
		}
		low, high, done := 0.0, math.Inf(1), false
		var next float64
		for try := 0; try < bisections && evaluations > 0 && !done; try++ {
			for i := range trial {
				trial[i] = x[i] + length*direction[i]
			}
			if next, err = f(trial, gTrial); err != nil {
				return nil, 0, err
			}
			evaluations--
			switch {
			case !(next <= value+decrease*length*slope):
				high = length
			case dot(direction, gTrial) < curvature*slope:
				low = length
			default:
				done = true
				continue
			}
			length = (low + high) / 2
			if math.IsInf(high, 1) {
				length = 2 * low
			}
		}
		if !(next < value) {
			if len(past) == 0 {
				break
			}
			past = past[:0]
			continue
		}
		past = remembered(past, trial, x, gTrial, g)
		copy(x, trial)
		copy(g, gTrial)
		value = next
	}
	return x, value, nil
}

// remembered adds a step, unless it shows no positive curvature, and forgets the
// oldest one.
func remembered(past []step, xNew, x, gNew, g []float64) []step {
	var t step
	if len(past) == memory { // its slices are used again
		t = past[0]
		copy(past, past[1:])
		past = past[:memory-1]
	} else {
		t = step{s: make([]float64, len(x)), y: make([]float64, len(x))}
	}
	kernel.Sub(t.s, xNew, x)
	kernel.Sub(t.y, gNew, g)
	if sy := dot(t.s, t.y); sy > 1e-300 {
		t.rho = 1 / sy
		return append(past, t)
	}
	return past
}

// newton sets d to minus the approximate inverse Hessian times g.
func newton(d, g []float64, past []step) {
	kernel.Scale(d, -1, g)
	if len(past) == 0 {
		return
	}
	alpha := make([]float64, len(past))
	for k := len(past) - 1; k >= 0; k-- {
		p := past[k]
		alpha[k] = p.rho * dot(p.s, d)
		add(d, -alpha[k], p.y)
	}
	last := past[len(past)-1]
	kernel.Scale(d, 1/(last.rho*squared(last.y)), d)
	for k, p := range past {
		add(d, alpha[k]-p.rho*dot(p.y, d), p.s)
	}
}

func dot(a, b []float64) float64 { return kernel.Dot(a, b) }

func squared(v []float64) float64 { return kernel.SquaredNorm(v) }

func add(dst []float64, scale float64, v []float64) { kernel.Axpy(scale, v, dst) }
