package theory

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// Calibration is how a silo's noise follows from its target.
type Calibration string

// The calibrations of one Gaussian release.
const (
	ByRDP      Calibration = "rdp"       // what figure 1.7 uses
	ByAnalytic Calibration = "analytic"  // the least noise there is
	ByFormula  Calibration = "classical" // sqrt(2 ln(1.25/delta))/epsilon, section 1.6: proved for epsilon < 1 only
)

// Target is what a silo's examples are promised for the one release of their sum.
// The noise on the sum is S*Clip: the clip is the sensitivity.
type Target struct {
	Clip           float64
	Epsilon, Delta float64 // an infinite epsilon: no noise
	Relation       event.Relation
	Calibration    Calibration
}

// Noise is S = sigma_DP/Clip, and what it really costs.
func (t Target) Noise() (float64, account.Guarantee, error) {
	if err := t.validate(); err != nil {
		return 0, account.Guarantee{}, err
	}
	if math.IsInf(t.Epsilon, 1) {
		g, err := account.Spend(t.release(event.Unprotected{}), account.MethodRDP, t.Delta)
		return 0, t.covered(g), err
	}
	noise, err := t.solve()
	if err != nil {
		return 0, account.Guarantee{}, err
	}
	g, err := account.Spend(t.release(event.Gaussian{Noise: noise}), account.MethodRDP, t.Delta)
	if err != nil {
		return 0, account.Guarantee{}, err
	}
	if t.Calibration != ByRDP {
		g.Epsilon, err = account.GaussianEpsilon(noise, 1, t.Delta, t.Relation)
		g.Order, g.Accountant = 0, "analytic"
	}
	return noise, t.covered(g), err
}

func (t Target) solve() (float64, error) {
	switch t.Calibration {
	case ByRDP:
		return t.least(func(noise float64) event.Event { return event.Gaussian{Noise: noise} })
	case ByAnalytic:
		return account.AnalyticNoise(t.Epsilon, t.Delta, 1, t.Relation)
	}
	factor := 1.0
	if t.Relation == event.ReplaceOne {
		factor = 2
	}
	return factor * math.Sqrt(2*math.Log(1.25/t.Delta)) / t.Epsilon, nil
}

// TunedNoise is the noise at which the best of a random number of trials keeps the
// target (theorem E.1.2; Poisson: Papernot and Steinke 2022, theorem 6), always by
// the Rényi accountant. With a pivot, one further release at the same noise is
// charged: the one that is sent, so that there is an average to be pulled to
// (appendix E.3). A noised score beside the trials would cost more again.
func (t Target) TunedNoise(trials Trials, pivot bool) (float64, account.Guarantee, error) {
	if err := t.validate(); err != nil {
		return 0, account.Guarantee{}, err
	}
	cost := func(noise float64) event.Event {
		one := event.Gaussian{Noise: noise}
		if pivot {
			return event.Composed{Parts: []event.Event{one, trials.Event(one)}}
		}
		return trials.Event(one)
	}
	noise, err := t.least(cost)
	if err != nil {
		return 0, account.Guarantee{}, err
	}
	g, err := account.Spend(t.release(cost(noise)), account.MethodRDP, t.Delta)
	return noise, t.covered(g), err
}

// Event is what the best of so many trials of an event costs.
func (t Trials) Event(of event.Event) event.Tuning {
	if t.Poisson {
		return event.Tuning{Distribution: event.PoissonTrials, Mean: t.Mean, Of: of}
	}
	return event.Tuning{Distribution: event.TruncatedNegativeBinomial, Eta: t.Eta, Gamma: t.Gamma, Of: of}
}

// least is the least noise at which the event keeps the target.
func (t Target) least(of func(noise float64) event.Event) (float64, error) {
	return account.LeastNoise(t.Epsilon, func(noise float64) (float64, error) {
		g, err := account.Spend(t.release(of(noise)), account.MethodRDP, t.Delta)
		return g.Epsilon, err
	})
}

func (t Target) release(what event.Event) event.Release {
	claim, trust := event.ClaimProved, event.TrustLocal
	if _, bare := what.(event.Unprotected); bare {
		claim, trust = event.ClaimNone, event.TrustNobody
	}
	return event.Release{Unit: event.UnitExample, Relation: t.Relation, Claim: claim, Trust: trust, What: what}
}

// covered adds what the number leaves out.
func (t Target) covered(g account.Guarantee) account.Guarantee {
	g.NotCovered = append(g.NotCovered, account.SizeNotCovered,
		"sigma and tau: where they were estimated from the silos' data, that was a release of its own")
	return g
}

func (t Target) validate() error {
	switch {
	case !(t.Clip > 0) || math.IsInf(t.Clip, 1):
		return fmt.Errorf("%w: clip = %v, want a finite number > 0", ErrRange, t.Clip)
	case !(t.Epsilon > 0):
		return fmt.Errorf("%w: epsilon = %v, want a number > 0, or inf for no noise", ErrRange, t.Epsilon)
	case !(t.Delta >= account.LeastDelta && t.Delta < 1):
		return fmt.Errorf("%w: delta = %v, want 0 < delta < 1, and at least %g", ErrRange, t.Delta, account.LeastDelta)
	case t.Relation != event.AddRemove && t.Relation != event.ReplaceOne:
		return fmt.Errorf("%w: relation %q, want add-remove or replace-one", ErrRange, t.Relation)
	case t.Calibration != ByRDP && t.Calibration != ByAnalytic && t.Calibration != ByFormula:
		return fmt.Errorf("%w: calibration %q, want rdp, analytic or classical", ErrRange, t.Calibration)
	}
	return nil
}
