// Package theory is federated mean estimation, closed forms and simulation: what mean regularisation gains over training alone and over averaging, and what tuning it costs.
package theory

import (
	"errors"
	"fmt"
	"math"
)

// ErrRange means that a parameter lies outside what the formulas allow.
var ErrRange = errors.New("out of range")

// Equal is a federation of equal silos (paper 002, section 1.6 and assumption
// D.3.1): centres w_k ~ N(theta, Spread^2), examples x ~ N(w_k, Deviation^2), and
// Gaussian noise of standard deviation Noise on the sum of a silo's examples.
// Lambda may be infinite in every method: that is the plain average.
type Equal struct {
	Silos     int     // K
	Examples  int     // n, of every silo; it must be public
	Deviation float64 // sigma
	Spread    float64 // tau
	Noise     float64 // sigma_DP; 0: no privacy
}

// Validate says what is wrong with the federation: every fault at once.
func (f Equal) Validate() error {
	s := Silo{f.Examples, f.Deviation, f.Noise}
	return errors.Join(atLeast("silos", f.Silos, 1), s.validate(), notNegative("tau", f.Spread))
}

// LocalVariance is that of a silo's own estimate around its centre (equation 1.9).
func (f Equal) LocalVariance() float64 { return Silo{f.Examples, f.Deviation, f.Noise}.Variance() }

// Weight is alpha: the estimate that minimises the regularised objective is
// alpha times the silo's own estimate and 1-alpha times the mean of the others'
// (lemma 1.6.1).
func (f Equal) Weight(lambda float64) float64 { return weight(f.Silos, lambda) }

func weight(silos int, lambda float64) float64 {
	k := float64(silos)
	return 1/k + (1-1/k)/(1+lambda) // (K + lambda)/((1 + lambda) K), finite at infinity
}

// BestLambda minimises the error at the silo's centre: local variance over spread
// squared (theorem 1.6.3). Without spread it is infinite.
func (f Equal) BestLambda() float64 {
	if f.Spread == 0 {
		return math.Inf(1)
	}
	return f.LocalVariance() / (f.Spread * f.Spread)
}

// BestError is the mean squared error at BestLambda (corollary 1.6.4).
func (f Equal) BestError() float64 {
	k, v, t := float64(f.Silos), f.LocalVariance(), f.Spread*f.Spread
	if v+t == 0 {
		return 0
	}
	return v * (v + k*t) / (k * (v + t))
}

// LocalError is that of training alone: lambda 0.
func (f Equal) LocalError() float64 { return f.LocalVariance() }

// AverageError is that of the plain average, FedAvg here: lambda at infinity.
func (f Equal) AverageError() float64 {
	k := float64(f.Silos)
	return f.LocalVariance()/k + (1-1/k)*f.Spread*f.Spread
}

// GapToLocal is what training alone loses against the best lambda (proposition
// 1.6.5).
func (f Equal) GapToLocal() float64 { return f.gap(f.LocalVariance()) }

// GapToAverage is what the plain average loses against the best lambda
// (proposition 1.6.6).
func (f Equal) GapToAverage() float64 { return f.gap(f.Spread * f.Spread) }

func (f Equal) gap(x float64) float64 {
	sum := f.LocalVariance() + f.Spread*f.Spread
	if sum == 0 {
		return 0
	}
	return (1 - 1/float64(f.Silos)) * x * x / sum
}

// Error is the mean squared error at lambda (lemma 1.6.7).
func (f Equal) Error(lambda float64) float64 { return f.Each().Error(0, lambda) }

// PrivacyCost is the part of Error that the noise adds (theorem 1.6.8): it falls
// with lambda by up to a factor of K.
func (f Equal) PrivacyCost(lambda float64) float64 {
	k, n := float64(f.Silos), float64(f.Examples)
	noise := f.Noise / n * f.Noise / n
	local := 1 / (1 + lambda)
	return (1-1/k)*local*local*noise + noise/k
}

// Each is the federation silo by silo.
func (f Equal) Each() Different {
	silos := make([]Silo, max(0, f.Silos))
	for i := range silos {
		silos[i] = Silo{f.Examples, f.Deviation, f.Noise}
	}
	return Different{Silos: silos, Spread: f.Spread}
}

func atLeast(name string, value, least int) error {
	if value < least {
		return fmt.Errorf("%w: %s = %d, want at least %d", ErrRange, name, value, least)
	}
	return nil
}

func notNegative(name string, value float64) error {
	if !(value >= 0) || math.IsInf(value, 1) {
		return fmt.Errorf("%w: %s = %v, want a finite number >= 0", ErrRange, name, value)
	}
	return nil
}
