package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/report/federated"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// Run makes or continues the run in a directory and leaves models, report and
// result there, the result last. It calls tick as Execute does, for the run and for those
// that it is compared with.
func Run(ctx context.Context, d *sim.Directory, s *sim.Simulation, version string, tick func(sim.Moment)) (sim.Result, error) {
	if d.Finished() {
		return resultOf(d, s)
	}
	res, err := s.Execute(ctx, d, tick)
	if err != nil {
		return sim.Result{}, err
	}
	results := []sim.Result{res}
	for _, method := range s.Run().Judge.Compare {
		c, other, err := compare(ctx, d, s, method, version, tick)
		if err != nil {
			return sim.Result{}, err
		}
		results[0].Comparison = append(results[0].Comparison, c)
		results = append(results, other)
	}
	if err := leave(d, results, version); err != nil {
		return sim.Result{}, err
	}
	// The results hold all that the checkpoints do. Failing to remove them harms nothing.
	for _, file := range []string{sim.CheckpointFile, sim.ProgressFile} {
		_ = os.Remove(d.File(file))
		for _, method := range s.Run().Judge.Compare {
			_ = os.Remove(filepath.Join(d.File(sim.CompareFolder(method)), file))
		}
	}
	return results[0], nil
}

// resultOf is the result that is there, if it is that of the run file as it stands beside it.
func resultOf(d *sim.Directory, s *sim.Simulation) (sim.Result, error) {
	res, err := Load(d.Path)
	if err != nil {
		return sim.Result{}, err
	}
	hash, err := s.Run().Hash()
	if err != nil {
		return sim.Result{}, err
	}
	if res.ConfigSHA256 != hash || res.Seed != s.Run().Seed {
		return sim.Result{}, fmt.Errorf("%s has finished, and its result is not of the run.yaml that is there now: that was changed since, or an earlier version wrote it; coterie report %s shows the result, and coterie run %s --out ANOTHER makes the run anew", d.Path, d.Path, d.File(sim.RunFile))
	}
	return res, nil
}

// compare makes or continues the run with another method, in a folder of its own. Its
// checkpoint stays until all is done: from there a comparison that was interrupted has the
// answers again.
func compare(ctx context.Context, d *sim.Directory, s *sim.Simulation, method, version string, tick func(sim.Moment)) (sim.Comparison, sim.Result, error) {
	other, err := s.Beside(method)
	if err != nil {
		return sim.Comparison{}, sim.Result{}, err
	}
	defer other.Close()
	sub, err := d.Beside(other)
	if err != nil {
		return sim.Comparison{}, sim.Result{}, err
	}
	defer sub.Close()
	results := make([]sim.Result, 1)
	if results[0], err = other.Execute(ctx, sub, tick); err == nil {
		err = leave(sub, results, version)
	}
	if err != nil {
		return sim.Comparison{}, sim.Result{}, fmt.Errorf("compare with %s: %w", method, err)
	}
	c, err := s.Against(other, results[0])
	return c, results[0], err
}

// Leave writes the report of a run that was made in a directory, and its result, last.
func Leave(dir string, res sim.Result, version string) error {
	return leave(&sim.Directory{Path: dir}, []sim.Result{res}, version)
}

// leave names the first result, and writes it and the report of all into its directory,
// the result last.
func leave(d *sim.Directory, results []sim.Result, version string) error {
	full, err := filepath.Abs(d.Path)
	if err != nil {
		return fmt.Errorf("find the run directory: %w", err)
	}
	res := &results[0]
	res.RunID, res.Directory, res.Report = filepath.Base(full), full, filepath.Join(full, sim.ReportFile)
	res.Command, res.Version = "coterie run "+prose.ShellWord(filepath.Join(d.Path, sim.RunFile)), version
	if err := Page(d.File(sim.ReportFile), res.Name, results); err != nil {
		return err
	}
	text, err := json.MarshalIndent(res, "", " ")
	if err != nil {
		return fmt.Errorf("write %s: %w", sim.ResultFile, err)
	}
	return d.Write(sim.ResultFile, append(text, '\n'))
}

// Beside are the results of the runs that a finished one was compared with, where its
// directory still has them.
func Beside(dir string, res sim.Result) (others []sim.Result, err error) {
	for _, c := range res.Comparison {
		path := filepath.Join(dir, sim.CompareFolder(c.Algorithm))
		if _, err := os.Stat(filepath.Join(path, sim.ResultFile)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		other, err := Load(path)
		if err != nil {
			return nil, err
		}
		others = append(others, other)
	}
	return others, nil
}

// Load reads the result of a finished run. One of an earlier version is refused: its
// figures had other names.
func Load(dir string) (sim.Result, error) {
	res, ofFederation, err := open(dir)
	if err == nil && ofFederation != nil {
		err = fmt.Errorf("%s holds a federation's run, not a simulation; coterie report shows it", dir)
	}
	return res, err
}

// open reads what a directory holds: the result of a run, or that of a federation.
func open(dir string) (res sim.Result, ofFederation *server.Result, err error) {
	path := filepath.Join(dir, sim.ResultFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return res, nil, fmt.Errorf("%s holds no finished run: %w", dir, err)
	}
	var k kind
	if err = json.Unmarshal(text, &k); err == nil {
		switch {
		case k.ofFederation():
			ofFederation = new(server.Result)
			err = json.Unmarshal(text, ofFederation)
		case k.Algorithm == "" || k.Privacy == nil:
			return res, nil, fmt.Errorf("%s holds neither a finished run nor what a federation's server leaves: its %s is something else", dir, sim.ResultFile)
		case k.Judge == "":
			return res, nil, fmt.Errorf("%s was written by an earlier version, whose figures have other names; run it again with this version, the run file is still good: coterie run %s",
				path, prose.ShellWord(filepath.Join(dir, sim.RunFile)))
		default:
			err = json.Unmarshal(text, &res)
		}
	}
	if err != nil {
		return res, nil, fmt.Errorf("%s: %w", path, err)
	}
	return res, ofFederation, nil
}

// kind is what tells results apart: those of federations say what they are, the oldest
// ones by what they hold.
type kind struct {
	Family       string          `json:"family"`
	Algorithm    string          `json:"algorithm"`
	Judge        string          `json:"judge"`
	PlanSHA256   string          `json:"plan_sha256"`
	Participants json.RawMessage `json:"participants"`
	Privacy      json.RawMessage `json:"privacy"`
}

func (k kind) ofFederation() bool {
	return k.Algorithm != "" && (k.Family == server.Family || k.PlanSHA256 != "" && k.Participants != nil)
}

// Rewrite writes one report about finished runs to a file. A federation's is reported by
// itself.
func Rewrite(path string, dirs []string) error {
	var results []sim.Result
	for _, dir := range dirs {
		res, ofFederation, err := open(dir)
		switch {
		case err != nil:
			return err
		case ofFederation != nil && len(dirs) > 1:
			return fmt.Errorf("%s holds a federation's run: it is reported by itself", dir)
		case ofFederation != nil:
			return federated.WritePage(path, *ofFederation)
		}
		results = append(results, res)
		others, err := Beside(dir, res)
		if err != nil {
			return err
		}
		results = append(results, others...)
	}
	return Page(path, results[0].Name, results)
}
