package study

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coterie-fl/coterie/report/prose"
)

// Widths of the table on a terminal.
const (
	terminalWidth = 120
	widestLabel   = 44
	widestUnit    = 18
	widestVerdict = 22
)

// Table prints a study for a terminal, at most 120 columns wide: what to
// know before, a table for every section with notes below their rows, and how
// many figures agree.
func Table(w io.Writer, s Study) error {
	var b strings.Builder
	paragraph(&b, "", s.Title)
	paragraph(&b, "", s.Paper)
	paragraph(&b, "", fmt.Sprintf("scale %s, %s, %s", cmp.Or(s.Scale, "not stated"), prose.Counted(s.Seeds, "seed", "seeds"), duration(s.Seconds)))
	for _, c := range s.Caveats {
		paragraph(&b, "! ", c)
	}
	names, sections := bySection(seeded(s))
	widths := terminalWidths(names, sections)
	for _, name := range names {
		b.WriteByte('\n')
		paragraph(&b, "", sectionTitle(name))
		rows := sections[name]
		unit, note := commons(rows)
		if unit != "" {
			paragraph(&b, "    ", "in "+unit)
		}
		paragraph(&b, "    ", note)
		writeLine(&b, []string{"", "paper", "ours", "spread", "unit", "verdict"}, widths)
		details := rowDetails(rows)
		for i, r := range rows {
			r = without(r, unit, note)
			if i+1 < len(rows) && rows[i+1].Label == r.Label && rows[i+1].note() == r.note() {
				r.Note, r.Sentence = "", "" // follows the last row of the same label
			}
			writeRow(&b, r, details[i], widths)
		}
	}
	for i, d := range differingOf(s) {
		if i == 0 {
			b.WriteString("\nWhat differs, and why\n")
		}
		for _, r := range d.Rows {
			paragraph(&b, "- ", plainInfinity(r.What+": "+r.Figures+"."))
		}
		paragraph(&b, "  ", d.Why)
	}
	b.WriteByte('\n')
	paragraph(&b, "", summarySentence(s))
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("report: printing the study %q: %w", s.ID, err)
	}
	return nil
}

// without drops what was told above the table.
func without(r Row, unit, note string) Row {
	if unit != "" {
		r.Unit = ""
	}
	if note != "" {
		r.Note, r.Sentence = "", ""
	}
	return r
}

// terminalCells are a row's columns: label, paper, ours, spread, unit, verdict.
func terminalCells(r Row, detail string) []string {
	label := oneLine(r.Label)
	if detail != "" {
		label += " (" + oneLine(detail) + ")"
	}
	f := figuresOf(r)
	return []string{label, plainInfinity(f.paper), plainInfinity(f.ours), plainInfinity(f.spread),
		oneLine(r.Unit), oneLine(verdictBadge(r.Verdict).Word)}
}

// terminalWidths are the same for all sections, so that columns stand below one
// another. Nothing is cut: words wrap, and labels take the room that is left.
func terminalWidths(names []string, sections map[string][]Row) []int {
	widths := []int{8, len("paper"), len("ours"), len("spread"), len("unit"), len("verdict")}
	for _, name := range names {
		details := rowDetails(sections[name])
		unit, note := commons(sections[name])
		for i, r := range sections[name] {
			for j, cell := range terminalCells(without(r, unit, note), details[i]) {
				widths[j] = max(widths[j], utf8.RuneCountInString(cell))
			}
		}
	}
	widths[4], widths[5] = min(widths[4], widestUnit), min(widths[5], widestVerdict)
	rest := terminalWidth - 2*(len(widths)-1)
	for _, n := range widths[1:] {
		rest -= n
	}
	widths[0] = max(8, min(widths[0], widestLabel, rest))
	return widths
}

func writeRow(b *strings.Builder, r Row, detail string, widths []int) {
	cells := terminalCells(r, detail)
	lines := make([][]string, len(cells))
	most := 1
	for i, cell := range cells {
		lines[i] = []string{cell}
		if i == 0 || i >= 4 {
			lines[i] = wrapped(cell, widths[i])
		}
		most = max(most, len(lines[i]))
	}
	for n := range most {
		for i := range cells {
			cells[i] = ""
			if n < len(lines[i]) {
				cells[i] = lines[i][n]
			}
		}
		writeLine(b, cells, widths)
	}
	if note := oneLine(r.note()); note != "" {
		paragraph(b, "    ", note)
	}
}

// writeLine puts words to the left and figures to the right.
func writeLine(b *strings.Builder, cells []string, widths []int) {
	var line strings.Builder
	for i, cell := range cells {
		pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
		if i == 0 || i >= 4 {
			line.WriteString(cell + pad + "  ")
		} else {
			line.WriteString(pad + cell + "  ")
		}
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// paragraph wraps text to the terminal; the prefix marks its first line.
func paragraph(b *strings.Builder, prefix, text string) {
	text = oneLine(text)
	if text == "" {
		return
	}
	for _, l := range wrapped(text, terminalWidth-utf8.RuneCountInString(prefix)) {
		b.WriteString(prefix + l + "\n")
		prefix = strings.Repeat(" ", utf8.RuneCountInString(prefix))
	}
}

// wrapped breaks text between words, and a word only if it is too long for a line.
func wrapped(text string, width int) []string {
	lines, line := []string{}, ""
	for _, word := range strings.Fields(text) {
		for utf8.RuneCountInString(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			runes := []rune(word)
			lines, word = append(lines, string(runes[:width])), string(runes[width:])
		}
		switch {
		case word == "":
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// oneLine keeps text from steering the terminal.
func oneLine(s string) string {
	clean := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Join(strings.Fields(clean), " ")
}

// plainInfinity is how the other tables write it.
func plainInfinity(s string) string { return strings.ReplaceAll(s, "∞", "inf") }
