package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/sim"
)

// SiloTable prints runs on silos side by side for a terminal. What is proved for a
// run's releases, where its own claim is heuristic, has a line of its own.
func SiloTable(w io.Writer, runs []sim.SiloSummary) error {
	rows := [][]string{{"method", "silos", "rounds", "test figure", "epsilon", "delta", "claim", "unit", "relation"}}
	for _, r := range runs {
		figureOf := ""
		switch m := r.Metrics; {
		case m.TestMSE != nil:
			figureOf = fmt.Sprintf("MSE %.5f", float64(*m.TestMSE))
		case m.TestError != nil:
			figureOf = fmt.Sprintf("error %.4f", float64(*m.TestError))
		}
		rows = append(rows, append([]string{r.Algorithm, fmt.Sprint(r.Clients), fmt.Sprint(r.Rounds), figureOf}, siloStatement(r.Privacy.Statement)...))
		if p := r.Privacy.Proved; p != nil {
			rows = append(rows, append([]string{"  the same releases", "", "", ""}, siloStatement(*p)...))
		}
	}
	if err := writeRows(w, rows, 3); err != nil {
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

func siloStatement(s event.Statement) []string {
	return []string{figure(s.Epsilon), figure(s.Delta), string(s.Claim), string(s.Unit), string(s.Relation)}
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
	persons := slices.ContainsFunc(r.Silos, func(s sim.SiloLine) bool { return s.ProtectsPerson != nil })
	head := []string{"silo", "examples", "target", "noise", "test figure", "spent eps", "delta", "proved eps"}
	if persons {
		head = append(head, "a person's eps, delta")
	}
	rows := [][]string{append(head, "claim", "unit", "relation", "sampling")}
	for _, s := range r.Silos {
		proved, test := "-", "-"
		if s.Proved != nil {
			proved = figure(*s.Proved) + " " + string(event.ReplaceOne)
		}
		if f, ok := siloLineFigure(s); ok {
			test = fmt.Sprintf("%.4f", f)
		}
		target := fmt.Sprintf("%.3g, %.3g", float64(s.Target.Epsilon), float64(s.Target.Delta))
		if s.Target.Epsilon == 0 {
			target = "none"
		}
		if s.Target.RecordsPerPerson > 1 {
			target += fmt.Sprintf(" for %d records", s.Target.RecordsPerPerson)
		}
		row := []string{s.Name, fmt.Sprint(s.Examples), target, figure(s.Noise), test, figure(s.Epsilon), figure(s.Delta), proved}
		if persons {
			row = append(row, person(s.ProtectsPerson))
		}
		rows = append(rows, append(row, string(s.Claim), string(s.Unit), s.Relation, s.Sampling))
	}
	return writeRows(w, rows, 4)
}

// person is what is kept by somebody with several records.
func person(t *sim.SiloTarget) string {
	switch {
	case t == nil:
		return "-"
	case t.Delta >= 1:
		return "nothing is promised"
	}
	return fmt.Sprintf("%s, %s", figure(t.Epsilon), figure(t.Delta))
}

// writeRows aligns columns: words, the first column and so many last ones, to the left,
// figures to the right.
func writeRows(w io.Writer, rows [][]string, words int) error {
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
			if i == 0 || i >= len(row)-words {
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
