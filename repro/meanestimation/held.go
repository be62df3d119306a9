package meanestimation

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/theory"
)

// family is how many figures of a study are held against closed forms. Their intervals hold for
// all at once, each at 95 % shared among them: of hundreds at 95 % each some would miss by
// chance.
type family int

// interval is the mean over seeds and its interval.
func (f family) interval(values []float64) lab.Spread {
	s := lab.MeanAndDeviation(values)
	n := float64(len(values))
	if n < 2 {
		return lab.Exactly(s.Middle)
	}
	half := (s.High - s.Middle) / math.Sqrt(n) * distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(1-0.025/float64(f))
	return lab.Spread{Middle: s.Middle, Low: s.Middle - half, High: s.Middle + half}
}

// held is a row whose figure a closed form gives: it agrees where that lies within the interval.
func (f family) held(r study.Row, values []float64, want float64) study.Row {
	s := f.interval(values)
	r = lab.Measured(r, s)
	if r.Paper = lab.Number(want); len(values) < 2 {
		return single(r)
	}
	return lab.Judged(r, s.Low, s.High, want)
}

// heldAll is held for a whole curve: how far it is from the closed form where it is farthest.
func (f family) heldAll(r study.Row, lambdas []float64, each func(i int) []float64, want func(lambda float64) float64) study.Row {
	worst, seeds := 0.0, 0
	for i, lambda := range lambdas {
		s := f.interval(each(i))
		worst, seeds = max(worst, math.Abs(s.Middle-want(lambda))/(s.High-s.Middle)), len(each(i))
	}
	if seeds < 2 {
		return single(r)
	}
	return lab.Claim(r, lab.Exactly(worst), worst <= 1)
}

// heldLambda is a row about the lambda with the least error: powers of ten, seed by seed. The
// closed form's must lie within their 95 % interval, give or take half a step of the grid.
func heldLambda(r study.Row, powers, lambdas []float64, want float64) study.Row {
	s := lab.Interval(powers)
	r = lab.Measured(r, lab.Spread{Middle: math.Pow(10, s.Middle), Low: math.Pow(10, s.Low), High: math.Pow(10, s.High)})
	if r.Paper = lab.Number(want); len(powers) < 2 {
		return single(r)
	}
	half := math.Log10(lambdas[2]/lambdas[1]) / 2 // the first one is 0
	r.Note += fmt.Sprintf("; agrees: within the 95 %% interval over seeds, give or take half a step of the grid, a factor of %.2f", math.Pow(10, half))
	return lab.Judged(r, s.Low-half, s.High+half, math.Log10(want))
}

// single is a row of one seed, which has no interval.
func single(r study.Row) study.Row {
	r.Note, r.Sentence, r.Verdict = r.Sentence+r.Note+" (one seed has no interval)", "", study.Incomparable
	return r
}

// nearest is the place of the lambda that is nearest to another.
func nearest(lambdas []float64, to float64) (at int) {
	if math.IsInf(to, 1) {
		return len(lambdas) - 1
	}
	away := func(i int) float64 { return math.Abs(math.Log(lambdas[i] / to)) }
	for i := range lambdas {
		if away(i) < away(at) {
			at = i
		}
	}
	return at
}

// silo is one silo's error at one place of the lambdas, seed by seed.
func (d drawn) silo(i, k int) []float64 {
	return lab.Pick(d.seeds[i], func(p theory.Point) float64 { return p.Silos[k] })
}

// ownLambdaRows are what appendix D.5 says of silos that differ: who has a larger variance
// has a larger best lambda, and one for all is worse than one each.
func ownLambdaRows(section string, f theory.Different, d drawn, powers [][]float64) []study.Row {
	noisiest, quietest := 0, 0
	for k := range powers {
		if f.Silos[k].Variance() > f.Silos[noisiest].Variance() {
			noisiest = k
		}
		if f.Silos[k].Variance() < f.Silos[quietest].Variance() {
			quietest = k
		}
	}
	common, least := 0, math.Inf(1) // the best lambda for all, by the closed form
	for i, lambda := range d.lambdas {
		sum := 0.0
		for k := range f.Silos {
			sum += f.Error(k, lambda)
		}
		if sum < least {
			common, least = i, sum
		}
	}
	lost := make([]float64, len(d.seeds[0]))
	for k := range f.Silos {
		own := nearest(d.lambdas, f.BestLambda(k))
		for seed, v := range minus(d.silo(common, k), d.silo(own, k)) {
			lost[seed] += v / float64(len(f.Silos))
		}
	}
	why := "We believe that the difference is below what these seeds tell. Tested by the closed form, which has it."
	return []study.Row{
		lab.Effect(study.Row{Section: section, Label: "best lambda: the noisiest silo's less the quietest's", Metric: "powers of ten", Unit: "powers of ten",
			Sentence: "D.5: with a smaller local variance a silo benefits from a smaller lambda, with a larger one from a larger", Why: why}, minus(powers[noisiest], powers[quietest]), 0),
		lab.Effect(study.Row{Section: section, Label: fmt.Sprintf("error of one lambda for all (%.3g) less that of one each", d.lambdas[common]), Metric: "squared error", Unit: "squared",
			Sentence: "D.5: it is optimal to have each silo choose its own lambda", Why: why}, lost, 0),
	}
}
