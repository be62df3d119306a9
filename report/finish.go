package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/sim"
)

// Run makes or continues the run in a directory and leaves model, report and
// result there, the result last.
func Run(ctx context.Context, d *sim.Directory, s *sim.Simulation, version string, tick func(round int, loss float64)) (sim.Result, error) {
	if d.Finished() {
		return Load(d.Path)
	}
	res, err := s.Execute(ctx, d, tick)
	if err != nil {
		return sim.Result{}, err
	}
	at, err := placeOf(d)
	if err != nil {
		return sim.Result{}, err
	}
	res.RunID, res.Directory, res.Report, res.Command, res.Version = at.runID, at.directory, at.report, at.command, version
	if err := Page(d.File(sim.ReportFile), res.Name, []sim.Result{res}); err != nil {
		return sim.Result{}, err
	}
	if err := leave(d, res); err != nil {
		return sim.Result{}, err
	}
	return res, nil
}

// place is where a run is, in its result's words.
type place struct{ runID, directory, report, command string }

func placeOf(d *sim.Directory) (place, error) {
	full, err := filepath.Abs(d.Path)
	if err != nil {
		return place{}, fmt.Errorf("find the run directory: %w", err)
	}
	return place{
		runID: filepath.Base(full), directory: full, report: filepath.Join(full, sim.ReportFile),
		command: "coterie run " + filepath.Join(d.Path, sim.RunFile),
	}, nil
}

// leave writes a run's result, which ends it.
func leave(d *sim.Directory, result any) error {
	text, err := json.MarshalIndent(result, "", " ")
	if err != nil {
		return fmt.Errorf("write %s: %w", sim.ResultFile, err)
	}
	if err := d.Write(sim.ResultFile, append(text, '\n')); err != nil {
		return err
	}
	// The result holds all that the checkpoint does. Failing to remove it harms nothing.
	_ = os.Remove(d.File(sim.CheckpointFile))
	return nil
}

// Load reads the result of a finished run.
func Load(dir string) (sim.Result, error) { return load[sim.Result](dir) }

func load[R any](dir string) (R, error) {
	var res R
	text, err := os.ReadFile(filepath.Join(dir, sim.ResultFile))
	if err != nil {
		return res, fmt.Errorf("%s holds no finished run: %w", dir, err)
	}
	if err := json.Unmarshal(text, &res); err != nil {
		return res, fmt.Errorf("%s: %w", filepath.Join(dir, sim.ResultFile), err)
	}
	return res, nil
}

// Page writes one report about several finished runs to a file.
func Page(path, title string, results []sim.Result) error {
	var page bytes.Buffer
	if err := HTML(&page, title, results); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return sim.WriteFile(path, page.Bytes())
}
