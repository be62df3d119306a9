package participant

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
)

// trained is what the models that a participant takes home were trained as.
type trained struct {
	run        config.Run
	shape      data.Shape
	parameters int
}

// writeModels writes the models and what they are. The participant's own is for its
// owner alone; it stays of use where the server's models are none.
func writeModels(out string, r Report, book ledger.Summary) error {
	if err := os.MkdirAll(out, 0o700); err != nil {
		return fmt.Errorf("make the folder for the models: %w", err)
	}
	run := r.trained.run
	encoding, err := artifact.EncodingOf(run)
	if err != nil {
		return err
	}
	var spent []event.Statement
	for _, one := range book.Runs {
		if one.Run == r.Run {
			spent = append(spent, one.Statement)
		}
	}
	d, err := artifact.Describe(run, r.trained.shape, encoding, artifact.Spent(run, "it is this participant's own, as its ledger has it", spent...))
	if err != nil {
		return err
	}
	models, refused := r.serverModels()
	if refused == nil {
		d.Server(len(models))
	}
	var own []model.Tensor[float64]
	if r.Personal != nil {
		d.Personal(r.Participant, r.Scale != nil)
		own = append(own, vector("personal.0", r.Personal))
		if r.Scale != nil {
			own = append(own, vector("centre", r.Centre), vector("scale", r.Scale))
		}
	}
	_, err = artifact.Write(out, d, models, own)
	return errors.Join(refused, err, writeFigures(filepath.Join(out, "figures.json"), r.Local))
}

// serverModels are those that the server sent, if they are such as the plan has.
func (r *Report) serverModels() ([]model.Tensor[float64], error) {
	models, err := model.ReadTensors[float64](bytes.NewReader(r.Models), int64(len(r.Models)))
	if err != nil {
		return nil, fmt.Errorf("the models that the server sent cannot be used: %w", err)
	}
	for j, m := range models {
		if want := fmt.Sprintf("hypothesis.%d", j); m.Name != want || len(m.Values) != r.trained.parameters {
			return nil, fmt.Errorf("the models that the server sent cannot be used: number %d is %q of %d values; the plan has %s of %d", j, m.Name, len(m.Values), want, r.trained.parameters)
		}
	}
	return models, nil
}

func vector(name string, values []float64) model.Tensor[float64] {
	return model.Tensor[float64]{Name: name, Shape: []int{len(values)}, Values: values}
}
