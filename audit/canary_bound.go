package audit

import (
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/metrics"
)

// binomialAtLeast is the chance of so many hits or more.
func binomialAtLeast(hits, trials int, probability float64) float64 {
	switch {
	case hits <= 0:
		return 1
	case hits > trials:
		return 0
	}
	return mathext.RegIncBeta(float64(hits), float64(trials-hits+1), probability)
}

// curveFreeEpsilon follows from false and true positives alone: (epsilon, delta)
// allows TPR <= e^epsilon*FPR + delta, and the same of the negatives.
func curveFreeEpsilon(falsePositives, truePositives, runs int, o CanaryOptions) float64 {
	level := o.level() / 2 // two limits that may be wrong
	fpr, tpr := metrics.AtMost(falsePositives, runs, level), metrics.AtLeast(truePositives, runs, level)
	epsilon := 0.0
	for _, e := range []float64{
		math.Log((tpr - o.Delta) / fpr),
		math.Log((1 - fpr - o.Delta) / (1 - tpr)),
	} {
		if e > epsilon { // NaN is not
			epsilon = e
		}
	}
	return epsilon
}

// advantageAtLeast bounds the total variation between the silo's releases with and
// without the canary. Right guesses are a sum of independent yes-or-no trials with
// the mean (1 + TPR - FPR)/2, which is (1 + advantage)/2 at most; of all such sums
// the binomial has the heaviest tail (Hoeffding 1956, theorem 4), so that Clopper
// and Pearson's limit holds although the two sides' chances differ.
func advantageAtLeast(right int, o CanaryOptions) float64 {
	return max(0, 2*metrics.AtLeast(right, o.guesses(), o.level())-1)
}

// canaryCurve is the trade-off curve of what was charged, as one of a family: the
// same with a share of the noise.
type canaryCurve struct {
	charged []event.Release
	exact   bool // the noise is on a lattice, and is accounted for so
}

// claim is what the run's own accountant says.
func (c canaryCurve) claim(delta float64) (account.Guarantee, error) {
	var options []account.Option
	if c.exact {
		options = append(options, account.WithExactNoise())
	}
	a, err := account.NewRDP(account.TermsOf(c.charged[0]), options...)
	if err != nil {
		return account.Guarantee{}, err
	}
	for _, r := range c.charged {
		if err := a.Compose(r); err != nil {
			return account.Guarantee{}, err
		}
	}
	return a.Guarantee(delta)
}

// curveInterval is the grid of losses: fine enough, since a search asks for dozens of
// curves, and epsilons near 0 never come within a percent.
const curveInterval = 1e-4

// epsilon is the curve with a share of the noise at delta, from below and above.
func (c canaryCurve) epsilon(share, delta float64) (low, high float64, err error) {
	a, err := account.NewPLD(account.TermsOf(c.charged[0]), account.WithInterval(curveInterval))
	if err != nil {
		return 0, 0, err
	}
	for _, r := range c.charged {
		r.What = withNoise(r.What, share)
		if err := a.Compose(r); err != nil {
			return 0, 0, err
		}
	}
	return a.Bounds(delta)
}

// withNoise is the event with a share of its noise.
func withNoise(e event.Event, share float64) event.Event {
	switch e := e.(type) {
	case event.Composed:
		parts := make([]event.Event, len(e.Parts))
		for i, part := range e.Parts {
			parts[i] = withNoise(part, share)
		}
		return event.Composed{Parts: parts}
	case event.Repeated:
		e.Of = withNoise(e.Of, share)
		return e
	case event.Sampled:
		e.Of = withNoise(e.Of, share)
		return e
	case event.Gaussian:
		e.Noise *= share
		return e
	case event.NodeSum:
		e.Noise *= share
		return e
	}
	return e // newCanaryAttack refused everything else
}

// allows says whether an advantage is possible with a share of the noise: delta at
// epsilon 0 is the advantage of the best attacker.
func (c canaryCurve) allows(share, advantage float64) (bool, error) {
	_, high, err := c.epsilon(share, advantage)
	return high > 0, err
}

// The shares of noise that are searched, and how closely.
const (
	leastShare, mostShare = 1.0 / 1024, 1024
	shareClose            = 1e-3
)

// between finds where ok turns from true to false as the share of noise grows: the
// last known to be true (0: none), and the first known to be false (+Inf: none).
func between(ok func(share float64) (bool, error)) (low, high float64, err error) {
	low, high = 0, math.Inf(1)
	for share := 1.0; high/low > 1+shareClose; {
		yes, err := ok(share)
		if err != nil {
			return 0, 0, err
		}
		if yes {
			low = share
		} else {
			high = share
		}
		switch {
		case low == mostShare, high == leastShare:
			return low, high, nil
		case low == 0:
			share = high / 2
		case math.IsInf(high, 1):
			share = low * 2
		default:
			share = math.Sqrt(low * high)
		}
	}
	return low, high, nil
}

// noiseAtMost is the largest share of the noise that allows the advantage; +Inf for
// none.
func (c canaryCurve) noiseAtMost(advantage float64) (float64, error) {
	if !(advantage > 0) {
		return math.Inf(1), nil
	}
	_, high, err := between(func(share float64) (bool, error) { return c.allows(share, advantage) })
	return high, err
}

// atLeast is epsilon of the mechanism with at most a share of the noise, rounded
// down.
func (c canaryCurve) atLeast(share, delta float64) (float64, error) {
	if math.IsInf(share, 1) {
		return 0, nil
	}
	low, _, err := c.epsilon(share, delta)
	return low, err
}

// advantage is the best attacker's against the mechanism as charged, rounded up.
func (c canaryCurve) advantage() (float64, error) {
	low, high := 0.0, 1.0
	for high-low > 1e-4 {
		middle := (low + high) / 2
		ok, err := c.allows(1, middle)
		if err != nil {
			return 0, err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return high, nil
}

// critical is the least number of right guesses with which the bound exceeds an
// epsilon; one more than there are guesses, if none does.
func (c canaryCurve) critical(epsilon float64, o CanaryOptions) (int, error) {
	share, _, err := between(func(share float64) (bool, error) {
		e, err := c.atLeast(share, o.Delta)
		return e > epsilon, err
	})
	if err != nil {
		return 0, err
	}
	if share == 0 {
		return o.guesses() + 1, nil
	}
	least, most := o.guesses()/2, o.guesses()+1 // guessing blindly, half are right
	for most-least > 1 {
		right := (least + most) / 2
		ok, err := c.allows(share, advantageAtLeast(right, o))
		if err != nil {
			return 0, err
		}
		if ok {
			least = right
		} else {
			most = right
		}
	}
	return most, nil
}
