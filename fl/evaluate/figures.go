package evaluate

import (
	"fmt"
	"math"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/metrics"
)

// Figures are what a federation's noised counts say of its models. Its keys are stable.
type Figures struct {
	Asked        int    `json:"asked"`
	Participants int    `json:"participants"` // whose counts are in the figures
	Reason       string `json:"reason"`       // why there are no figures; empty: there are
	// NoiseSD is the standard deviation of the noise in each of Counts, all participants'
	// together. The same of every figure is what this noise alone makes of it: that the
	// held-out examples are a sample of all that there could be comes on top.
	NoiseSD  event.Number `json:"noise_sd"`
	Examples *Noised      `json:"examples"`
	Accuracy *Noised      `json:"accuracy"`
	AUC      *Noised      `json:"auc"`
	RMSE     *Noised      `json:"rmse"`
	MAE      *Noised      `json:"mae"`
	R2       *Noised      `json:"r2"`
	// CalibrationSlope and CalibrationIntercept are of 2 classes; 1 and 0 are perfect.
	CalibrationSlope     *Noised `json:"calibration_slope"`
	CalibrationIntercept *Noised `json:"calibration_intercept"`
	// Calibration holds, for every bin, the share of class 1 (of more than two classes:
	// of right answers); null for values.
	Calibration []Bin `json:"calibration"`
	// Counts are the noised sums: by class (of more than two: wrong, right) and bin, or
	// one row of examples, squared and absolute errors, targets and squared targets.
	Counts [][]float64 `json:"counts"`
	// Privacy is what one participant's release cost it by itself.
	Privacy event.Statement `json:"privacy"`
}

// Noised is a figure and the standard deviation that the noise alone gives it, to first
// order.
type Noised struct {
	Value   event.Number `json:"value"`
	NoiseSD event.Number `json:"noise_sd"`
}

// Bin is one bin of the probability.
type Bin struct {
	Low      event.Number `json:"low"`
	High     event.Number `json:"high"`
	Examples event.Number `json:"examples"` // noised
	Share    *Noised      `json:"share"`    // null: too few examples for the noise
}

// enough is how many standard deviations of its noise a count must have to be divided by.
const enough = 3

// Figures are those of the sum of so many releases, each on terms of a claim.
func (e *Evaluation) Figures(sums []float64, releases, asked int, claim event.Claim) (f Figures, err error) {
	f = Figures{Asked: asked, Participants: releases}
	if f.Privacy, err = e.Statement(claim); err != nil {
		return f, err
	}
	if releases == 0 {
		f.Reason = "nobody released counts"
		return f, nil
	}
	if len(sums) != e.Length() {
		return f, fmt.Errorf("evaluation: %d sums; wanted %d", len(sums), e.Length())
	}
	counts := &noisy{values: append([]float64(nil), sums...), sd: math.Sqrt(float64(releases)) * e.deviation()}
	if e.classes == 0 {
		for i := range counts.values {
			counts.values[i] /= valueScale
		}
		counts.sd /= valueScale
	}
	f.NoiseSD = event.Number(counts.sd)
	if e.classes == 0 {
		f.Counts = [][]float64{counts.values}
		f.Examples = counts.figure(func(v []float64) float64 { return v[sumExamples] })
	} else {
		f.Counts = [][]float64{counts.values[:e.bins], counts.values[e.bins:]}
		f.Examples = counts.figure(total)
	}
	if f.Examples == nil {
		return f, fmt.Errorf("evaluation: the counts are not finite")
	}
	if !(f.Examples.Value > enough*f.Examples.NoiseSD) {
		f.Reason = fmt.Sprintf("the noise hides the examples: %.4g with a standard deviation of %.4g; ask for a larger judge.evaluate.epsilon", f.Examples.Value, f.Examples.NoiseSD)
		return f, nil
	}
	if e.classes == 0 {
		e.values(&f, counts)
	} else {
		e.histogram(&f, counts)
	}
	return f, nil
}

// String is the figures in a line.
func (f *Figures) String() string {
	if f.Reason != "" {
		return "no figures: " + f.Reason
	}
	var parts []string
	for _, one := range []struct {
		name string
		*Noised
	}{{"accuracy", f.Accuracy}, {"AUC", f.AUC}, {"RMSE", f.RMSE}, {"MAE", f.MAE}, {"R2", f.R2}} {
		if one.Noised != nil {
			parts = append(parts, fmt.Sprintf("%s %.3g (noise alone: ± %.2g)", one.name, float64(one.Value), float64(one.NoiseSD)))
		}
	}
	return fmt.Sprintf("%s; about %.0f held-out examples of %d participants", strings.Join(parts, ", "), max(0, float64(f.Examples.Value)), f.Participants)
}

// values are the figures of sums, in the targets' unit.
func (e *Evaluation) values(f *Figures, c *noisy) {
	n := func(v []float64) float64 { return v[sumExamples] }
	f.RMSE = c.figure(func(v []float64) float64 { return e.unit * e.bound * math.Sqrt(v[sumSquares]/n(v)) })
	f.MAE = c.figure(func(v []float64) float64 { return e.unit * e.bound * v[sumAbsolute] / n(v) })
	spread := func(v []float64) float64 { return v[sumTargetSquares] - v[sumTargets]*v[sumTargets]/n(v) }
	if all := c.figure(spread); all != nil && all.Value > enough*all.NoiseSD {
		f.R2 = c.figure(func(v []float64) float64 { return 1 - v[sumSquares]/spread(v) })
	}
}

// histogram are the figures of a label-by-bin histogram.
func (e *Evaluation) histogram(f *Figures, c *noisy) {
	b := e.bins
	f.Accuracy = c.figure(func(v []float64) float64 {
		if e.classes > 2 {
			return total(v[b:]) / total(v)
		}
		return (total(v[:b/2]) + total(v[b+b/2:])) / total(v)
	})
	if e.classes == 2 {
		f.AUC = c.ratio(func(v []float64) float64 { return total(v[:b]) }, func(v []float64) float64 { return total(v[b:]) }, func(v []float64) float64 {
			below, pairs := 0.0, 0.0
			for i := range b { // scores of one bin are equal: such a pair counts half
				pairs += v[b+i] * (below + v[i]/2)
				below += v[i]
			}
			return pairs / (total(v[:b]) * total(v[b:]))
		})
		if f.AUC != nil { // both classes stand out of the noise
			f.CalibrationSlope, f.CalibrationIntercept = c.figures(func(v []float64) (slope, intercept float64) {
				return metrics.FromHistogram([][]float64{v[:b], v[b:]})
			})
		}
	}
	for i := range b {
		all := func(v []float64) float64 { return v[i] + v[b+i] }
		f.Calibration = append(f.Calibration, Bin{
			Low: event.Number(float64(i) / float64(b)), High: event.Number(float64(i+1) / float64(b)), Examples: event.Number(all(c.values)),
			Share: c.ratio(all, all, func(v []float64) float64 { return v[b+i] / all(v) }),
		})
	}
}

func total(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum
}

// noisy are sums, each with noise of the same deviation.
type noisy struct {
	values []float64
	sd     float64
}

// figure is a function of the sums with what the noise makes of it: sd times the length
// of its gradient. Nil if it is not defined here.
func (c *noisy) figure(of func([]float64) float64) *Noised {
	one, _ := c.figures(func(v []float64) (float64, float64) { return of(v), 0 })
	return one
}

// figures are two figures that are computed together: what costs is the computing, at two
// places for every sum.
func (c *noisy) figures(of func([]float64) (one, other float64)) (one, other *Noised) {
	var values, squares [2]float64
	values[0], values[1] = of(c.values)
	v := append([]float64(nil), c.values...)
	step := c.sd / 1024
	for i, x := range c.values {
		var up, down [2]float64
		v[i] = x + step
		up[0], up[1] = of(v)
		v[i] = x - step
		down[0], down[1] = of(v)
		v[i] = x
		for j := range squares {
			slope := (up[j] - down[j]) / (2 * step)
			squares[j] += slope * slope
		}
	}
	return c.told(values[0], squares[0]), c.told(values[1], squares[1])
}

// told is a figure whose gradient has a length of this square; nil if it is not a number.
func (c *noisy) told(value, square float64) *Noised {
	sd := c.sd * math.Sqrt(square)
	if math.IsNaN(value+sd) || math.IsInf(value+sd, 0) {
		return nil
	}
	return &Noised{Value: event.Number(value), NoiseSD: event.Number(sd)}
}

// ratio is a figure that is divided by two counts; nil if the noise hides one of them.
func (c *noisy) ratio(one, other, of func([]float64) float64) *Noised {
	for _, by := range []func([]float64) float64{one, other} {
		if f := c.figure(by); f == nil || !(f.Value > enough*f.NoiseSD) {
			return nil
		}
	}
	return c.figure(of)
}
