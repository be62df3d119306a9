package groupprivacy

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/repro/lab/labtest"
)

func TestRunsAreRemembered(t *testing.T) {
	o := labtest.Options(t, lab.Smoke)
	if _, err := synthetic.Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	cells, _ := filepath.Glob(filepath.Join(o.Out, "cells", "*.json"))
	if len(cells) != 4*(len(variants)+3) { // and the courses of figure 1
		t.Fatalf("%d cells, want %d", len(cells), 4*(len(variants)+3))
	}
	// Damage one, change another: the first is made again, the second is believed.
	if err := os.WriteFile(cells[0], []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := synthetic.Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(cells[0]); len(text) < 10 {
		t.Error("a damaged cell was not made again")
	}
}

// TestSyntheticFigures holds the study's main figures.
func TestSyntheticFigures(t *testing.T) {
	o := labtest.Options(t, lab.Quick)
	s, err := synthetic.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	find := func(label, metric string) float64 {
		for _, r := range s.Rows {
			if r.Label == label && r.Metric == metric {
				return float64(*r.Measured)
			}
		}
		t.Fatalf("no row %s, %s", label, metric)
		return 0
	}
	for _, c := range []struct {
		label, metric string
		low, high     float64
	}{
		{"FedAvg", "validation RMSE", 2.9, 3.2},
		{"IFCA", "validation RMSE", 0, 0.6},
		{"IFCA", "seeds near both optima", 0.95, 1},
		{"group-private", "validation RMSE", 0, 1.4},
		{"group-private", "maximum leakage", 1.6, 2.8},
		{"balanced, best round", "validation RMSE", 0, 0.62},
		{"balanced, best round", "seeds near both optima", 0.9, 1},
		{"balanced, best round", "maximum leakage", 2.4, 2.4},
		{"C = 0.8*0.945^t, 10 epochs, 14 clients", "seeds near both optima", 0.6, 1},
		{"largest rise of the loss over its bound", "ratio", 0, 1},
	} {
		if got := find(c.label, c.metric); got < c.low || got > c.high {
			t.Errorf("%s, %s: %v, want %v to %v", c.label, c.metric, got, c.low, c.high)
		}
	}
}
