// Package sweep makes many runs: grids of settings, and tuning that is charged to the silos' budgets.
package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/sim"
	"github.com/coterie-fl/coterie/theory"
)

// File is a sweep file as it is written.
type File struct {
	Run    string        `yaml:"run" jsonschema_description:"the run file, seen from the sweep file's folder"`
	Set    []string      `yaml:"set" jsonschema_description:"settings of every run, each path=value as --set has it; empty: none"`
	Seeds  int           `yaml:"seeds" jsonschema:"minimum=1" jsonschema_description:"runs of every point of the grid, with the seeds 1, 2, … up to this"`
	Grid   yaml.MapSlice `yaml:"grid" jsonschema_description:"keys of the run file and the values that each takes; all combinations are run, the last key fastest"`
	Tuning *Tuning       `yaml:"tuning" jsonschema_description:"who pays for tuning, and how (docs/tuning.md); left out: nobody does"`
}

// Tuning says who pays for tuning, and how: docs/tuning.md. By random stopping every silo
// tunes for itself, and the run file's own settings are those of the pivot; a charged grid
// has all its runs share one target.
type Tuning struct {
	Charge       string  `yaml:"charge" jsonschema:"enum=random,enum=grid" jsonschema_description:"what is paid for: random, the best of a random number of trials, by every silo for itself; grid, every run of the grid, whose noise is raised so that all of them together keep the run file's target; empty: random"`
	Distribution string  `yaml:"distribution" jsonschema:"enum=tnb,enum=poisson" jsonschema_description:"distribution of the secret number of trials: tnb, truncated negative binomial, or poisson; with charge grid that of the random stopping whose price stands beside the grid's; empty: tnb"`
	MeanTrials   float64 `yaml:"mean_trials" jsonschema:"minimum=0" only:".charge=random" jsonschema_description:"mean number of trials; a grid's is the number of its points"`
	Eta          float64 `yaml:"eta" jsonschema:"exclusiveMinimum=-1" only:".distribution=tnb" jsonschema_description:"shape of the distribution: 0 is the logarithmic one, 1 the geometric one"`
	Score        Score   `yaml:"score" only:".charge=random" jsonschema_description:"how a silo judges a trial; charged in every trial"`
	Entropy      string  `yaml:"entropy" jsonschema:"enum=system,enum=seeded" only:".charge=random" jsonschema_description:"where the draws come from: the system, or the seed, to repeat a simulation; empty: system"`
}

// The ways in which tuning is charged.
const (
	ChargeRandom = "random"
	ChargeGrid   = "grid"
)

// Score is how a silo judges a trial: the sum of its training examples' losses, each
// clipped to Bound, with Gaussian noise of Noise*Bound. It is charged in every trial.
type Score struct {
	Bound float64 `yaml:"bound" jsonschema:"exclusiveMinimum=0" jsonschema_description:"what the loss of a training example is clipped to before it is added up"`
	Noise float64 `yaml:"noise" jsonschema:"exclusiveMinimum=0" jsonschema_description:"standard deviation of the sum's noise, divided by bound"`
}

// event is what one score costs.
func (s Score) event() event.Event { return mech.Gaussian{Multiplier: s.Noise}.Event() }

// Point is one setting of the grid.
type Point struct {
	Settings []config.Setting
	Run      config.Run
}

// Label is the point's settings in words.
func (p Point) Label() string {
	parts := make([]string, len(p.Settings))
	for i, s := range p.Settings {
		parts[i] = s.Path + "=" + s.Value
	}
	return strings.Join(parts, " ")
}

// Plan is a sweep that is fit to be made.
type Plan struct {
	Name   string
	Base   config.Run // the run file as it stands: the pivot of charged tuning
	Points []Point    // in the order of the file, the last key fastest
	Seeds  int
	Tuning *Tuning
	// Trials are those of charged tuning; of a grid, those that would be as many on average
	// as it has points.
	Trials theory.Trials
}

// mostPoints is a limit on slips, not on machines.
const mostPoints = 100_000

// Load reads a sweep file and its run file and checks every run of it. Set is
// applied to every run, after the file's own.
func Load(path string, set []string) (*Plan, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: read the sweep file: %w", config.ErrInvalid, err)
	}
	if err := config.Bounded(text); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f := File{Seeds: 1}
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%w: %s: %s", config.ErrInvalid, path, yaml.FormatError(err, false, false))
	}
	p, err := f.plan(filepath.Dir(path), set)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

func (f File) plan(folder string, set []string) (*Plan, error) {
	if f.Run == "" || f.Seeds < 1 || len(f.Grid) == 0 {
		return nil, fmt.Errorf("%w: a sweep needs run (a run file), grid (path: list of values), and seeds of at least 1", config.ErrInvalid)
	}
	name := f.Run
	if !filepath.IsAbs(name) {
		name = filepath.Join(folder, name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%w: run: %w", config.ErrInvalid, err)
	}
	p := &Plan{Seeds: f.Seeds, Tuning: f.Tuning}
	set = append(slices.Clone(f.Set), set...)
	if p.Base, err = config.ResolveIn(filepath.Dir(name), text, set, sim.Checks()...); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(p.Base.Judge.Compare) > 0 {
		return nil, fmt.Errorf("%w: %s: judge.compare is %v, but a sweep compares its own points; leave it out, or have algorithm.kind in the grid", config.ErrInvalid, name, p.Base.Judge.Compare)
	}
	p.Name = p.Base.Name
	grid, err := f.points()
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, settings := range grid {
		one := slices.Clone(set)
		for _, s := range settings {
			one = append(one, s.Path+"="+s.Value)
		}
		point := Point{Settings: settings}
		if point.Run, err = config.ResolveIn(filepath.Dir(name), text, one, sim.Checks()...); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", point.Label(), err))
		}
		p.Points = append(p.Points, point)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	switch charge := p.Charge(); charge {
	case ChargeRandom:
		err = p.settleTuning()
	case "", ChargeGrid:
		err = p.settleGrid()
	default:
		err = fmt.Errorf("%w: tuning.charge: %q; allowed: random, grid", config.ErrInvalid, charge)
	}
	return p, err
}

// Charge is what is paid for; empty: nothing is.
func (p *Plan) Charge() string {
	if p.Tuning == nil {
		return ""
	}
	return cmp.Or(p.Tuning.Charge, ChargeRandom)
}

// points are all combinations of the grid's values.
func (f File) points() ([][]config.Setting, error) {
	grid := [][]config.Setting{nil}
	for _, axis := range f.Grid {
		path := fmt.Sprint(axis.Key)
		values, ok := axis.Value.([]any)
		if !ok || len(values) == 0 {
			return nil, fmt.Errorf("%w: grid.%s: want a list of values, for example [0.1, 1, 10]", config.ErrInvalid, path)
		}
		if path == "seed" {
			return nil, fmt.Errorf("%w: grid.seed: set seeds instead, the number of seeds", config.ErrInvalid)
		}
		if len(grid)*len(values) > mostPoints {
			return nil, fmt.Errorf("%w: the grid has more than %d points", config.ErrInvalid, mostPoints)
		}
		var next [][]config.Setting
		for _, settings := range grid {
			for _, v := range values {
				next = append(next, append(slices.Clone(settings), config.Setting{Path: path, Value: fmt.Sprint(v)}))
			}
		}
		grid = next
	}
	return grid, nil
}
