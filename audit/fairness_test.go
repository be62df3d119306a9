package audit

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

func labelled(x, y []float64) asked {
	return asked{rows: data.Rows{X: x, Y: y, Features: 1}, halves: true}
}

// TestDecisionsAreHonest: the model is chosen on the first rows alone, and a value
// of one half or more is a 1.
func TestDecisionsAreHonest(t *testing.T) {
	m := model.Linear{Features: 1}
	// Model 0 says x, model 1 says 1-x by way of -x on rows that are -1 or 0.
	hypotheses := []float64{1, -1}
	clients := []asked{
		// The first half fits model 0; the second would fit model 1.
		labelled([]float64{1, 0, -1, -1}, []float64{1, 0, 1, 1}),
		labelled([]float64{-1, 0, -0.4, -0.6, 0.7}, []float64{1, 0, 0, 1, 0}),
		labelled([]float64{1}, []float64{1}),
	}
	d, err := decide(m, model.SquaredError, hypotheses, clients)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{0, 0, 0, 1, 0}; !slices.Equal(d.rows.Predicted, want) {
		t.Errorf("predicted %v, want %v", d.rows.Predicted, want)
	}
	if want := []int{1, 1, 0, 1, 0}; !slices.Equal(d.rows.Truth, want) || d.tooSmall != 1 {
		t.Errorf("truth %v, want %v; %d clients were too small", d.rows.Truth, want, d.tooSmall)
	}
	if want := []int{2, 3, 2, 3, 4}; !slices.Equal(d.row, want) {
		t.Errorf("rows %v, want %v", d.row, want)
	}
	if _, err := decide(m, model.SquaredError, hypotheses, []asked{labelled([]float64{1, 2}, []float64{0, 7})}); !errors.Is(err, ErrNoFairness) {
		t.Errorf("a target of 7: %v", err)
	}
	column := data.SensitiveColumn{Values: []string{"a", "b"}, Groups: [][]int32{{0, 0, 0, 1}, {1, 1, 1, 0, 0}, {0}}}
	rows, others, _ := d.of(column, []string{"b"})
	if others != 3 || !slices.Equal(rows.Truth, []int{1, 0}) {
		t.Errorf("group b has the labels %v, %d rows are left out", rows.Truth, others)
	}
}

func TestFairnessNeedsAttributes(t *testing.T) {
	run := config.Default("synthetic", "ifca", "paper")
	if _, err := MeasureFairness(run, []float64{1, 2}, nil, nil, FairnessOptions{}); !errors.Is(err, ErrNoFairness) {
		t.Errorf("synthetic data: %v", err)
	}
}

// TestFairnessOfRealTables: a model that always says 1 treats everybody alike, and
// one that reads the sex does not.
func TestFairnessOfRealTables(t *testing.T) {
	path := os.Getenv("COTERIE_DATA")
	if _, err := os.Stat(filepath.Join(path, "compas")); path == "" || err != nil {
		t.Skip("COTERIE_DATA has no compas: see docs/data.md")
	}
	run := config.Default("synthetic", "ifca", "paper")
	run.Data.Kind, run.Data.Samples, run.Data.SensitiveFeatures = "compas", 20, true
	run.Model.Intercept = true
	folder := data.NewFolder(path)
	shape, _ := data.ShapeOf(run.Data)
	features := shape.Features
	always, bySex := make([]float64, features+1), make([]float64, features+1)
	always[features] = 1
	bySex[0] = 1 // sex=Female
	measure := func(theta []float64) float64 {
		found, err := MeasureFairness(run, theta, nil, folder, FairnessOptions{Attribute: "sex"})
		if err != nil {
			t.Fatal(err)
		}
		return *found[0].Metrics.DemographicParityDifference.Value
	}
	if same, all := measure(always), measure(bySex); same != 0 || all != 1 {
		t.Errorf("parity differences %v and %v, want 0 and 1", same, all)
	}
	if _, err := MeasureFairness(run, always, nil, folder, FairnessOptions{Attribute: "race", Groups: []string{"Martian"}}); !errors.Is(err, ErrNoFairness) {
		t.Errorf("a group that is not there: %v", err)
	}
	if _, err := MeasureFairness(run, always[:3], nil, folder, FairnessOptions{}); err == nil {
		t.Error("a model of the wrong length was judged")
	}
}

// TestTablesAreJudgedWithOwnModels: every client by its own model on all it holds out,
// by a logit's sign; rows of no group are left out and counted.
func TestTablesAreJudgedWithOwnModels(t *testing.T) {
	m := model.Linear{Features: 1, Loss: model.CrossEntropy, Classes: 2}
	rows := func(x ...float64) data.Rows { return data.Rows{X: x, Y: make([]float64, len(x)), Features: 1} }
	// A logit of 0.3 is yes: its value is below one half.
	clients := []asked{{rows: rows(0.3, -0.3, 1), theta: []float64{1}, own: true}, {rows: rows(0.3), theta: []float64{-1}}, {rows: rows(), theta: []float64{1}}}
	d, err := decide(m, model.CrossEntropy, nil, clients)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{1, 0, 1, 0}; !slices.Equal(d.rows.Predicted, want) || d.judged != 2 || d.own != 1 || d.tooSmall != 1 {
		t.Errorf("predicted %v, want %v; %+v", d.rows.Predicted, want, d)
	}
	column := data.SensitiveColumn{Values: []string{"f", "m"}, Groups: [][]int32{{0, -1, 1}, {-1}, {}}}
	if of, others, none := d.of(column, nil); others != 0 || none != 2 || !slices.Equal(of.Group, []string{"f", "m"}) || !slices.Equal(of.Predicted, []int{1, 1}) {
		t.Errorf("%+v, %d and %d are left out", of, others, none)
	}
	two := []asked{{rows: rows(1, 1, 1, 1), halves: true}}
	if d, err = decide(m, model.CrossEntropy, []float64{1, -1}, two); err != nil || !slices.Equal(d.rows.Predicted, []int{0, 0}) || !slices.Equal(d.row, []int{2, 3}) {
		t.Errorf("the best of the server's: %+v (%v)", d, err)
	}
}
