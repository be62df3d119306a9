package report

import (
	"context"
	"fmt"

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
	at, err := placeOf(d)
	if err != nil {
		return sim.SiloResult{}, err
	}
	res.RunID, res.Directory, res.Report, res.Command, res.Version = at.runID, at.directory, at.report, at.command, version
	if err := SiloPage(d.File(sim.ReportFile), res.Name, []sim.SiloResult{res}); err != nil {
		return sim.SiloResult{}, err
	}
	if err := leave(d, res); err != nil {
		return sim.SiloResult{}, err
	}
	return res, nil
}

// LoadSilos reads the result of a finished run on silos.
func LoadSilos(dir string) (sim.SiloResult, error) { return load[sim.SiloResult](dir) }

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
