package theory

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// Tuned is what tuning lambda does to the error once it is charged for (section
// 1.7): the trials share the target, so each has more noise.
type Tuned struct {
	Trials    Trials
	Noise     float64 // S of every trial
	Guarantee account.Guarantee
	Best      float64 // error at the best lambda, were it found
	Expected  float64 // error of the best of the trials' random lambdas, choice free and perfect
	Untuned   float64 // the better of training alone and the plain average, without tuning
}

// TuningGrid are the lambdas that trials choose from: those of figure 1.7.
func TuningGrid() []float64 {
	all := Range(1e-3, 1e2, 100)
	return all[:len(all)-1] // infinity is no trial
}

// Pays says whether tuning can beat doing without at all.
func (t Tuned) Pays() bool { return t.Best < t.Untuned }

// Tune charges f's silos for tuning lambda, with the pivot's release or, as figure
// 1.7 does, without.
func Tune(f Equal, target Target, distribution string, eta, mean float64, pivot bool) (Tuned, error) {
	var t Tuned
	var err error
	switch distribution {
	case event.TruncatedNegativeBinomial:
		t.Trials, err = NegativeBinomialTrials(eta, mean)
	case event.PoissonTrials:
		t.Trials, err = PoissonTrials(mean)
	default:
		err = fmt.Errorf("%w: distribution %q, want tnb or poisson", ErrRange, distribution)
	}
	if err != nil {
		return Tuned{}, err
	}
	if math.IsInf(target.Epsilon, 1) {
		return Tuned{}, fmt.Errorf("%w: without a finite epsilon there is nothing to charge", ErrRange)
	}
	if t.Noise, t.Guarantee, err = target.TunedNoise(t.Trials, pivot); err != nil {
		return Tuned{}, err
	}
	t.Untuned = math.Min(f.LocalError(), f.AverageError())
	f.Noise = t.Noise * target.Clip
	errors := make([]float64, 0, 101)
	for _, lambda := range TuningGrid() {
		errors = append(errors, f.Error(lambda))
	}
	t.Best = f.BestError()
	// A draw of 0 trials returns a public model: the pivot's average.
	t.Expected = t.Trials.BestOf(errors, f.AverageError())
	return t, nil
}

// Together is what silos that differ promise: the largest epsilon and delta. One
// silo without noise promises nothing for all.
func Together(silos []account.Guarantee) (account.Guarantee, error) {
	for _, s := range silos {
		if s.Claim == event.ClaimNone {
			return s, nil
		}
	}
	return account.Federation(silos...)
}
