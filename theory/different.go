package theory

import (
	"errors"
	"fmt"
	"math"
)

// Silo is one silo of a federation whose silos may differ (appendix D.5).
type Silo struct {
	Examples  int     // n_k
	Deviation float64 // sigma_k
	Noise     float64 // sigma_k,DP on the sum of its examples
}

// Variance is that of the silo's own estimate around its centre: from n_k examples
// and from the noise (equation D.22, where n stands for n_k).
func (s Silo) Variance() float64 {
	n := float64(s.Examples)
	return s.Deviation*s.Deviation/n + s.Noise/n*s.Noise/n
}

func (s Silo) validate() error {
	return errors.Join(atLeast("examples", s.Examples, 1), notNegative("sigma", s.Deviation), notNegative("noise", s.Noise))
}

// Different is a federation whose silos have their own sizes, deviations and noise.
type Different struct {
	Silos  []Silo
	Spread float64 // tau
}

// Validate says what is wrong with the federation: every fault at once.
func (f Different) Validate() error {
	faults := []error{atLeast("silos", len(f.Silos), 1), notNegative("tau", f.Spread)}
	for i, s := range f.Silos {
		if err := s.validate(); err != nil {
			faults = append(faults, fmt.Errorf("silo %d: %w", i, err))
		}
	}
	return errors.Join(faults...)
}

// others is the variance of the mean of the other silos' estimates around the
// centre of silo k (equation D.26).
func (f Different) others(k int) float64 {
	var sum float64
	for j, s := range f.Silos {
		if j != k {
			sum += s.Variance()
		}
	}
	rest := float64(len(f.Silos) - 1)
	return f.Spread*f.Spread*(rest+1)/rest + sum/rest/rest
}

// BestLambda is silo k's own best lambda (theorem D.5.2). It is infinite where the
// formula's denominator is 0 or less: the plain average is then the nearest that
// regularisation can come.
func (f Different) BestLambda(k int) float64 {
	count := float64(len(f.Silos))
	local := f.Silos[k].Variance()
	if count == 1 {
		return 0 // every lambda gives the silo's own estimate
	}
	var sum float64
	for j, s := range f.Silos {
		if j != k {
			sum += s.Variance()
		}
	}
	denominator := f.Spread*f.Spread + (sum/(count-1)-local)/count
	if denominator <= 0 {
		return math.Inf(1)
	}
	return local / denominator
}

// Error is silo k's mean squared error at lambda: the variance of what lemma 1.6.1
// mixes (equation D.21 with the variances of D.5).
func (f Different) Error(k int, lambda float64) float64 {
	local := f.Silos[k].Variance()
	if len(f.Silos) == 1 {
		return local
	}
	own := weight(len(f.Silos), lambda)
	return own*own*local + (1-own)*(1-own)*f.others(k)
}
