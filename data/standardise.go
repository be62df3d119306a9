package data

import (
	"math"
	"slices"

	"github.com/coterie-fl/coterie/config"
)

// Standardise says where the constants come from that features are scaled by.
type Standardise string

// The ways to standardise.
const (
	// BySilo takes every silo's mean and standard deviation over its own training
	// rows, as paper 002's code does: all rows then depend on each other.
	BySilo Standardise = "silo"
	// ByPublic takes constants that were fixed without looking at the rows.
	ByPublic Standardise = "public"
	// ByPaid leaves scaling to whoever can pay for moments: package fl. Centre and
	// Scale are then the public range that rows are clamped to, Centre ± Scale.
	ByPaid Standardise = "paid"
	// Unscaled leaves features as they are.
	Unscaled Standardise = "none"
)

// notStandardised is what BySilo leaves out of the accounting.
const notStandardised = "standardisation (every silo's features are scaled by its own training rows)"

// PublicRange is the middle of every feature's public range and half its width: the
// run file's, or else the data set's documented ones. Both are empty if there are none.
func PublicRange(d config.Data) (centre, scale []float64) {
	if k := kinds[d.Kind]; k.Ranges != nil && len(d.Centre) == 0 && len(d.Scale) == 0 {
		return k.Ranges(d)
	}
	return d.Centre, d.Scale
}

// Standardised is a copy of the rows with (x - centre)/scale for every feature.
func (r Rows) Standardised(centre, scale []float64) Rows {
	out := Rows{X: slices.Clone(r.X), Y: slices.Clone(r.Y), Features: r.Features}
	out.standardise(centre, scale)
	return out
}

// moments are every feature's mean and standard deviation, with n in the
// denominator. A constant feature has deviation 1: it becomes 0.
func moments(r Rows) (mean, deviation []float64) {
	mean, deviation = make([]float64, r.Features), make([]float64, r.Features)
	n := float64(max(1, r.Len()))
	for i := range r.Len() {
		for j, v := range r.X[i*r.Features : (i+1)*r.Features] {
			mean[j] += v
		}
	}
	for j := range mean {
		mean[j] /= n
	}
	for i := range r.Len() {
		for j, v := range r.X[i*r.Features : (i+1)*r.Features] {
			deviation[j] += (v - mean[j]) * (v - mean[j]) / n
		}
	}
	for j, v := range deviation {
		deviation[j] = math.Sqrt(v)
		// What is left of a constant after rounding is not a spread.
		if deviation[j] <= 1e-12*math.Abs(mean[j]) || deviation[j] == 0 {
			deviation[j] = 1
		}
	}
	return mean, deviation
}

func (r Rows) standardise(centre, scale []float64) {
	for i := range r.Len() {
		x := r.X[i*r.Features : (i+1)*r.Features]
		for j := range x {
			x[j] = (x[j] - centre[j]) / scale[j]
		}
	}
}
