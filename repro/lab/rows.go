package lab

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/report/study"
	"gonum.org/v1/gonum/stat/distuv"
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

// Interval is the mean with its 95 % interval over seeds; one seed has none.
func Interval(values []float64) Spread {
	mean, half := metrics.Spread(values)
	if len(values) < 2 {
		return Exactly(mean)
	}
	return Spread{mean, mean - half, mean + half}
}

// Effect is a row's sentence of a paper as an effect that could be absent: figures of the
// same seeds in both arms, one less the other, must lie above the least by their whole
// interval. One seed has no interval, and is not judged.
func Effect(r study.Row, differences []float64, least float64) study.Row {
	s := Interval(differences)
	if len(differences) < 2 {
		r.Note, r.Sentence, r.Verdict = r.Sentence+" (one seed has no interval)", "", study.Incomparable
		return Measured(r, s)
	}
	if r.Note == "" {
		r.Note = fmt.Sprintf("agrees: the whole 95 %% interval over seeds above %v", least)
	}
	return Claim(r, s, s.Low > least)
}

// AtMost is Effect the other way round: the whole interval must lie below the most.
func AtMost(r study.Row, values []float64, most float64) study.Row {
	s := Interval(values)
	if len(values) < 2 {
		return Effect(r, values, most)
	}
	if r.Note == "" {
		r.Note = fmt.Sprintf("agrees: the whole 95 %% interval over seeds below %v", most)
	}
	return Claim(r, s, s.High < most)
}

// Within is Effect for what a text calls alike: the whole interval must lie between low and
// high. Few seeds have wide intervals, and do not agree by that.
func Within(r study.Row, values []float64, low, high float64) study.Row {
	s := Interval(values)
	if len(values) < 2 {
		return Effect(r, values, low)
	}
	if r.Note == "" {
		r.Note = fmt.Sprintf("agrees: the whole 95 %% interval over seeds from %v to %v", low, high)
	}
	return Claim(r, s, s.Low >= low && s.High <= high)
}

// Share95 is a share of so many cases as an effect: its whole interval (Clopper and Pearson,
// 95 %, which has a width even where all cases are alike) must lie above the least.
func Share95(r study.Row, hits, cases int, least float64) study.Row {
	if cases < 2 {
		return Effect(r, []float64{float64(hits)}, least)
	}
	s := Spread{float64(hits) / float64(cases), metrics.AtLeast(hits, cases, 0.025), metrics.AtMost(hits, cases, 0.025)}
	if r.Note == "" {
		r.Note = fmt.Sprintf("%d of %d; agrees: the whole 95 %% interval (Clopper and Pearson) above %v", hits, cases, least)
	}
	return Claim(r, s, s.Low > least)
}

// Times is Effect for a ratio of two arms' positive figures, seed by seed: the geometric
// mean, whose whole interval must lie above the least.
func Times(r study.Row, more, less []float64, least float64) study.Row {
	logs := make([]float64, min(len(more), len(less)))
	for i := range logs {
		logs[i] = math.Log(more[i] / less[i])
	}
	s := Interval(logs)
	s = Spread{math.Exp(s.Middle), math.Exp(s.Low), math.Exp(s.High)}
	if len(logs) < 2 {
		return Effect(r, []float64{s.Middle}, least)
	}
	if r.Note == "" {
		r.Note = fmt.Sprintf("agrees: the whole 95 %% interval over seeds above %v", least)
	}
	return Claim(r, s, s.Low > least)
}

// Differences are one figure of two arms, seed by seed.
func Differences[C any](more, less []C, f func(C) float64) []float64 {
	out := make([]float64, min(len(more), len(less)))
	for i := range out {
		out[i] = f(more[i]) - f(less[i])
	}
	return out
}

// Number is a figure as rows hold it.
func Number(x float64) *event.Number { n := event.Number(x); return &n }

// Measured fills a row's own figures.
func Measured(r study.Row, s Spread) study.Row {
	r.Measured, r.Low, r.High = Number(s.Middle), Number(s.Low), Number(s.High)
	return r
}

// Judged sets the verdict of a row with the paper's number or sentence: does the measured
// figure, or another one that is given, lie within the band?
func Judged(r study.Row, low, high float64, other ...float64) study.Row {
	m := float64(*r.Measured)
	if len(other) > 0 {
		m = other[0]
	}
	r.Verdict = verdict(m >= low && m <= high)
	return r
}

// Rounded is a row about a figure without randomness, beside the text's as it is printed: they
// agree where ours, rounded to as many digits, is the text's.
func Rounded(r study.Row, value float64, printed string) (study.Row, error) {
	theirs, err := strconv.ParseFloat(printed, 64)
	if err != nil {
		return r, fmt.Errorf("printed figure %q: %w", printed, err)
	}
	_, decimals, _ := strings.Cut(printed, ".")
	half := 0.5 * math.Pow10(-len(decimals))
	r = Measured(r, Exactly(value))
	r.Paper = Number(theirs)
	if r.Note != "" {
		r.Note += "; "
	}
	r.Note += fmt.Sprintf("nothing is random: agrees if it rounds to the printed %s", printed)
	return Judged(r, theirs-half, theirs+half), nil
}

// Again is where the mean of as many further seeds would lie, in 95 of 100 studies: what
// another's mean is held against.
func Again(values []float64) Spread {
	mean, half := metrics.Spread(values)
	return Spread{mean, mean - math.Sqrt2*half, mean + math.Sqrt2*half}
}

// Printed is a mean of a text with its deviation over so many seeds.
type Printed struct {
	Mean, Deviation float64
	Seeds           int
}

// Again is where such a mean would lie around ours in 95 of 100 studies, if both were means
// of the same: Welch's interval of two means, each with its own deviation.
func (p Printed) Again(values []float64) Spread {
	s := MeanAndDeviation(values)
	n, m := float64(len(values)), float64(p.Seeds)
	ours, theirs := (s.High-s.Middle)*(s.High-s.Middle)/n, p.Deviation*p.Deviation/m
	if len(values) < 2 || p.Seeds < 2 || ours+theirs == 0 {
		return Exactly(s.Middle)
	}
	t := distuv.StudentsT{Sigma: 1, Nu: (ours + theirs) * (ours + theirs) / (ours*ours/(n-1) + theirs*theirs/(m-1))}
	half := t.Quantile(0.975) * math.Sqrt(ours+theirs)
	return Spread{s.Middle, s.Middle - half, s.Middle + half}
}

// Wider is a row about two deviations over seeds: the first over the second, with the 95 %
// interval of two normal samples. It agrees if all of that is above 1.
func Wider(r study.Row, wide, narrow []float64) study.Row {
	if len(wide) < 2 || len(narrow) < 2 {
		r.Note, r.Sentence, r.Verdict = r.Sentence+" (one seed has no deviation)", "", study.Incomparable
		return r
	}
	deviation := func(v []float64) float64 { s := MeanAndDeviation(v); return s.High - s.Middle }
	ratio := deviation(wide) / deviation(narrow)
	f := distuv.F{D1: float64(len(wide) - 1), D2: float64(len(narrow) - 1)}
	s := Spread{ratio, ratio / math.Sqrt(f.Quantile(0.975)), ratio / math.Sqrt(f.Quantile(0.025))}
	if r.Note == "" {
		r.Note = "agrees: the whole 95 % interval of two normal samples above 1"
	}
	return Claim(r, s, s.Low > 1)
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
