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
	if err := writeRows(w, rows); err != nil {
		return err
	}
	for _, r := range runs {
		if text := siloClusters(r); text != "" {
			if _, err := fmt.Fprintf(w, "%s: %s\n", r.Algorithm, text); err != nil {
				return err
			}
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

// SiloLines prints what every silo asked for, did and spent.
func SiloLines(w io.Writer, r sim.SiloSummary) error {
	rows := [][]string{{"silo", "examples", "target", "noise", "spent", "proved", "test figure", "relation", "sampling"}}
	for _, s := range r.Silos {
		proved, test := "-", "-"
		if s.Proved != nil {
			proved = figure(*s.Proved)
		}
		if f, ok := siloLineFigure(s); ok {
			test = fmt.Sprintf("%.4f", f)
		}
		target := fmt.Sprintf("%.3g, %.3g", float64(s.Target.Epsilon), float64(s.Target.Delta))
		if s.Target.RecordsPerPerson > 1 {
			target += fmt.Sprintf(" for %d records", s.Target.RecordsPerPerson)
		}
		rows = append(rows, []string{
			s.Name, fmt.Sprint(s.Examples), target, figure(s.Noise), figure(s.Epsilon), proved, test, s.Relation, s.Sampling,
		})
	}
	return writeRows(w, rows)
}

// writeRows aligns columns: the first and the last to the left, figures to the right.
func writeRows(w io.Writer, rows [][]string) error {
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
	return nil
}
