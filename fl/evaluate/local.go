package evaluate

import (
	"fmt"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/model"
)

// Local are a participant's own figures, of the model that it uses on its own held-out
// examples: exact, for its owner alone, and never sent. Intervals are over its examples.
type Local struct {
	Examples int `json:"examples"`
	metrics.Figures
}

// Locally judges a model on held-out examples. Nil if there are none.
func Locally(run config.Run, theta []float64, held *data.Client, shape data.Shape, l model.Learner) (*Local, error) {
	if held == nil || held.Len() == 0 {
		return nil, nil
	}
	loss, err := model.ParseLoss(run.Algorithm.Local.Loss)
	if err != nil {
		return nil, err
	}
	task := metrics.Task{Classes: shape.Classes, Loss: loss, Unit: data.UnitOf(run.Data), Reconstruct: shape.Reconstruct, Words: shape.Vocabulary > 0, Projection: run.Model.Kind == "projection"}
	if task.Projection {
		task.Classes = 0
	}
	a, err := task.Ask(l, theta, held)
	if err != nil {
		return nil, err
	}
	f := &Local{Examples: len(a.Targets)}
	f.Figures, err = metrics.OfClient(task, a)
	return f, err
}

// String is the figures in a line.
func (f *Local) String() string {
	var parts []string
	for _, one := range []struct {
		name string
		*metrics.Figure
	}{{"accuracy", f.Accuracy}, {"log loss", f.LogLoss}, {"AUC", f.AUC}, {"RMSE", f.RMSE}, {"MAE", f.MAE}, {"R2", f.R2}, {"MSE", f.MSE}, {"variance captured", f.Captured}} {
		if one.Figure != nil {
			parts = append(parts, fmt.Sprintf("%s %.3g", one.name, float64(one.Value)))
		}
	}
	return fmt.Sprintf("%s on %d held-out examples", strings.Join(parts, ", "), f.Examples)
}
