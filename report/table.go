package report

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/sim"
)

// Table prints runs side by side for a terminal: what they learnt, and under it what
// that cost, every epsilon with claim, unit and relation in its line.
func Table(w io.Writer, runs []sim.Summary) error {
	classes := slices.ContainsFunc(runs, func(r sim.Summary) bool { return r.Metrics.Accuracy != nil })
	second := "worst distance"
	if classes {
		second = "accuracy"
	}
	rows := [][]string{{"method", "rounds", "validation loss", second, "declined"}}
	for _, r := range runs {
		distance := "-"
		if d := r.Metrics.WorstDistance; d != nil && !classes {
			distance = figure(*d)
		}
		if a := r.Metrics.Accuracy; a != nil {
			distance = fmt.Sprintf("%.1f %%", 100*float64(*a))
		}
		rows = append(rows, []string{
			tableName(r), fmt.Sprint(r.Rounds), figure(r.Metrics.ValidationLoss), distance, fmt.Sprint(r.Privacy.Declined),
		})
	}
	if err := writeRows(w, rows, 1); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return privacyTable(w, runs)
}

func tableName(r sim.Summary) string {
	if r.Mode == "sound" && r.Privacy.NoiseMultiplier > 0 {
		return r.Algorithm + " (sound)"
	}
	return r.Algorithm
}

// privacyTable says what the runs cost. The bounds for other updates and other groups
// stand beside the number that they put into perspective.
func privacyTable(w io.Writer, runs []sim.Summary) error {
	wider := slices.ContainsFunc(runs, func(r sim.Summary) bool { return r.Privacy.EpsilonSwitch != nil })
	head := []string{"privacy", "median eps", "max eps"}
	if wider {
		head = append(head, "any update", "any group")
	}
	rows := [][]string{append(head, "delta", "radius", "claim", "unit", "relation")}
	for _, r := range runs {
		p := r.Privacy
		row := []string{tableName(r), figure(p.MedianEpsilon), figure(p.MaxEpsilon)}
		if wider {
			row = append(row, optional(p.EpsilonAnyUpdate), optional(p.EpsilonSwitch))
		}
		radius := optional(p.Radius)
		if p.Radius == nil && p.Claim == event.ClaimHeuristic && p.Unit == event.UnitNeighbourhood {
			radius = "private"
		}
		rows = append(rows, append(row, figure(p.Delta), radius, string(p.Claim), string(p.Unit), string(p.Relation)))
	}
	if err := writeRows(w, rows, 3); err != nil {
		return err
	}
	if !wider {
		return nil
	}
	_, err := fmt.Fprintln(w, "any update: eps if all updates of the same hypotheses were others; any group: eps if other hypotheses were chosen too.")
	return err
}

// optional is a figure that some runs do not have.
func optional(n *event.Number) string {
	if n == nil {
		return "-"
	}
	return figure(*n)
}

// figure is a number with the digits that a reader needs.
func figure(n event.Number) string {
	x := float64(n)
	switch {
	case math.IsInf(x, 0):
		return "inf"
	case x == 0:
		return "0"
	case math.Abs(x) >= 0.01 && math.Abs(x) < 1000:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3g", x)
}
