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

func labelled(x, y []float64) data.Client {
	return data.Client{Rows: data.Rows{X: x, Y: y, Features: 1}}
}

// TestDecisionsAreHonest: the model is chosen on the first rows alone, and a value
// of one half or more is a 1.
func TestDecisionsAreHonest(t *testing.T) {
	m := model.Linear{Features: 1}
	// Model 0 says x, model 1 says 1-x by way of -x on rows that are -1 or 0.
	hypotheses := []float64{1, -1}
	clients := []data.Client{
		// The first half fits model 0; the second would fit model 1.
		labelled([]float64{1, 0, -1, -1}, []float64{1, 0, 1, 1}),
		labelled([]float64{-1, 0, -0.4, -0.6, 0.7}, []float64{1, 0, 0, 1, 0}),
		labelled([]float64{1}, []float64{1}),
	}
	d, err := decide(m, hypotheses, clients)
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
	if _, err := decide(m, hypotheses, []data.Client{labelled([]float64{1, 2}, []float64{0, 7})}); !errors.Is(err, ErrNoFairness) {
		t.Errorf("a target of 7: %v", err)
	}
	column := data.SensitiveColumn{Values: []string{"a", "b"}, Groups: [][]int32{{0, 0, 0, 1}, {1, 1, 1, 0, 0}, {0}}}
	rows, others := d.of(column, []string{"b"})
	if others != 3 || !slices.Equal(rows.Truth, []int{1, 0}) {
		t.Errorf("group b has the labels %v, %d rows are left out", rows.Truth, others)
	}
}

func TestFairnessNeedsAttributes(t *testing.T) {
	run := config.Default("synthetic", "ifca", "paper")
	if _, err := MeasureFairness(run, []float64{1, 2}, nil, FairnessOptions{}); !errors.Is(err, ErrNoFairness) {
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
		found, err := MeasureFairness(run, theta, folder, FairnessOptions{Attribute: "sex"})
		if err != nil {
			t.Fatal(err)
		}
		return *found[0].Metrics.DemographicParityDifference.Value
	}
	if same, all := measure(always), measure(bySex); same != 0 || all != 1 {
		t.Errorf("parity differences %v and %v, want 0 and 1", same, all)
	}
	if _, err := MeasureFairness(run, always, folder, FairnessOptions{Attribute: "race", Groups: []string{"Martian"}}); !errors.Is(err, ErrNoFairness) {
		t.Errorf("a group that is not there: %v", err)
	}
	if _, err := MeasureFairness(run, always[:3], folder, FairnessOptions{}); err == nil {
		t.Error("a model of the wrong length was judged")
	}
}
