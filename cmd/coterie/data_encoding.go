package main

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// newDataEncodingCommand prints what trainers in other languages must know.
func (a *app) newDataEncodingCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "encoding RUNFILE",
		Short: "Print how a table becomes inputs, for trainers in other languages",
		Long: "Print, as JSON, all that a program beside this one must know to train on the same rows: how columns become inputs, which rows are held out, the model and its loss.\n" +
			"All of it is public: where the rows lie is not in it. The Python package's coterie.trainer.Table reads it.",
		Example: "  coterie data encoding run.yaml > encoding.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := resolveRun(cmd, f, args)
			if err != nil {
				return err
			}
			e, err := newTrainerEncoding(run)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			out := json.NewEncoder(a.stdout)
			if a.output != "json" {
				out.SetIndent("", "  ")
			}
			return out.Encode(e)
		},
	}
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "set a value of the run file, for example --set seed=7")
	return cmd
}

// trainerEncoding is what a trainer must know of a run file. Nothing in it is private.
type trainerEncoding struct {
	Format        string          `json:"format"`
	Encoding      *data.Encoding  `json:"encoding"`
	Shape         data.Shape      `json:"shape"`
	Model         config.Model    `json:"model"` // a named network with its layers
	Loss          string          `json:"loss"`
	Seed          uint64          `json:"seed"`
	TestShare     float64         `json:"test_share"`
	Test          *trainerHeldOut `json:"test"`
	TrainLimit    int             `json:"train_limit"`
	TargetMissing string          `json:"target_missing"`
	Standardise   string          `json:"standardise"`
}

// trainerHeldOut names the column that says which rows are held out.
type trainerHeldOut struct {
	Column string `json:"column"`
	Value  string `json:"value"`
}

// newTrainerEncoding takes it from a resolved run file. A test part in a file of its own
// holds out none of a trainer's rows.
func newTrainerEncoding(run config.Run) (*trainerEncoding, error) {
	d := run.Data
	if d.Kind != "table" {
		return nil, fmt.Errorf("data.kind is %q, which has no columns; allowed: table", d.Kind)
	}
	if d.Projection != "" {
		return nil, fmt.Errorf("data.projection is %s, which trainers do not know; leave it out", d.Projection)
	}
	e, err := data.NewEncoding(d)
	if err != nil {
		return nil, err
	}
	out := &trainerEncoding{
		Format: "coterie encoding 1", Encoding: e, Shape: e.Shape(), Model: run.Model, Loss: run.Algorithm.Local.Loss, Seed: run.Seed,
		TestShare: d.TestShare, TrainLimit: d.TrainLimit, TargetMissing: cmp.Or(d.TargetMissing, "refuse"), Standardise: d.Standardise,
	}
	if run.Model.Name != "" {
		n, err := model.NamedNetwork(run.Model.Name)
		if err != nil {
			return nil, err
		}
		out.Model.Name, out.Model.Layers = "", n.Layers
	}
	if d.Test.Column != "" {
		out.Test = &trainerHeldOut{Column: d.Test.Column, Value: string(d.Test.Value)}
	}
	return out, nil
}
