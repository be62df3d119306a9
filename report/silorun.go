package report

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/coterie-fl/coterie/federation"
	"github.com/coterie-fl/coterie/report/federated"
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

// kind is what tells results apart: those of federations and of silos say what they are,
// the oldest ones by what they hold.
type kind struct {
	Family       string          `json:"family"`
	Algorithm    string          `json:"algorithm"`
	PlanSHA256   string          `json:"plan_sha256"`
	Participants json.RawMessage `json:"participants"`
	Privacy      json.RawMessage `json:"privacy"`
}

func (k kind) ofFederation() bool {
	return k.Family == federation.Family || k.PlanSHA256 != "" && k.Participants != nil
}

// known says whether the result is one of ours at all.
func (k kind) known() bool {
	return k.Algorithm != "" && (k.ofFederation() || k.Privacy != nil)
}

// Rewrite writes one report about finished runs of one family to a file.
func Rewrite(path string, dirs []string) error {
	var groups []sim.Result
	var silos []sim.SiloResult
	for _, dir := range dirs {
		k, err := load[kind](dir)
		if err != nil {
			return err
		}
		switch {
		case !k.known():
			return fmt.Errorf("%s holds neither a finished run nor what a federation's server leaves: its %s is something else", dir, sim.ResultFile)
		case k.ofFederation() && len(dirs) > 1:
			return fmt.Errorf("%s holds a federation's run: it is reported by itself", dir)
		case k.ofFederation():
			r, err := load[federation.ServeResult](dir)
			if err != nil {
				return err
			}
			return federated.WritePage(path, r)
		case k.Family == sim.FamilySilos:
			silo, err := LoadSilos(dir)
			if err != nil {
				return err
			}
			silos = append(silos, silo)
		default:
			group, err := Load(dir)
			if err != nil {
				return err
			}
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
