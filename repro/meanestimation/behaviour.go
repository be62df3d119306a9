package meanestimation

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/theory"
)

// behaviourRows are what section 1.6 says of the best lambda with more noise, in what was
// drawn: federations and curves come in pairs, without privacy and with it.
func behaviourRows(federations []theory.Equal, curves []drawn) (rows []study.Row) {
	const section = "Section 1.6: what the text says of the best lambda"
	row := func(label, metric, unit, sentence string) study.Row {
		return study.Row{Section: section, Label: label, Metric: metric, Unit: unit, Sentence: sentence, Why: "We believe that the difference is below what these seeds tell. Tested by the closed form, which has it."}
	}
	above := func(d drawn, end int) []float64 { // the error of an end, less the least one
		return minus(d.each(end), d.each(d.place()))
	}
	gained := make([][]float64, 0, len(federations)/2) // share of the better end's error, private
	fitting := 0                                       // where variance of a silo's estimate and spread of centres are most alike
	for i := 0; i < len(federations); i += 2 {
		tau, free, private := federations[i].Spread, curves[i], curves[i+1]
		last := len(private.lambdas) - 1
		rows = append(rows,
			lab.Effect(row(fmt.Sprintf("tau %v: least error's lambda, private less not", tau), "powers of ten", "powers of ten", "theorem 1.6.3: the best lambda grows with stronger privacy"), minus(bestPowers(private), bestPowers(free)), 0),
			lab.Effect(row(fmt.Sprintf("tau %v: what training alone loses, private less not", tau), "squared error", "squared", "propositions 1.6.5, 1.6.6: with stronger privacy the benefit increases against local training"), minus(above(private, 0), above(free, 0)), 0),
			lab.Effect(row(fmt.Sprintf("tau %v: what the average loses, not private less private", tau), "squared error", "squared", "propositions 1.6.5, 1.6.6: with stronger privacy the benefit diminishes against FedAvg"), minus(above(free, last), above(private, last)), 0))
		end := 0
		if private.at(last).Middle < private.at(0).Middle {
			end = last
		}
		shares := above(private, end)
		for seed, v := range private.each(end) {
			shares[seed] /= v
		}
		apart := func(f theory.Equal) float64 { return math.Abs(math.Log(f.LocalVariance() / (f.Spread * f.Spread))) }
		if gained = append(gained, shares); apart(federations[i+1]) < apart(federations[2*fitting+1]) {
			fitting = i / 2
		}
	}
	for i, shares := range gained {
		if i != fitting {
			rows = append(rows, lab.Effect(row(fmt.Sprintf("gain over the better end at tau %v less that at tau %v", federations[2*fitting].Spread, federations[2*i].Spread), "share of the end's error", "share",
				"section 1.6: the advantage over both endpoints is largest where a silo's own variance is about that between silos"), minus(gained[fitting], shares), 0))
		}
	}
	return rows
}

// bestPowers are the lambdas with the least error, seed by seed, as powers of ten; the ends
// take the next ones' place.
func bestPowers(d drawn) []float64 { return leastPowers(d.lambdas, d.each) }

// leastPowers are those of any curve: each has a place's figures, seed by seed.
func leastPowers(lambdas []float64, each func(i int) []float64) []float64 {
	out := make([]float64, len(each(0)))
	for seed := range out {
		best, least := -1, 0.0
		for i, lambda := range lambdas {
			if v := each(i)[seed]; lambda > 0 && !math.IsInf(lambda, 1) && (best < 0 || v < least) {
				best, least = i, v
			}
		}
		out[seed] = math.Log10(lambdas[best])
	}
	return out
}

// minus is one list less another.
func minus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] - b[i]
	}
	return out
}
