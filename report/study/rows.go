package study

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
)

// section is a table.
type section struct {
	ID, Title, Tally string
	Unit, Note       string // of all rows
	Rows             []shownRow
	HasUnit, HasNote bool
	HasSpread        bool
	HasBars          bool
	Own              bool // there is no paper to compare with
	BarNote          string
}

// Columns is how many the table has.
func (s section) Columns() (n int) {
	for _, has := range []bool{true, !s.Own, true, s.HasSpread, s.HasUnit, s.HasBars, !s.Own} {
		if has {
			n++
		}
	}
	return n
}

type shownRow struct {
	Label, Detail       string // Detail tells rows of one label apart
	Paper, Ours, Spread string
	Bar                 template.HTML
	Unit, Note          string
	Verdict             layout.Badge
}

// The shapes of the verdicts differ without colour: a check in a disc, a
// crossed-out equals sign in a square, a dashed ring, a dash.
const (
	iconAgrees  = `<circle class="fill" cx="12" cy="12" r="10.4"/><path class="check" d="m7 12.3 3.5 3.5 6.6-7.2"/>`
	iconDiffers = `<path class="stroke" d="M4.5 9h15M4.5 15.5h15M17 3.6 7 20.6"/>`
	iconNone    = `<path class="stroke" d="M4.5 12h15"/>`
	iconApart   = `<circle class="stroke" cx="12" cy="12" r="9.2" stroke-dasharray="3.4 4.6"/><path class="stroke" d="M8.6 12h6.8"/>`
)

// verdictBadge is a verdict as a badge; one without a shape of its own counts as none.
func verdictBadge(v Verdict) layout.Badge {
	switch v {
	case Agrees:
		return layout.Badge{Word: string(v), Class: "agrees", Icon: layout.Icon(iconAgrees)}
	case Differs:
		return layout.Badge{Word: string(v), Class: "differs", Icon: layout.Icon(iconDiffers)}
	case NoNumber:
		return layout.Badge{Word: string(v), Class: "apart", Icon: layout.Icon(iconNone)}
	}
	return layout.Badge{Word: cmp.Or(string(v), "no verdict"), Class: "apart", Icon: layout.Icon(iconApart)}
}

// tally is how many rows have a verdict.
type tally struct {
	Count   string
	Verdict layout.Badge
}

// counts are how many rows have which verdict.
type counts struct{ agree, differ, none, apart int }

func countVerdicts(rows []Row) (c counts) {
	for _, r := range rows {
		switch r.Verdict {
		case Agrees:
			c.agree++
		case Differs:
			c.differ++
		case NoNumber:
			c.none++
		default:
			c.apart++
		}
	}
	return c
}

func talliesOf(s Study) []tally {
	if len(s.Rows) == 0 || s.Paper == "" {
		return nil
	}
	c := countVerdicts(s.Rows)
	return []tally{
		{prose.Count(c.agree), verdictBadge(Agrees)}, {prose.Count(c.differ), verdictBadge(Differs)},
		{prose.Count(c.none), verdictBadge(NoNumber)}, {prose.Count(c.apart), verdictBadge(Incomparable)},
	}
}

// summarySentence is the study in a line.
func summarySentence(s Study) string {
	switch {
	case len(s.Rows) == 0:
		return "No figure was measured."
	case s.Paper == "":
		return prose.Counted(len(s.Rows), "figure was", "figures were") + " measured."
	}
	return fmt.Sprintf("Of %s, %s.", prose.Counted(len(s.Rows), "figure", "figures"), countVerdicts(s.Rows).inWords(true))
}

// sectionTally leaves out the verdicts that a section does not have.
func sectionTally(rows []Row, own bool) string {
	if own {
		return prose.Counted(len(rows), "figure", "figures")
	}
	return countVerdicts(rows).inWords(false)
}

// inWords tells the counts; zeros are told of what agrees and differs alone, and if all is.
func (c counts) inWords(all bool) string {
	var parts []string
	if c.agree > 0 || all {
		parts = append(parts, prose.Counted(c.agree, "agrees", "agree")+" with the paper")
	}
	if c.differ > 0 || all {
		parts = append(parts, prose.Counted(c.differ, "differs", "differ"))
	}
	if c.none > 0 {
		parts = append(parts, prose.Counted(c.none, "has", "have")+" no number in the paper")
	}
	if c.apart > 0 {
		parts = append(parts, prose.Count(c.apart)+" cannot be compared")
	}
	return prose.Joined(parts)
}

// longUnit is the length from which a unit that all rows share is told once.
const longUnit = 12

// commons are the note and the long unit that all rows of a section share. They
// are told once above the table; said in every row nobody would read them.
func commons(rows []Row) (unit, note string) {
	if len(rows) < 2 {
		return "", ""
	}
	unit, note = rows[0].Unit, rows[0].note()
	for _, r := range rows {
		if r.Unit != unit {
			unit = ""
		}
		if r.note() != note {
			note = ""
		}
	}
	if utf8.RuneCountInString(unit) <= longUnit {
		unit = ""
	}
	return unit, note
}

// note is what stands beside a row: first the sentence that the verdict is on.
func (r Row) note() string {
	if r.Sentence == "" || r.Note == "" {
		return r.Sentence + r.Note
	}
	return r.Sentence + "; " + r.Note
}

// seeded drops spreads that say nothing: one seed has none.
func seeded(s Study) []Row {
	rows := slices.Clone(s.Rows)
	for i, r := range rows {
		if s.Seeds == 1 && r.Low != nil && r.High != nil && *r.Low == *r.High {
			rows[i].Low, rows[i].High = nil, nil
		}
	}
	return rows
}

// bySection gathers rows in the order in which their sections first appear.
func bySection(rows []Row) (names []string, sections map[string][]Row) {
	sections = map[string][]Row{}
	for _, r := range rows {
		if _, ok := sections[r.Section]; !ok {
			names = append(names, r.Section)
		}
		sections[r.Section] = append(sections[r.Section], r)
	}
	return names, sections
}

func sectionTitle(name string) string {
	if strings.TrimSpace(name) == "" {
		return "Figures"
	}
	return name
}

func sectionsOf(rows []Row, own bool) []section {
	names, gathered := bySection(rows)
	var out []section
	for i, name := range names {
		rows := gathered[name]
		s := section{ID: fmt.Sprintf("section-%d", i+1), Title: sectionTitle(name), Tally: sectionTally(rows, own), Own: own}
		s.Unit, s.Note = commons(rows)
		details, scales := rowDetails(rows), barScales(rows)
		for j, r := range rows {
			f := figuresOf(r)
			row := shownRow{
				Label: r.Label, Detail: details[j], Paper: f.paper, Ours: f.ours, Spread: f.spread,
				Unit: r.Unit, Note: r.note(), Verdict: verdictBadge(r.Verdict), Bar: rangeBar(r, scales[scaleOf(r)]),
			}
			s.HasUnit = s.HasUnit || r.Unit != s.Unit
			s.HasNote = s.HasNote || row.Note != s.Note
			s.HasSpread = s.HasSpread || f.spread != ""
			s.HasBars = s.HasBars || row.Bar != ""
			s.Rows = append(s.Rows, row)
		}
		if s.HasBars {
			s.BarNote = barNote(rows, scales)
		}
		out = append(out, s)
	}
	return out
}

// rowDetails tell apart rows of one label: by metric, and by settings where the
// metric is the same too.
func rowDetails(rows []Row) []string {
	labels, metrics := map[string]map[string]int{}, map[[2]string]int{}
	for _, r := range rows {
		if labels[r.Label] == nil {
			labels[r.Label] = map[string]int{}
		}
		labels[r.Label][r.Metric]++
		metrics[[2]string{r.Label, r.Metric}]++
	}
	out := make([]string, len(rows))
	for i, r := range rows {
		var parts []string
		if len(labels[r.Label]) > 1 && r.Metric != "" {
			parts = append(parts, r.Metric)
		}
		if metrics[[2]string{r.Label, r.Metric}] > 1 {
			for _, key := range slices.Sorted(maps.Keys(r.Settings)) {
				parts = append(parts, fmt.Sprintf("%s = %v", key, r.Settings[key]))
			}
		}
		out[i] = strings.Join(parts, ", ")
	}
	return out
}
