// Package metrics computes the figures that answers are judged by, of all clients together and of each by itself, with intervals.
//
// Of 2 classes: accuracy, log loss, AUC, average precision, Brier score, and the
// intercept and slope of a logistic recalibration; of more classes the first four (AUC
// and average precision as means over one class against the rest); of values the root
// mean squared error, the mean absolute error and R2; of examples that a model gives back
// the mean squared error; of a projection the share of the examples' squared length that it
// captures. A figure that is not defined is nil: AUC where one class is missing, a
// recalibration where the classes are separated.
//
// All intervals are of 95 %. Those of all clients together are over clients, by the
// jackknife: AUC, average precision and the recalibration leave out a tenth of the
// clients at a time, the others one. Those of one client are over its rows: Wilson's for
// the accuracy, DeLong's for the AUC of 2 classes, Wald's for the recalibration, the
// jackknife over rows for R2 and for what a projection captures, and (20 groups of rows at a time) for average precision and
// the AUC of more classes, and Student's t for the means: log loss, Brier score, MAE,
// MSE, and the squared error below the RMSE. They hold the model fixed: what another training
// run would give is not in them.
package metrics

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
)

// Answers are what a model says of one client's examples, and what is right.
type Answers struct {
	// Outputs are raw, one example after another; of examples that are to be given back,
	// the mean squared difference of each, so that no pictures are kept; of words, the mean
	// log loss of each row.
	Outputs []float64
	Each    int       // outputs of one example
	Targets []float64 // values, or classes as numbers; of a squared difference 0
}

// Task says how answers are to be read.
type Task struct {
	Classes int // 0: values
	Loss    model.Loss
	// Projection says that examples are projected: an example's output is what is captured
	// of its squared length, its target the squared length.
	Projection bool
	// Unit is the lowest and the highest target in its own unit, where values are trained
	// as 0…1; zero: targets are as they are.
	Unit [2]float64
	// Reconstruct says that every example is its own target.
	Reconstruct bool
	// Words says that examples are words, each the target of those before it.
	Words bool
}

// Ask has a model answer c's examples.
func (t Task) Ask(l model.Learner, theta []float64, c *data.Client) (a Answers, err error) {
	if t.byLosses() {
		a = Answers{Outputs: make([]float64, c.Len()), Each: 1, Targets: make([]float64, c.Len())}
		return a, l.Losses(a.Outputs, theta, c)
	}
	if t.Projection {
		a.Each = 1
		a.Outputs, a.Targets, err = model.Captured(l, theta, c)
		return a, err
	}
	a.Targets = Targets(nil, c)
	a.Outputs, a.Each, err = l.Outputs(nil, theta, c)
	return a, err
}

// byLosses says that an example's answer is its loss, and 0 what is right: there is no one
// output to keep.
func (t Task) byLosses() bool { return t.Reconstruct || t.Words }

// Figure is a metric and its 95 % interval.
type Figure struct {
	Value event.Number  `json:"value"`
	Low   *event.Number `json:"low"` // null: there is too little to tell
	High  *event.Number `json:"high"`
}

// Figures are the metrics of a task; nil for the other tasks, and where not defined.
type Figures struct {
	Accuracy *Figure `json:"accuracy"`
	LogLoss  *Figure `json:"log_loss"` // mean of -log p(right class, or next word), in nats
	// Perplexity is the exponential of the log loss of words: as many equally likely words
	// would be as hard to foresee.
	Perplexity       *Figure `json:"perplexity"`
	AUC              *Figure `json:"auc"`
	AveragePrecision *Figure `json:"average_precision"`
	Brier            *Figure `json:"brier"` // mean of (p(class 1) - y)^2
	// CalibrationSlope and CalibrationIntercept are those of the logistic regression of
	// the class on the logit of its probability (Cox 1958): 1 and 0 are perfect; a slope
	// below 1 means that probabilities are too extreme.
	CalibrationSlope     *Figure `json:"calibration_slope"`
	CalibrationIntercept *Figure `json:"calibration_intercept"`
	RMSE                 *Figure `json:"rmse"`
	MAE                  *Figure `json:"mae"`
	R2                   *Figure `json:"r2"`
	MSE                  *Figure `json:"mse"` // of examples that are to be given back: mean over examples and their values
	// Captured is the share of the examples' squared length that a projection captures.
	Captured *Figure `json:"captured"`
}

// Overall are the figures of all examples, with intervals over clients. Clients without
// examples count for nothing.
func Overall(t Task, clients []Answers) (Figures, error) {
	kept, err := t.checked(clients)
	if err != nil {
		return Figures{}, err
	}
	switch {
	case t.Projection:
		return Figures{Captured: share(captured(kept))}, nil
	case t.Classes == 0:
		return t.ofLosses(t.valuesOverall(kept)), nil
	}
	s, err := t.score(kept)
	if err != nil {
		return Figures{}, err
	}
	return s.overall(len(kept)), nil
}

// OfClient are one client's figures, with intervals over its rows.
func OfClient(t Task, a Answers) (Figures, error) {
	kept, err := t.checked([]Answers{a})
	if err != nil {
		return Figures{}, err
	}
	switch {
	case t.Projection:
		return Figures{Captured: share(kept[0].Outputs, kept[0].Targets)}, nil
	case t.Classes == 0:
		return t.ofLosses(t.valuesOfClient(kept[0])), nil
	}
	s, err := t.score(kept)
	if err != nil {
		return Figures{}, err
	}
	return s.ofClient(), nil
}

// checked are the clients that have examples, all of one shape.
func (t Task) checked(clients []Answers) ([]Answers, error) {
	var kept []Answers
	for i, a := range clients {
		switch {
		case a.Each < 1 || len(a.Outputs) != a.Each*len(a.Targets):
			return nil, fmt.Errorf("metrics: client %d has %d outputs for %d examples of %d; allowed: as many", i, len(a.Outputs), len(a.Targets), a.Each)
		case len(a.Targets) == 0:
			continue
		case t.Classes == 0 && a.Each != 1, t.Classes > 2 && a.Each != t.Classes, t.Classes == 2 && a.Each > 2, t.Classes == 1 || t.Classes < 0:
			return nil, fmt.Errorf("metrics: client %d has %d outputs an example for %d classes; allowed: one for values, one or 2 for 2 classes, one each for more", i, a.Each, t.Classes)
		case len(kept) > 0 && kept[0].Each != a.Each:
			return nil, fmt.Errorf("metrics: client %d has %d outputs an example, another %d; allowed: the same for all", i, a.Each, kept[0].Each)
		}
		kept = append(kept, a)
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("metrics: nobody has examples to be judged by; hold some out")
	}
	return kept, nil
}

// Targets appends what c's examples should come to: values, or classes as numbers.
func Targets(dst []float64, c *data.Client) []float64 {
	if c.Images == nil {
		return append(dst, c.Y...)
	}
	for _, at := range c.Index {
		if c.Images.Targets != nil {
			dst = append(dst, c.Images.Targets[at])
		} else {
			dst = append(dst, float64(c.Images.Labels[at]))
		}
	}
	return dst
}

// finite says that a figure can be told.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// figure is a value within [least, most] and half the width of its interval. Nil if
// there is no value; without an interval if there is no width: where all agree, nothing is
// known of how far they might not.
func figure(value, half, least, most float64) *Figure {
	if !finite(value) {
		return nil
	}
	if !finite(half) || half <= 1e-12*math.Abs(value) {
		return &Figure{Value: event.Number(value)}
	}
	return between(value, max(least, value-half), min(most, value+half))
}

// between is a figure with the ends of its interval.
func between(value, low, high float64) *Figure {
	l, h := event.Number(low), event.Number(high)
	return &Figure{Value: event.Number(value), Low: &l, High: &h}
}
