package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/coterie-fl/coterie/sim"
)

// SiloTable prints runs on silos side by side for a terminal.
func SiloTable(w io.Writer, runs []sim.SiloSummary) error {
	rows := [][]string{{"method", "silos", "rounds", "test figure", "epsilon", "delta", "proved", "claim"}}
	for _, r := range runs {
		figureOf, proved := "", "-"
		switch m := r.Metrics; {
		case m.TestMSE != nil:
			figureOf = fmt.Sprintf("MSE %.5f", float64(*m.TestMSE))
		case m.TestError != nil:
			figureOf = fmt.Sprintf("error %.4f", float64(*m.TestError))
		}
		if p := r.Privacy.Proved; p != nil {
			proved = figure(p.Epsilon)
		}
		rows = append(rows, []string{
			r.Algorithm, fmt.Sprint(r.Clients), fmt.Sprint(r.Rounds), figureOf,
			figure(r.Privacy.Epsilon), figure(r.Privacy.Delta), proved, string(r.Privacy.Claim),
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
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
			line.WriteString("  ")
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return notLoaded(w, runs)
}

// notLoaded says what loaders left out, once for runs on the same data.
func notLoaded(w io.Writer, runs []sim.SiloSummary) error {
	said := ""
	for _, r := range runs {
		if r.Data == nil || len(r.Data.LeftOut) == 0 && len(r.Data.Notes) == 0 || r.Data.String() == said {
			continue
		}
		said = r.Data.String()
		if _, err := fmt.Fprintln(w, said); err != nil {
			return err
		}
	}
	return nil
}
