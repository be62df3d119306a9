package repro

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report"
	"github.com/coterie-fl/coterie/repro/groupprivacy"
	"github.com/coterie-fl/coterie/sim"
)

// Demo is what `coterie demo` shows: the papers' synthetic federation, trained in
// three ways, and the private one in sound mode as well.
type Demo struct {
	Runs   []sim.Summary `json:"runs"`
	Sound  sim.Summary   `json:"sound"`
	Notes  []string      `json:"notes"`
	Report string        `json:"report"`
}

// demoNotes say which settings the demo uses, and why.
var demoNotes = []string{
	"Balanced sampling (shuffle the clients, take 7 at a time) for 85 rounds: nobody releases more than 6 vectors, so the largest total is 6*2/5 = 2.4, the figure that thesis 001 gives in section 2.5.1.",
	"The papers' own stopping rule (uniform sampling, patience 6) ends near both optima in about one seed of three: coterie run examples/group-private.yaml shows it.",
	"The sound run clips to the public radius 0.8*0.945^t and asks 14 clients in each of 42 rounds: again 6 releases a client at most.",
	"FedAvg, IFCA and group-private return the round that was best on the held-out clients, whose losses nobody pays for. The sound run returns its last round.",
}

// demoRuns are the settings that show each method at its honest best.
func demoRuns(seed uint64) []config.Run {
	var runs []config.Run
	for _, kind := range []string{"fedavg", "ifca", "group-private"} {
		r := config.Default("synthetic", kind, "paper")
		r.Name = kind
		runs = append(runs, r)
	}
	sound := config.Default("synthetic", "group-private", "sound")
	sound.Name = "group-private-sound"
	runs = append(runs, sound)
	for i := range runs {
		runs[i].Seed = seed
		runs[i].Algorithm.Sampling = "balanced"
		runs[i].Algorithm.Rounds = 85
		runs[i].Algorithm.Stop.Patience = 0
	}
	last := &runs[len(runs)-1]
	groupprivacy.SoundRadius(0.8, 0.945, 10, 14, 42)(last)
	return runs
}

// RunDemo makes all runs in folders of dir and one report about them.
func RunDemo(ctx context.Context, dir string, seed uint64, version string, tick func(name string, m sim.Moment)) (Demo, error) {
	var results []sim.Result
	for _, run := range demoRuns(seed) {
		res, err := demoRun(ctx, filepath.Join(dir, run.Name), run, version, tick)
		if err != nil {
			return Demo{}, fmt.Errorf("demo, %s: %w", run.Name, err)
		}
		results = append(results, res)
	}
	path, err := filepath.Abs(filepath.Join(dir, sim.ReportFile))
	if err != nil {
		return Demo{}, fmt.Errorf("demo: %w", err)
	}
	if err := report.Page(path, "Coterie demo", results); err != nil {
		return Demo{}, fmt.Errorf("demo: %w", err)
	}
	demo := Demo{Notes: demoNotes, Report: path}
	for _, res := range results {
		if res.Name == "group-private-sound" {
			demo.Sound = res.Summary
		} else {
			demo.Runs = append(demo.Runs, res.Summary)
		}
	}
	return demo, nil
}

func demoRun(ctx context.Context, dir string, run config.Run, version string, tick func(string, sim.Moment)) (sim.Result, error) {
	s, err := sim.NewUntil(ctx, run, nil)
	if err != nil {
		return sim.Result{}, err
	}
	defer s.Close()
	text, err := run.Encode()
	if err != nil {
		return sim.Result{}, err
	}
	d, err := sim.CreateDirectory(dir, text)
	if err != nil {
		return sim.Result{}, err
	}
	defer d.Close()
	return report.Run(ctx, d, s, version, func(m sim.Moment) { tick(run.Name, m) })
}
