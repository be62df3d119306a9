package silos

import (
	"embed"
	"fmt"
	"math"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/sim"
)

// rows are finished cells of full runs, to be taken up before any is computed.
//
//go:embed rows
var rows embed.FS

const rotatedFile = "silo-rotated-mnist.jsonl"

// turned is everything that a cell of figure 1.6, one run, depends on.
type turned struct {
	Mask    float64 `json:"mask"`
	Method  string  `json:"method"` // algorithm.kind
	Warm    float64 `json:"warm,omitempty"`
	Lambda  string  `json:"lambda,omitempty"`
	Seed    uint64  `json:"seed"`
	Silos   int     `json:"silos"`
	Limit   int     `json:"limit,omitempty"` // pictures of a silo
	Rounds  int     `json:"rounds"`
	Epsilon float64 `json:"epsilon"`
	Step    float64 `json:"step"`
	Changed string  `json:"changed,omitempty"` // by --set
}

// String tells a cell in words: errors name it so.
func (k turned) String() string {
	return fmt.Sprintf("%s, warm start %v, masked with probability %v, seed %d", k.Method, k.Warm, k.Mask, k.Seed)
}

// turnedOf is the key of a run before the caller's settings, but for its seed.
func turnedOf(l *lab.Lab, r config.Run) turned {
	return turned{
		Mask: r.Data.Mask, Method: r.Algorithm.Kind, Warm: r.Algorithm.WarmStart, Lambda: string(r.Algorithm.Lambda),
		Silos: r.Data.Silos, Limit: r.Data.TrainLimit, Rounds: r.Algorithm.Rounds, Epsilon: r.Privacy.Epsilon, Step: r.Algorithm.Local.Step,
		Changed: strings.Join(l.Set, " "),
	}
}

// turnedCells has a Grid's cells as lines of a file, of which some came with the program. A
// seed is made after another: whoever stops has whole ones.
func turnedCells(l *lab.Lab, runs []config.Run) ([][]cell, error) {
	var keys []turned
	resolved := map[turned]config.Run{}
	for seed := range uint64(l.Seeds) {
		for _, plain := range runs {
			run, err := l.Resolve(plain)
			if err != nil {
				return nil, err
			}
			k := turnedOf(l, plain)
			k.Seed, run.Seed = seed+1, seed+1
			keys, resolved[k] = append(keys, k), run
		}
	}
	committed, err := rows.ReadFile("rows/" + rotatedFile)
	if err != nil {
		return nil, fmt.Errorf("committed cells: %w", err)
	}
	finished, err := lab.Fill(l, rotatedFile, committed, keys, func(l *lab.Lab, k turned) (cell, error) {
		run := resolved[k]
		run.Run.Workers = l.Share()
		c, err := simulate(l, run)
		return shortened(c, run), err
	})
	if err != nil {
		return nil, err
	}
	out := make([][]cell, len(runs))
	for i, k := range keys {
		r, ok := finished[k]
		if !ok {
			return nil, fmt.Errorf("%w; %s", sim.ErrInterrupted, lab.Progress(finished, keys))
		}
		out[i%len(runs)] = append(out[i%len(runs)], r.Value)
	}
	return out, nil
}

// shortened leaves what a committed line is worth: five digits, and of the curve, which has the
// last judgement's figure between two, the rounds of judgements.
func shortened(c cell, run config.Run) cell {
	five := func(v event.Number) event.Number { return event.Number(math.Round(float64(v)*1e5) / 1e5) }
	rounds, curve := c.Rounds, c.Curve
	c.Figure, c.Rounds, c.Curve = five(c.Figure), nil, nil
	for i, round := range rounds {
		if round%run.Algorithm.Stop.Every == 0 || i == len(rounds)-1 {
			c.Rounds, c.Curve = append(c.Rounds, round), append(c.Curve, five(curve[i]))
		}
	}
	return c
}
