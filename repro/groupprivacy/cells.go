package groupprivacy

import (
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/repro/lab"
)

// cell is one run of a simulation, boiled down.
type cell struct {
	Validation event.Number  `json:"validation"`
	Accuracy   *event.Number `json:"accuracy"`
	Honest     *event.Number `json:"honest"`
	Worst      *event.Number `json:"worst"`
	Median     event.Number  `json:"median_epsilon"`
	Max        event.Number  `json:"max_epsilon"`
	AnyUpdate  *event.Number `json:"any_update"`
	Switch     *event.Number `json:"switch"`
	Rounds     int           `json:"rounds"`
	// Budgets is how many clients spent so much, in ascending order.
	Budgets []budget `json:"budgets"`
}

type budget struct {
	Epsilon event.Number `json:"epsilon"`
	Clients int          `json:"clients"`
}

// simulate boils one run down.
func simulate(l *lab.Lab, run config.Run) (cell, error) {
	res, err := l.Result(run)
	if err != nil {
		return cell{}, err
	}
	p := res.Privacy
	var accuracy *event.Number
	if a := res.Metrics.Accuracy; a != nil {
		accuracy = &a.Value
	}
	return cell{
		Validation: res.Metrics.Loss, Accuracy: accuracy, Honest: res.Metrics.HonestLoss, Worst: res.Metrics.WorstDistance, Rounds: res.Rounds,
		Median: p.MedianEpsilon, Max: p.MaxEpsilon, AnyUpdate: p.EpsilonAnyUpdate, Switch: p.EpsilonSwitch,
		Budgets: countBudgets(res.History.Budgets),
	}, nil
}

func countBudgets(all []event.Number) []budget {
	slices.Sort(all)
	var out []budget
	for _, e := range all {
		if n := len(out); n > 0 && out[n-1].Epsilon == e {
			out[n-1].Clients++
			continue
		}
		out = append(out, budget{e, 1})
	}
	return out
}

func validation(c cell) float64 { return float64(c.Validation) }
func worst(c cell) float64      { return float64(*c.Worst) }
func largest(c cell) float64    { return float64(c.Max) }
func median(c cell) float64     { return float64(c.Median) }
