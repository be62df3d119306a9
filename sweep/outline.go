package sweep

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/sim"
)

// The files of a sweep's folder. PlanFile is there before the first run, ResultFile after
// the last. A tuning that silos pay for leaves no plan and no cells: how many trials there
// are is a secret.
const (
	ResultFile = "sweep.json"
	PlanFile   = "plan.json"
)

// Outline is what a grid is going to make, for whoever watches: PlanFile.
type Outline struct {
	Name   string         `json:"name"`
	Tuning string         `json:"tuning"`
	Seeds  int            `json:"seeds"`
	Points []OutlinePoint `json:"points"`
}

// OutlinePoint is one setting, and the files of its finished runs in seed order, below the
// sweep's folder.
type OutlinePoint struct {
	Settings map[string]string `json:"settings"`
	Cells    []string          `json:"cells"`
}

// Cell is what one of those files says.
type Cell struct {
	Metric string       `json:"metric"`
	Value  event.Number `json:"value"`
}

// outline writes PlanFile.
func (p *Plan) outline(o Options, tuning string, points []Point) error {
	out := Outline{Name: p.Name, Tuning: tuning, Seeds: p.Seeds}
	for _, point := range points {
		one := OutlinePoint{Settings: settingsOf(point)}
		for seed := range p.Seeds {
			path, err := o.book().Path(o.keyOf(p.seeded(point, seed)))
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(o.Out, path)
			if err != nil {
				return fmt.Errorf("sweep: %w", err)
			}
			one.Cells = append(one.Cells, filepath.ToSlash(relative))
		}
		out.Points = append(out.Points, one)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	return sim.WriteFile(filepath.Join(o.Out, PlanFile), append(text, '\n'))
}

func settingsOf(point Point) map[string]string {
	settings := map[string]string{}
	for _, s := range point.Settings {
		settings[s.Path] = s.Value
	}
	return settings
}
