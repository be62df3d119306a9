package evaluate

import (
	"fmt"
	"math"
	"strings"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
)

// Local are a participant's own figures, of the model that it uses on its own held-out
// examples: exact, for its owner alone, and never sent. Null where the task has another.
type Local struct {
	Examples int           `json:"examples"`
	Accuracy *event.Number `json:"accuracy"`
	LogLoss  *event.Number `json:"log_loss"`
	AUC      *event.Number `json:"auc"`
	RMSE     *event.Number `json:"rmse"`
	MAE      *event.Number `json:"mae"`
	R2       *event.Number `json:"r2"`
}

// Locally judges a model on held-out examples. Nil if there are none.
func Locally(theta []float64, held *data.Client, classes int, lossName string, l model.Learner) (*Local, error) {
	if held == nil || held.Len() == 0 {
		return nil, nil
	}
	loss, err := model.ParseLoss(lossName)
	if err != nil {
		return nil, err
	}
	outputs, each, err := l.Outputs(nil, theta, held)
	if err != nil {
		return nil, err
	}
	targets := model.Targets(nil, held)
	f := &Local{Examples: len(targets)}
	if classes > 0 {
		m, err := model.JudgeClasses(loss, outputs, each, targets)
		if err != nil {
			return nil, err
		}
		f.Accuracy, f.LogLoss, f.AUC = known(m.Accuracy), known(m.LogLoss), known(m.AUC)
		return f, nil
	}
	var squares, absolute, mean, spread float64
	n := float64(len(targets))
	for _, y := range targets {
		mean += y / n
	}
	for i, y := range targets {
		r := outputs[i] - y
		squares, absolute, spread = squares+r*r, absolute+math.Abs(r), spread+(y-mean)*(y-mean)
	}
	f.RMSE, f.MAE, f.R2 = known(math.Sqrt(squares/n)), known(absolute/n), known(1-squares/spread)
	return f, nil
}

// String is the figures in a line.
func (f *Local) String() string {
	var parts []string
	for _, one := range []struct {
		name  string
		value *event.Number
	}{{"accuracy", f.Accuracy}, {"log loss", f.LogLoss}, {"AUC", f.AUC}, {"RMSE", f.RMSE}, {"MAE", f.MAE}, {"R2", f.R2}} {
		if one.value != nil {
			parts = append(parts, fmt.Sprintf("%s %.3g", one.name, float64(*one.value)))
		}
	}
	return fmt.Sprintf("%s on %d held-out examples", strings.Join(parts, ", "), f.Examples)
}

// known is a figure, or nil if it is not finite.
func known(v float64) *event.Number {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	n := event.Number(v)
	return &n
}
