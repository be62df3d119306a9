package report

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/sim"
)

// RunSilos makes or continues a run on silos in a directory and leaves models,
// report and result there, the result last.
func RunSilos(ctx context.Context, d *sim.Directory, s *sim.Silos, version string, tick func(round int, figure float64)) (sim.SiloResult, error) {
	if d.Finished() {
		return LoadSilos(d.Path)
	}
	res, err := s.Execute(ctx, d, tick)
	if err != nil {
		return sim.SiloResult{}, err
	}
	full, err := filepath.Abs(d.Path)
	if err != nil {
		return sim.SiloResult{}, fmt.Errorf("find the run directory: %w", err)
	}
	res.RunID, res.Directory, res.Version = filepath.Base(full), full, version
	res.Report = filepath.Join(full, sim.ReportFile)
	res.Command = "coterie run " + filepath.Join(d.Path, sim.RunFile)
	if err := SiloPage(d.File(sim.ReportFile), res.Name, []sim.SiloResult{res}); err != nil {
		return sim.SiloResult{}, err
	}
	text, err := json.MarshalIndent(res, "", " ")
	if err != nil {
		return sim.SiloResult{}, fmt.Errorf("write %s: %w", sim.ResultFile, err)
	}
	if err := d.Write(sim.ResultFile, append(text, '\n')); err != nil {
		return sim.SiloResult{}, err
	}
	// The result holds all that the checkpoint does. Failing to remove it harms nothing.
	_ = os.Remove(d.File(sim.CheckpointFile))
	return res, nil
}

// LoadSilos reads the result of a finished run on silos.
func LoadSilos(dir string) (sim.SiloResult, error) {
	var res sim.SiloResult
	text, err := os.ReadFile(filepath.Join(dir, sim.ResultFile))
	if err != nil {
		return res, fmt.Errorf("%s holds no finished run: %w", dir, err)
	}
	if err := json.Unmarshal(text, &res); err != nil {
		return res, fmt.Errorf("%s: %w", filepath.Join(dir, sim.ResultFile), err)
	}
	return res, nil
}

// Rewrite writes one report about finished runs of one family to a file.
func Rewrite(path string, dirs []string) error {
	var groups []sim.Result
	var silos []sim.SiloResult
	for _, dir := range dirs {
		group, err := Load(dir)
		if err != nil {
			return err
		}
		silo, err := LoadSilos(dir)
		if err != nil {
			return err
		}
		if silo.Family == sim.FamilySilos {
			silos = append(silos, silo)
		} else {
			groups = append(groups, group)
		}
	}
	switch {
	case len(silos) == 0:
		return Page(path, groups[0].Name, groups)
	case len(groups) == 0:
		return SiloPage(path, silos[0].Name, silos)
	}
	return fmt.Errorf("%s and others: runs on silos and other runs have different figures; report them apart", dirs[0])
}
