package sweep

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/coterie-fl/coterie/all"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/sim"
)

// schools writes School data of a few small schools and returns the folder.
func schools(t *testing.T) *data.Folder {
	t.Helper()
	return schoolsOf(t, 50, 50, 50, 50, 50, 50)
}

// schoolsOf has schools of so many pupils.
func schoolsOf(t *testing.T, pupils ...int) *data.Folder {
	t.Helper()
	folder := t.TempDir()
	var text strings.Builder
	text.WriteString("school")
	for j := range 28 {
		fmt.Fprintf(&text, ",f%02d", j)
	}
	text.WriteString(",score\n")
	f := rng.NewFamily(1, "test schools")
	s := f.Stream(0, 0)
	for school, n := range pupils {
		for range n {
			fmt.Fprint(&text, school)
			sum := 0
			for j := range 28 {
				x := s.Below(2)
				if j == 27 {
					x = 1
				}
				sum += x
				fmt.Fprintf(&text, ",%d", x)
			}
			fmt.Fprintf(&text, ",%d\n", 1+sum+school+s.Below(10))
		}
	}
	if err := os.MkdirAll(filepath.Join(folder, "school"), 0o755); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(text.String())); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "school", "school.csv.gz"), packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return data.NewFolder(folder)
}

const schoolRun = `
data: {kind: school}
algorithm: {kind: mr-mtl, rounds: 12, lambda: 1, local: {step: 0.01, batch: 10}}
privacy: {accounting: paper, epsilon: 6, delta: 0.001, clip: 1}
`

const charged = `
run: run.yaml
grid: {algorithm.lambda: [0.1, 1, 10], algorithm.local.step: [0.003, 0.01]}
tuning:
  mean_trials: 4
  eta: 0
  entropy: seeded
  score: {bound: 0.2, noise: 5}
`

// plan writes a sweep file and its run file and loads them.
func plan(t *testing.T, run, sweep string, set ...string) (*Plan, error) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"run.yaml": run, "sweep.yaml": sweep} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Load(filepath.Join(folder, "sweep.yaml"), set)
}

func loaded(t *testing.T, run, sweep string, set ...string) *Plan {
	t.Helper()
	p, err := plan(t, run, sweep, set...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func options(t *testing.T, folder *data.Folder) Options {
	return Options{Folder: folder, Out: t.TempDir(), Workers: 2, Version: "test", Tick: func(int, int) {}}
}

// TestGridReadsATableOnce: the file is gone once the first run has ended, and the others
// train on what was read, with figures as if each had read it for itself.
func TestGridReadsATableOnce(t *testing.T) {
	const rows = 100_000
	path := filepath.Join(t.TempDir(), "rows.csv")
	var text strings.Builder
	text.WriteString("site,y,a,b\n")
	f := rng.NewFamily(2, "test rows")
	s := f.Stream(0, 0)
	for range rows {
		a, b := s.Below(100), s.Below(100)
		y := 0
		if a+s.Below(60) > 80 {
			y = 1
		}
		fmt.Fprintf(&text, "s%d,%d,%d,%d\n", s.Below(4), y, a, b)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	p := loaded(t, `
data: {kind: table, source: {path: `+path+`, client: site}, target: y, task: yes/no,
  features: [{name: a, type: number, range: [0, 100]}, {name: b, type: number, range: [0, 100]}]}
algorithm: {kind: fedavg, mode: paper, rounds: 1, local: {epochs: 1, batch: 1000, step: 0.1}}
privacy: {protects: nothing}
`, "run: run.yaml\nseeds: 2\ngrid:\n  algorithm.local.step: [0.01, 0.02, 0.05, 0.1, 0.2]\n  data.test_share: [0.2, 0.4]\n")
	if n := len(p.Points) * p.Seeds; n != 20 {
		t.Fatalf("%d runs", n)
	}
	run := p.Points[9].Run
	run.Seed++
	run.Run.Workers = 1
	alone, err := simulate(t.Context(), run, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, nil)
	o.Tick = func(done, _ int) {
		if done == 1 {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		}
	}
	r, err := p.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Points[9].Values[1]; got != alone.Value || alone.Value == 0 {
		t.Errorf("a run of the sweep gives %v, by itself %v", got, alone.Value)
	}
}

func TestGrid(t *testing.T) {
	p := loaded(t, schoolRun, "run: run.yaml\nseeds: 2\ngrid:\n  algorithm.lambda: [0, 1]\n  algorithm.local.step: [0.001, 0.02]\n")
	o := options(t, schools(t))
	r, err := p.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Points) != 4 || r.Runs != 8 || r.Metric != "loss" || r.Tuning != "not charged" || !strings.Contains(r.Says[0], NotCharged) {
		t.Errorf("%+v", r)
	}
	if got := p.Points[1].Label(); got != "algorithm.lambda=0 algorithm.local.step=0.02" {
		t.Errorf("the second point is %q: the last key must vary fastest", got)
	}
	for i, point := range r.Points {
		if point.Mean < r.Points[r.Best].Mean || len(point.Values) != 2 {
			t.Errorf("point %d: %+v, best %d", i, point, r.Best)
		}
	}
	if r.Points[1].Mean >= r.Points[0].Mean {
		t.Errorf("12 rounds of tiny steps (%v) are as good as larger ones (%v): the settings do not reach the runs", r.Points[0].Mean, r.Points[1].Mean)
	}
	cells, err := filepath.Glob(filepath.Join(o.Out, "cells", "*.json"))
	if err != nil || len(cells) != 8 {
		t.Fatalf("%d cells (%v)", len(cells), err)
	}
	// What is stored is believed; what is damaged is made again.
	stored := []byte(`{"metric":"loss","value":0.000001,"privacy":{}}`)
	if err := os.WriteFile(cells[0], stored, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cells[1], []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := p.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for i, point := range again.Points {
		for s, v := range point.Values {
			if v == 0.000001 {
				seen++
			} else if v != r.Points[i].Values[s] {
				t.Errorf("point %d, seed %d: %v, at first %v", i, s, v, r.Points[i].Values[s])
			}
		}
	}
	if seen != 1 {
		t.Errorf("%d stored cells were believed, want 1", seen)
	}
}

func TestGridOfGroups(t *testing.T) {
	p := loaded(t, "algorithm: {kind: ifca, rounds: 3}\n", "run: run.yaml\ngrid: {algorithm.local.step: [0.01, 0.1]}\n")
	r, err := p.Run(context.Background(), options(t, data.NewFolder("")))
	if err != nil || r.Metric != "loss" || len(r.Points) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestStoppedGridGoesOn(t *testing.T) {
	p := loaded(t, schoolRun, "run: run.yaml\nseeds: 3\ngrid: {algorithm.lambda: [0, 1]}\n")
	o := options(t, schools(t))
	o.Workers = 1
	ctx, cancel := context.WithCancel(context.Background())
	o.Tick = func(done, _ int) {
		if done == 2 {
			cancel()
		}
	}
	if _, err := p.Run(ctx, o); !errors.Is(err, sim.ErrInterrupted) {
		t.Fatalf("%v", err)
	}
	o.Tick = func(int, int) {}
	if _, err := p.Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
}

func TestRefusedFiles(t *testing.T) {
	for name, c := range map[string]struct{ run, sweep, says string }{
		"unknown key":   {schoolRun, "run: run.yaml\ngird: {seed: [1]}\n", "gird"},
		"no grid":       {schoolRun, "run: run.yaml\n", "grid"},
		"not a list":    {schoolRun, "run: run.yaml\ngrid: {algorithm.lambda: 1}\n", "list"},
		"seed":          {schoolRun, "run: run.yaml\ngrid: {seed: [1, 2]}\n", "seeds"},
		"too deep":      {schoolRun, "run: run.yaml\ngrid: {algorithm.lambda: " + strings.Repeat("[", 15_000) + "}\n", "deep in one another"},
		"aliases":       {schoolRun, "run: &r run.yaml\ngrid: {algorithm.lambda: [" + strings.Repeat("*r, ", 20) + "1]}\n", "write the values out"},
		"compare":       {schoolRun + "judge: {compare: [local]}\n", "run: run.yaml\ngrid: {algorithm.lambda: [1]}\n", "judge.compare"},
		"no run file":   {schoolRun, "run: other.yaml\ngrid: {algorithm.lambda: [1]}\n", "other.yaml"},
		"wrong setting": {schoolRun, "run: run.yaml\ngrid: {algorithm.lambda: [1, -1], algorithm.ronds: [3]}\n", "algorithm.ronds"},
		"other kind":    {strings.Replace(schoolRun, "mr-mtl", "fedavg", 1), charged, "mr-mtl"},
		"no privacy":    {strings.Replace(schoolRun, "epsilon: 6", "epsilon: 0", 1), charged, "privacy.epsilon"},
		"other axis":    {schoolRun, strings.Replace(charged, "algorithm.local.step: [0.003, 0.01]", "algorithm.rounds: [3, 4]", 1), "can vary"},
		"auto":          {schoolRun, strings.Replace(charged, "[0.1, 1, 10]", "[auto]", 1), "auto"},
		"free score":    {schoolRun, strings.Replace(charged, "noise: 5", "noise: 0", 1), "score.noise"},
		"no bound":      {schoolRun, strings.Replace(charged, "bound: 0.2", "bound: 0", 1), "score.bound"},
		"eta":           {schoolRun, strings.Replace(charged, "eta: 0", "eta: -1", 1), "eta"},
		"distribution":  {schoolRun, strings.Replace(charged, "eta: 0", "distribution: naive", 1), "naive"},
		"entropy":       {schoolRun, strings.Replace(charged, "seeded", "none", 1), "entropy"},
		"two records":   {strings.Replace(schoolRun, "clip: 1", "clip: 1, records_per_person: 2", 1), charged, "records_per_person"},
	} {
		_, err := plan(t, c.run, c.sweep)
		if !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want a fault that names %q", name, err, c.says)
		}
	}
}

// TestNothingTellsTheNumberOfTrials: it must stay secret.
func TestNothingTellsTheNumberOfTrials(t *testing.T) {
	r := tuned(t, loaded(t, schoolRun, charged), options(t, schools(t)))
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	for key := range keys["silos"].([]any)[0].(map[string]any) {
		if strings.Contains(key, "trial") || strings.Contains(key, "seconds") {
			t.Errorf("a silo's line has the key %q", key)
		}
	}
}
