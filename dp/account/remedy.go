package account

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
)

// BudgetError is a release that a budget does not cover, with the numbers that would
// do. It wraps ErrBudget.
type BudgetError struct {
	// Epsilon at Delta is the ceiling; Needed would let the release pass, and Spent is
	// what passed before, both as Filter adds up.
	Epsilon, Delta, Needed, Spent float64
	Filter                        string
	// Over says all that in a filter's own words instead.
	Over   string
	Remedy Remedy
}

func (e *BudgetError) Error() string {
	text := ErrBudget.Error() + ": " + e.Over
	if e.Over == "" {
		text += fmt.Sprintf("epsilon %s would be needed at delta %v, and the ceiling is %v; by the %s filter %s are spent",
			Upward(e.Needed), e.Delta, e.Epsilon, e.Filter, Upward(e.Spent))
	}
	if do := e.Remedy.String(); do != "" {
		text += "; " + do
	}
	return text
}

// Unwrap makes it an ErrBudget.
func (e *BudgetError) Unwrap() error { return ErrBudget }

// Remedy is how a release that does not fit could be made to fit.
type Remedy struct {
	// Noise would do instead of Now, with all else as it is. Where a release has noise
	// of several sizes, Now is 0 and Noise the factor for all of them. 0: no noise would.
	Noise, Now float64
	// Fit of the Of repetitions that were asked for would fit; Each is what is
	// repeated, in the plural. Of 0: it is made once.
	Fit, Of int64
	Each    string
}

// String says what would do, if anything.
func (r Remedy) String() string {
	var ways []string
	switch {
	case r.Noise > 0 && r.Now > 0:
		ways = append(ways, fmt.Sprintf("noise %s instead of %.6g would do", digits(r.Noise), r.Now))
	case r.Noise > 0:
		ways = append(ways, fmt.Sprintf("noise %s times as large would do", digits(r.Noise)))
	}
	if r.Of > 0 {
		ways = append(ways, fmt.Sprintf("%d of the %d %s would fit", r.Fit, r.Of, r.Each))
	}
	return strings.Join(ways, "; ")
}

// mostNoise is the factor beyond which more noise is no remedy.
const mostNoise = 1024

// Cut says how a release can be made less often.
type Cut struct {
	Of   int64  // how often it was to be made
	Each string // what is repeated, in the plural
	To   func(times int64) event.Release
}

// FindRemedy looks for what would make a release fit that does not. More noise and fewer
// repetitions must fit better.
func FindRemedy(r event.Release, cut Cut, fits func(event.Release) bool) Remedy {
	var do Remedy
	louder := func(factor float64) bool { return fits(withNoise(r, factor)) }
	if high := 2.0; len(noisesOf(r.What, nil)) > 0 {
		for !louder(high) && high < mostNoise {
			high *= 2
		}
		if high < mostNoise {
			do.Noise, do.Now = leastFactor(r, high, louder)
		}
	}
	if cut.Of < 2 {
		return do
	}
	do.Of, do.Each = cut.Of, cut.Each
	for low, high := int64(0), cut.Of; high-low > 1; { // 0 fit, all of them do not
		if middle := low + (high-low)/2; fits(cut.To(middle)) {
			low, do.Fit = middle, middle
		} else {
			high = middle
		}
	}
	return do
}

// leastFactor closes in on the least factor that does, and rounds it, or the noise that
// it makes, up to four digits.
func leastFactor(r event.Release, high float64, louder func(float64) bool) (noise, now float64) {
	low := high / 2 // at 1 it did not fit
	for high/low > 1+1e-6 {
		if middle := math.Sqrt(low * high); louder(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	if all := noisesOf(r.What, nil); len(all) == 1 {
		now = all[0]
	}
	unit := 1.0
	if now > 0 {
		unit = now
	}
	return roundedUp(high * unit), now
}

// roundedUp is the next number of four digits.
func roundedUp(x float64) float64 {
	scale := math.Pow(10, 3-math.Floor(math.Log10(x)))
	short, err := strconv.ParseFloat(strconv.FormatFloat(math.Ceil(x*scale)/scale, 'g', 4, 64), 64)
	if err != nil || short < x {
		return x
	}
	return short
}

func digits(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// withNoise is a release with all its noise times factor. Choices have no noise of
// their own and stay.
func withNoise(r event.Release, factor float64) event.Release {
	r.What = eachNoise(r.What, func(noise float64) float64 { return noise * factor })
	return r
}

// noisesOf lists the different sizes of noise in an event.
func noisesOf(e event.Event, into []float64) []float64 {
	eachNoise(e, func(noise float64) float64 {
		if !slices.Contains(into, noise) && len(into) < 2 { // two are several
			into = append(into, noise)
		}
		return noise
	})
	return into
}

// eachNoise is an event with change applied to its noise.
func eachNoise(e event.Event, change func(float64) float64) event.Event {
	switch e := e.(type) {
	case event.Gaussian:
		e.Noise = change(e.Noise)
		return e
	case event.Laplace:
		e.Scale = change(e.Scale)
		return e
	case event.DiscreteGaussian:
		e.Sigma = change(e.Sigma)
		return e
	case event.MetricLaplace:
		e.NoiseMultiplier = change(e.NoiseMultiplier)
		return e
	case event.NodeGaussian:
		e.Noise = change(e.Noise)
		return e
	case event.NodeSum:
		e.Noise = change(e.Noise)
		return e
	case event.NodeThinned:
		e.Noise = change(e.Noise)
		return e
	case event.Sampled:
		e.Of = eachNoise(e.Of, change)
		return e
	case event.Repeated:
		e.Of = eachNoise(e.Of, change)
		return e
	case event.Tuning:
		e.Of = eachNoise(e.Of, change)
		return e
	case event.Composed:
		parts := make([]event.Event, len(e.Parts))
		for i, part := range e.Parts {
			parts[i] = eachNoise(part, change)
		}
		return event.Composed{Parts: parts}
	}
	return e
}

// firstSteps is how to cut a plan of training: its first repetition, with all that is
// charged beside it.
func firstSteps(r event.Release) Cut {
	switch e := r.What.(type) {
	case event.Repeated:
		return Cut{e.Times, "steps", func(times int64) event.Release {
			less := r
			less.What = event.Repeated{Times: times, Of: e.Of}
			return less
		}}
	case event.Composed:
		if first, ok := e.Parts[0].(event.Repeated); ok { // Validate wants one part at least
			return Cut{first.Times, "steps", func(times int64) event.Release {
				less, parts := r, slices.Clone(e.Parts)
				parts[0] = event.Repeated{Times: times, Of: first.Of}
				less.What = event.Composed{Parts: parts}
				return less
			}}
		}
	}
	return Cut{}
}

// withRemedy adds what would do, if somebody says what fits.
func (e *BudgetError) withRemedy(r event.Release, fits func(event.Release) bool) *BudgetError {
	e.Needed *= 1 + 1e-9 // sums are rounded up on the way
	if fits != nil {
		e.Remedy = FindRemedy(r, firstSteps(r), fits)
	}
	return e
}
