package sim

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
)

// answers are what a judged client's model says of its held-out examples, and what is
// right.
type answers struct {
	outputs, targets []float64
	each             int // outputs of one example
}

// taskFigures are the metrics of the task, over everything that the judge asks.
func (s *Simulation) taskFigures(m *Metrics, jobs int) error {
	parts, errs := make([]answers, jobs), make([]error, jobs)
	s.rounds.Each(jobs, func(worker, i int) {
		theta, held, err := s.judge.judged(worker, i)
		if err == nil {
			parts[i].outputs, parts[i].each, err = s.learners[worker].Outputs(nil, theta, held)
			parts[i].targets = model.Targets(nil, held)
		}
		errs[i] = err
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	kept := parts[:0]
	for _, p := range parts {
		if len(p.targets) > 0 {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		return fmt.Errorf("judge: nobody holds out examples")
	}
	if s.federation.Shape().Classes == 0 {
		m.RMSE, m.MAE, m.R2 = valueFigures(kept)
		return nil
	}
	loss, err := model.ParseLoss(s.run.Algorithm.Local.Loss)
	if err != nil {
		return err
	}
	if err := classFigures(m, kept, loss); err != nil {
		return err
	}
	m.Error = numberIf(true, 1-float64(m.Accuracy.Value))
	return nil
}

// valueSums are what the metrics of values are made of.
type valueSums struct{ n, absolute, squares, y, yy float64 }

func (a *valueSums) add(b valueSums, sign float64) {
	a.n += sign * b.n
	a.absolute += sign * b.absolute
	a.squares += sign * b.squares
	a.y += sign * b.y
	a.yy += sign * b.yy
}

func valueFigures(parts []answers) (rmse, mae, r2 *Figure) {
	var all valueSums
	sums := make([]valueSums, len(parts))
	shift := parts[0].targets[0] // keeps squares small beside their differences
	for i, p := range parts {
		for k, y := range p.targets {
			r := p.outputs[k] - y
			sums[i].add(valueSums{1, math.Abs(r), r * r, y - shift, (y - shift) * (y - shift)}, 1)
		}
		all.add(sums[i], 1)
	}
	without := func(of func(valueSums) float64) func(i int) float64 {
		return func(i int) float64 {
			rest := all
			if i >= 0 {
				rest.add(sums[i], -1)
			}
			return of(rest)
		}
	}
	k := len(parts)
	rmse = jackknife(k, without(func(s valueSums) float64 { return math.Sqrt(max(0, s.squares/s.n)) }), 0, math.Inf(1))
	mae = jackknife(k, without(func(s valueSums) float64 { return s.absolute / s.n }), 0, math.Inf(1))
	r2 = jackknife(k, without(func(s valueSums) float64 { return 1 - s.squares/(s.yy-s.y*s.y/s.n) }), math.Inf(-1), 1)
	return rmse, mae, r2
}

// classFigures are the metrics of classes. AUC compares every example with every other,
// so that its interval leaves out a tenth of the clients at a time instead of one.
func classFigures(m *Metrics, parts []answers, loss model.Loss) error {
	var right, logs, n float64
	each := make([][3]float64, len(parts))
	for i, p := range parts {
		own, err := model.JudgeClasses(loss, p.outputs, p.each, p.targets)
		if err != nil {
			return err
		}
		size := float64(len(p.targets))
		each[i] = [3]float64{own.Accuracy * size, own.LogLoss * size, size}
		right, logs, n = right+each[i][0], logs+each[i][1], n+size
	}
	share := func(at int, sum float64) func(i int) float64 {
		return func(i int) float64 {
			if i < 0 {
				return sum / n
			}
			return (sum - each[i][at]) / (n - each[i][2])
		}
	}
	m.Accuracy = jackknife(len(parts), share(0, right), 0, 1)
	m.LogLoss = jackknife(len(parts), share(1, logs), 0, math.Inf(1))
	groups := min(10, len(parts))
	var fault error
	m.AUC = jackknife(groups, func(left int) float64 {
		var rest answers
		for i, p := range parts {
			if i%groups != left {
				rest.outputs, rest.targets = append(rest.outputs, p.outputs...), append(rest.targets, p.targets...)
			}
		}
		if len(rest.targets) == 0 {
			return math.NaN()
		}
		all, err := model.JudgeClasses(loss, rest.outputs, parts[0].each, rest.targets)
		if err != nil {
			fault = err
		}
		return all.AUC
	}, 0, 1)
	return fault
}

// jackknife is a figure over k parts, with the 95 % interval that leaving out one of
// them at a time gives (Tukey 1958). Without(-1) is the figure of all, without(i) that
// without part i. Nil if the figure is not defined.
func jackknife(k int, without func(i int) float64, least, most float64) *Figure {
	value := without(-1)
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	f := &Figure{Value: event.Number(value)}
	if k < 2 {
		return f
	}
	left, mean := make([]float64, k), 0.0
	for i := range left {
		left[i] = without(i)
		mean += left[i] / float64(k)
	}
	squares := 0.0
	for _, v := range left {
		squares += (v - mean) * (v - mean)
	}
	half := math.Sqrt(squares*float64(k-1)/float64(k)) * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(k - 1)}.Quantile(0.975)
	if math.IsNaN(half) || math.IsInf(half, 0) {
		return f
	}
	f.Low, f.High = numberIf(true, max(least, value-half)), numberIf(true, min(most, value+half))
	return f
}
