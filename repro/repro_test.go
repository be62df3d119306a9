package repro

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/sim"
)

func options(t *testing.T, scale string) Options {
	return Options{Scale: scale, Out: t.TempDir(), Data: os.Getenv("COTERIE_DATA"), Version: "test", Tick: func(int, int) {}}
}

// TestSmoke runs every experiment at smoke scale: each has rows, verdicts and a
// report.
func TestSmoke(t *testing.T) {
	for _, e := range List() {
		t.Run(e.ID, func(t *testing.T) {
			if len(e.Needs) > 0 && os.Getenv("COTERIE_DATA") == "" {
				t.Skip("COTERIE_DATA is not set: see README, real data")
			}
			began := time.Now()
			o := options(t, Smoke)
			s, err := Run(context.Background(), e.ID, o)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Rows) == 0 || s.ID != e.ID || s.Seeds < 1 {
				t.Errorf("%+v", s)
			}
			for _, r := range s.Rows {
				if r.Verdict != study.Agrees && r.Verdict != study.Differs && r.Verdict != study.NoFigure {
					t.Errorf("%s has the verdict %q", r.Label, r.Verdict)
				}
			}
			if _, err := os.Stat(s.Report); err != nil {
				t.Error(err)
			}
			t.Logf("%.1f s", time.Since(began).Seconds())
		})
	}
}

func TestRunsAreRemembered(t *testing.T) {
	o := options(t, Smoke)
	if _, err := Run(context.Background(), "synthetic", o); err != nil {
		t.Fatal(err)
	}
	cells, _ := filepath.Glob(filepath.Join(o.Out, "cells", "*.json"))
	if len(cells) != 4*len(variants) {
		t.Fatalf("%d cells, want %d", len(cells), 4*len(variants))
	}
	// Damage one, change another: the first is made again, the second is believed.
	if err := os.WriteFile(cells[0], []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), "synthetic", o); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(cells[0]); len(text) < 10 {
		t.Error("a damaged cell was not made again")
	}
}

func TestStopAndGoOn(t *testing.T) {
	o := options(t, Smoke)
	ctx, cancel := context.WithCancel(context.Background())
	o.Workers = 1
	o.Tick = func(done, _ int) {
		if done == 5 {
			cancel()
		}
	}
	if _, err := Run(ctx, "synthetic", o); !errors.Is(err, sim.ErrInterrupted) {
		t.Fatalf("%v", err)
	}
	before, _ := filepath.Glob(filepath.Join(o.Out, "cells", "*.json"))
	if len(before) < 5 {
		t.Errorf("%d cells are left of five", len(before))
	}
	o.Tick = func(int, int) {}
	if _, err := Run(context.Background(), "synthetic", o); err != nil {
		t.Fatal(err)
	}
}

// TestSettingsAreTold: a study with other settings than its own says so first.
func TestSettingsAreTold(t *testing.T) {
	o := options(t, Smoke)
	o.Set = []string{"algorithm.rounds=3"}
	changed, err := Run(context.Background(), "synthetic", o)
	if err != nil {
		t.Fatal(err)
	}
	if len(changed.Caveats) == 0 || !strings.Contains(changed.Caveats[0], "algorithm.rounds=3") {
		t.Errorf("not told: %q", changed.Caveats)
	}
	own, err := Run(context.Background(), "synthetic", options(t, Smoke))
	if err != nil {
		t.Fatal(err)
	}
	if len(own.Caveats) != len(changed.Caveats)-1 {
		t.Errorf("%d caveats of its own, %d with a change", len(own.Caveats), len(changed.Caveats))
	}
}

func TestUnknown(t *testing.T) {
	if _, err := Run(context.Background(), "nothing", options(t, Smoke)); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
	if _, err := Run(context.Background(), "synthetic", options(t, "huge")); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
	o := options(t, Smoke)
	o.Data = ""
	if _, err := Run(context.Background(), "hospital", o); err == nil {
		t.Error("real data are missing and nobody said so")
	}
	o.Set = []string{"algorithm.rounds=0"}
	if _, err := Run(context.Background(), "synthetic", o); err == nil {
		t.Error("a wrong setting was accepted")
	}
}

// TestSyntheticFigures holds the study's main figures.
func TestSyntheticFigures(t *testing.T) {
	o := options(t, Quick)
	s, err := Run(context.Background(), "synthetic", o)
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
