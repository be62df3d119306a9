package repro

import (
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
)

// spread is a median with the middle 80 % of seeds.
type spread struct{ middle, low, high float64 }

func quantiles(values []float64) spread {
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
	return spread{at(0.5), at(0.1), at(0.9)}
}

// meanAndDeviation is the mean, and one standard deviation to both sides.
func meanAndDeviation(values []float64) spread {
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
	return spread{mean, mean - sd, mean + sd}
}

func number(x float64) *event.Number { n := event.Number(x); return &n }

// measured fills a row's own figures.
func measured(r study.Row, s spread) study.Row {
	r.Measured, r.Low, r.High = number(s.middle), number(s.low), number(s.high)
	return r
}

// judged sets the verdict: does the measured figure lie within the band?
func judged(r study.Row, low, high float64) study.Row {
	r.Verdict = study.Differs
	if m := float64(*r.Measured); m >= low && m <= high {
		r.Verdict = study.Agrees
	}
	return r
}

// pick takes one figure of every cell.
func pick(cells []cell, f func(cell) float64) []float64 {
	out := make([]float64, len(cells))
	for i, c := range cells {
		out[i] = f(c)
	}
	return out
}

func validation(c cell) float64 { return float64(c.Validation) }
func worst(c cell) float64      { return float64(*c.Worst) }
func largest(c cell) float64    { return float64(c.Max) }
func median(c cell) float64     { return float64(c.Median) }

// share is the part of cells for which ok holds.
func share(cells []cell, ok func(cell) bool) float64 {
	n := 0
	for _, c := range cells {
		if ok(c) {
			n++
		}
	}
	return float64(n) / float64(len(cells))
}

func pointer(x *float64) *event.Number {
	if x == nil {
		return nil
	}
	return number(*x)
}
