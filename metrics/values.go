package metrics

import (
	"math"

	"github.com/coterie-fl/coterie/dp/event"
)

// scale is what one unit of the trained targets is in the target's own unit.
func (t Task) scale() float64 {
	if t.Unit == [2]float64{} {
		return 1
	}
	return t.Unit[1] - t.Unit[0]
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

func (a valueSums) rmse() float64 { return math.Sqrt(max(0, a.squares/a.n)) }
func (a valueSums) mae() float64  { return a.absolute / a.n }

// r2 is 1 - (squared errors)/(squared distances to the mean); not defined where targets
// are all the same, up to rounding.
func (a valueSums) r2() float64 {
	all := a.yy - a.y*a.y/a.n
	if !(all > 1e-12*a.yy) {
		return math.NaN()
	}
	return 1 - a.squares/all
}

// sums are those of a's rows; shift keeps squares small beside their differences.
func (t Task) sums(a Answers, shift float64) (sum valueSums, rows []valueSums) {
	scale := t.scale()
	rows = make([]valueSums, len(a.Targets))
	for k, y := range a.Targets {
		r, y := scale*(a.Outputs[k]-y), scale*(y-shift)
		rows[k] = valueSums{1, math.Abs(r), r * r, y, y * y}
		sum.add(rows[k], 1)
	}
	return sum, rows
}

// leavingOut is a figure of all parts but one.
func leavingOut(all valueSums, parts []valueSums, of func(valueSums) float64) func(i int) float64 {
	return func(i int) float64 {
		rest := all
		if i >= 0 {
			rest.add(parts[i], -1)
		}
		return of(rest)
	}
}

// ofLosses are figures of losses instead of those of values: their mean absolute distance
// to 0 is the mean loss.
func (t Task) ofLosses(f Figures) Figures {
	switch {
	case t.Reconstruct:
		return Figures{MSE: f.MAE}
	case t.Words:
		return Figures{LogLoss: f.MAE, Perplexity: f.MAE.through(math.Exp)}
	}
	return f
}

// through is a figure, and its interval, of an increasing function.
func (f *Figure) through(of func(float64) float64) *Figure {
	if f == nil {
		return nil
	}
	out := Figure{Value: event.Number(of(float64(f.Value)))}
	for _, end := range []struct{ from, to **event.Number }{{&f.Low, &out.Low}, {&f.High, &out.High}} {
		if *end.from != nil {
			v := event.Number(of(float64(**end.from)))
			*end.to = &v
		}
	}
	return &out
}

func (t Task) valuesOverall(clients []Answers) Figures {
	var all valueSums
	parts := make([]valueSums, len(clients))
	for i, a := range clients {
		parts[i], _ = t.sums(a, clients[0].Targets[0])
		all.add(parts[i], 1)
	}
	of := func(f func(valueSums) float64, least, most float64) *Figure {
		return jackknife(len(parts), leavingOut(all, parts, f), least, most)
	}
	return Figures{
		RMSE: of(valueSums.rmse, 0, math.Inf(1)), MAE: of(valueSums.mae, 0, math.Inf(1)), R2: of(valueSums.r2, math.Inf(-1), 1),
	}
}

func (t Task) valuesOfClient(a Answers) Figures {
	all, rows := t.sums(a, a.Targets[0])
	absolute, squares := make([]float64, len(rows)), make([]float64, len(rows))
	for i, r := range rows {
		absolute[i], squares[i] = r.absolute, r.squares
	}
	mae, maeHalf := Spread(absolute)
	mse, mseHalf := Spread(squares)
	f := Figures{
		MAE: figure(mae, maeHalf, 0, math.Inf(1)), RMSE: figure(mse, mseHalf, 0, math.Inf(1)),
		R2: jackknife(len(rows), leavingOut(all, rows, valueSums.r2), math.Inf(-1), 1),
	}
	if f.RMSE != nil {
		for _, v := range []*event.Number{&f.RMSE.Value, f.RMSE.Low, f.RMSE.High} {
			if v != nil {
				*v = event.Number(math.Sqrt(float64(*v)))
			}
		}
	}
	return f
}
