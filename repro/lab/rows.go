package lab

import (
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
)

// Spread is a figure over seeds, and from where to where it reaches.
type Spread struct{ Middle, Low, High float64 }

// Exactly is a figure without spread.
func Exactly(v float64) Spread { return Spread{v, v, v} }

// At is the point of a curve.
func (s Spread) At(x float64) study.Point {
	return study.Point{X: x, Y: s.Middle, Low: s.Low, High: s.High}
}

// Curve is a series with a point at every x.
func Curve(name string, xs []float64, at func(i int) Spread) study.Series {
	s := study.Series{Name: name}
	for i, x := range xs {
		s.Points = append(s.Points, at(i).At(x))
	}
	return s
}

// Quantiles are the median and the middle 80 %.
func Quantiles(values []float64) Spread {
	v := slices.Clone(values)
	slices.Sort(v)
	at := func(q float64) float64 {
		x := q * float64(len(v)-1)
		i := int(x)
		if i+1 == len(v) || v[i] == v[i+1] {
			return v[i]
		}
		return v[i] + (x-float64(i))*(v[i+1]-v[i])
	}
	return Spread{at(0.5), at(0.1), at(0.9)}
}

// MeanAndDeviation is the mean, and one standard deviation to both sides.
func MeanAndDeviation(values []float64) Spread {
	var sum, squares float64
	for _, v := range values {
		sum += v
	}
	mean := sum / float64(len(values))
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	sd := 0.0
	if len(values) > 1 {
		sd = math.Sqrt(squares / float64(len(values)-1))
	}
	return Spread{mean, mean - sd, mean + sd}
}

// Number is a figure as rows hold it.
func Number(x float64) *event.Number { n := event.Number(x); return &n }

// Measured fills a row's own figures.
func Measured(r study.Row, s Spread) study.Row {
	r.Measured, r.Low, r.High = Number(s.Middle), Number(s.Low), Number(s.High)
	return r
}

// Judged sets the verdict of a row with the paper's number or sentence: does the measured
// figure lie within the band?
func Judged(r study.Row, low, high float64) study.Row {
	m := float64(*r.Measured)
	r.Verdict = verdict(m >= low && m <= high)
	return r
}

// Claim is the row's sentence of a paper as one that can be false.
func Claim(r study.Row, s Spread, holds bool) study.Row {
	r.Verdict = verdict(holds)
	return Measured(r, s)
}

func verdict(holds bool) study.Verdict {
	if holds {
		return study.Agrees
	}
	return study.Differs
}

// Pick takes one figure of every cell.
func Pick[C any](cells []C, f func(C) float64) []float64 {
	out := make([]float64, len(cells))
	for i, c := range cells {
		out[i] = f(c)
	}
	return out
}

// Share is the part of cells for which ok holds.
func Share[C any](cells []C, ok func(C) bool) float64 {
	n := 0
	for _, c := range cells {
		if ok(c) {
			n++
		}
	}
	return float64(n) / float64(len(cells))
}
