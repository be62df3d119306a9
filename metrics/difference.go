package metrics

import (
	"fmt"
	"math"
	"slices"
)

// Main is the name of the figure that a task is first judged by: AUC of 2 classes,
// accuracy of more, RMSE of values, MSE of examples that are to be given back, log loss
// of words, what a projection captures.
func (t Task) Main() string {
	switch {
	case t.Reconstruct:
		return "mse"
	case t.Words:
		return "log_loss"
	case t.Projection:
		return "captured"
	case t.Classes == 0:
		return "rmse"
	case t.Classes == 2:
		return "auc"
	}
	return "accuracy"
}

// LessIsBetter says that a smaller main figure is the better one.
func (t Task) LessIsBetter() bool { return t.Classes == 0 && !t.Projection }

// Main is the task's main figure.
func (f Figures) Main(t Task) *Figure {
	switch t.Main() {
	case "mse":
		return f.MSE
	case "log_loss":
		return f.LogLoss
	case "rmse":
		return f.RMSE
	case "auc":
		return f.AUC
	case "captured":
		return f.Captured
	}
	return f.Accuracy
}

// Difference is a's main figure less b's, both answers to the same examples of one
// client, with a paired interval over its rows: DeLong's for AUC, Student's t for the
// accuracy and the MSE, the jackknife over rows for the RMSE and for what projections
// capture. Nil where a figure is not defined.
func Difference(t Task, a, b Answers) (*Figure, error) {
	if !slices.Equal(a.Targets, b.Targets) {
		return nil, fmt.Errorf("metrics: answers to %d and %d examples that are not the same cannot be compared", len(a.Targets), len(b.Targets))
	}
	if _, err := t.checked([]Answers{a, b}); err != nil {
		return nil, err
	}
	switch {
	case t.byLosses():
		return meanDifference(a.Outputs, b.Outputs, math.Inf(-1), math.Inf(1)), nil
	case t.Projection:
		return capturedDifference(a, b), nil
	case t.Classes == 0:
		return t.rmseDifference(a, b), nil
	}
	one, err := t.score([]Answers{a})
	if err != nil {
		return nil, err
	}
	other, err := t.score([]Answers{b})
	if err != nil {
		return nil, err
	}
	if t.Classes == 2 {
		if one.lost || other.lost {
			return nil, nil
		}
		d := delong(one.labels, one.logits, other.logits)
		half := normal95 * rootOrNone(d.variance[0]+d.variance[1]-2*d.together)
		return figure(d.auc[0]-d.auc[1], half, -1, 1), nil
	}
	return meanDifference(one.right, other.right, -1, 1), nil
}

// meanDifference is that of two means over the same rows.
func meanDifference(a, b []float64, least, most float64) *Figure {
	diffs := make([]float64, len(a))
	for i := range diffs {
		diffs[i] = a[i] - b[i]
	}
	mean, half := Spread(diffs)
	return figure(mean, half, least, most)
}

func (t Task) rmseDifference(a, b Answers) *Figure {
	all, rows := t.sums(a, a.Targets[0])
	others, otherRows := t.sums(b, b.Targets[0])
	of, from := leavingOut(all, rows, valueSums.rmse), leavingOut(others, otherRows, valueSums.rmse)
	return jackknife(len(rows), func(i int) float64 { return of(i) - from(i) }, math.Inf(-1), math.Inf(1))
}
