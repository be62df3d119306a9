package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/sim"
)

// Table prints runs side by side for a terminal.
func Table(w io.Writer, runs []sim.Summary) error {
	classes := slices.ContainsFunc(runs, func(r sim.Summary) bool { return r.Metrics.Accuracy != nil })
	second := "worst distance"
	if classes {
		second = "accuracy"
	}
	rows := [][]string{{"method", "rounds", "validation loss", second, "median eps", "max eps", "declined", "claim"}}
	for _, r := range runs {
		name := r.Algorithm
		if r.Mode == "sound" && r.Privacy.NoiseMultiplier > 0 {
			name += " (sound)"
		}
		distance := "-"
		if d := r.Metrics.WorstDistance; d != nil && !classes {
			distance = figure(*d)
		}
		if a := r.Metrics.Accuracy; a != nil {
			distance = fmt.Sprintf("%.1f %%", 100*float64(*a))
		}
		rows = append(rows, []string{
			name, fmt.Sprint(r.Rounds), figure(r.Metrics.ValidationLoss), distance,
			figure(r.Privacy.MedianEpsilon), figure(r.Privacy.MaxEpsilon), fmt.Sprint(r.Privacy.Declined), string(r.Privacy.Claim),
		})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 || i == len(row)-1 {
				line.WriteString(cell + pad) // words to the left, figures to the right
			} else {
				line.WriteString(pad + cell)
			}
			line.WriteString("  ")
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// figure is a number with the digits that a reader needs.
func figure(n event.Number) string {
	x := float64(n)
	switch {
	case math.IsInf(x, 0):
		return "inf"
	case x == 0 || (math.Abs(x) >= 0.01 && math.Abs(x) < 1000):
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3g", x)
}
