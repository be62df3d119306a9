package clipping

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// The grids of section 3.7: k values of the step from 10^-2.5 to 10^1.5 and of the clip
// from 10^-2 to 10^2, evenly on a log scale; the quantiles are Andrew et al.'s.
func steps(k int) []float64 { return logarithmic(-2.5, 1.5, k) }
func clips(k int) []float64 { return logarithmic(-2, 2, k) }

var quantiles = []float64{0.1, 0.3, 0.5, 0.7, 0.9}

// logarithmic are k values in four digits, as the thesis prints them.
func logarithmic(from, to float64, k int) []float64 {
	out := make([]float64, k)
	for i := range out {
		v := math.Pow(10, from+(to-from)*float64(i)/float64(k-1))
		out[i], _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	}
	return out
}

// runsOf is how many runs a method's grid has, which share one budget.
func runsOf(m method, k int) int {
	switch m {
	case threshold:
		return k * k
	case quantile:
		return k * len(quantiles)
	}
	return k
}

// setting is a point of a grid.
type setting struct {
	Step     float64 `json:"step"`
	Clip     float64 `json:"clip,omitempty"`     // where it starts; 0: nothing is clipped
	Quantile float64 `json:"quantile,omitempty"` // of FixedQuantile
}

func (s setting) String() string {
	text := fmt.Sprintf("rho %v", s.Step)
	if s.Clip > 0 {
		text += fmt.Sprintf(", C %v", s.Clip)
	}
	if s.Quantile > 0 {
		text += fmt.Sprintf(", gamma %v", s.Quantile)
	}
	return text
}

// gridOf are the settings of a method's grid.
func gridOf(m method, k int) (out []setting) {
	switch m {
	case threshold:
		for _, rho := range steps(k) {
			for _, c := range clips(k) {
				out = append(out, setting{Step: rho, Clip: c})
			}
		}
	case quantile:
		for _, rho := range steps(k) {
			for _, gamma := range quantiles {
				out = append(out, setting{rho, startClip, gamma})
			}
		}
	case adamWOSM:
		for _, c := range clips(k) {
			out = append(out, setting{Step: adamStep, Clip: c})
		}
	case online:
		for _, rho := range steps(k) {
			out = append(out, setting{Step: rho, Clip: startClip})
		}
	default:
		for _, rho := range steps(k) {
			out = append(out, setting{Step: rho})
		}
	}
	return out
}

// placeOf is where a setting stands among the so many runs that share a budget. Each draws
// batches and noise by its place: of two that were drawn alike whoever sees both can take
// one from the other, and their prices do not add up. A run with a budget of its own has
// place 0, whatever its settings.
func placeOf(m method, runs int, s setting) (int, error) {
	var grid []setting
	switch {
	case runs <= 1:
		return 0, nil
	case runs == runsOf(m, 5):
		grid = gridOf(m, 5)
	case runs == runsOf(m, 9):
		grid = gridOf(m, 9)
	case m == threshold && runs == runsOf(online, 5):
		grid = clipGiven(gridOf(m, 5))
	}
	place := slices.Index(grid, s)
	if place < 0 {
		return 0, fmt.Errorf("%s is none of the settings whose %d runs of %s share a budget", s, runs, m)
	}
	return place, nil
}

// noiseFor is the S of one step where so many runs of so many steps, on Poisson batches
// out of so many examples, together keep epsilon at delta: examples, add-remove, by the
// Rényi accountant, as the thesis does with the moments accountant.
func noiseFor(epsilon float64, runs, steps, examples int) (float64, error) {
	plan, _, err := training(runs, steps, examples).WithNoiseFor(account.MethodRDP, epsilon, delta)
	if err != nil {
		return 0, fmt.Errorf("noise of %d runs at epsilon %v: %w", runs, epsilon, err)
	}
	return plan.Noise, nil
}

func training(runs, steps, examples int) account.Training {
	return account.Training{
		Terms: account.Terms{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved}, Trust: event.TrustLocal,
		Sampling: event.Poisson, Rate: float64(batch) / float64(examples), Steps: int64(steps), Runs: int64(runs),
	}
}
