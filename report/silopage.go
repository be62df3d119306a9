package report

import (
	"bytes"
	_ "embed" // the page is part of the binary
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

//go:embed silo.gohtml
var siloText string

var siloTemplate = layout.Parse(siloText)

// siloPage is all that the silo template shows.
type siloPage struct {
	Title, Lead, Figure string
	Several             bool
	Summary             []siloSummaryRow
	Rows                []vectorRow
	Labels              []layout.Label
	Tables              []siloLines
	Runs                []runNote
}

type siloSummaryRow struct {
	Method                                        string
	Claim                                         layout.Badge
	Terms, ProvedTerms                            string // of the row's epsilons
	Figure, Epsilon, Delta, Proved, Silos, Rounds string
}

type siloLines struct {
	ID, Method string
	Clusters   bool
	Lines      []siloLine
}

type siloLine struct {
	Cluster, Name, Examples, Target, Noise, Epsilon, Proved, Sampling, Figure string
	Terms, ProvedTerms, Person                                                string // beside the epsilons
}

// SiloHTML writes the report of one run on silos, or of several side by side, as
// HTML does for the other family.
func SiloHTML(w io.Writer, title string, results []sim.SiloResult) error {
	if len(results) == 0 {
		return errors.New("report: there is no result to show; finish a run first")
	}
	var page bytes.Buffer
	if err := siloTemplate.Execute(&page, newSiloPage(title, results)); err != nil {
		return fmt.Errorf("report: filling the page: %w", err)
	}
	if _, err := w.Write(page.Bytes()); err != nil {
		return fmt.Errorf("report: writing the page: %w", err)
	}
	return nil
}

// SiloPage writes one report about several finished runs on silos to a file.
func SiloPage(path, title string, results []sim.SiloResult) error {
	var page bytes.Buffer
	if err := SiloHTML(&page, title, results); err != nil {
		return err
	}
	return sim.WriteFile(path, page.Bytes())
}

func newSiloPage(title string, results []sim.SiloResult) siloPage {
	p := siloPage{Title: title, Several: len(results) > 1, Figure: siloFigureName(results[0].Metrics)}
	names := make([]string, len(results))
	for i, r := range results {
		names[i] = prose.Method(r.Algorithm)
		p.Summary = append(p.Summary, newSiloSummaryRow(names[i], r.SiloSummary))
		p.Rows = append(p.Rows, siloFigures(fmt.Sprintf("silo-%d", i+1), names[i], r))
		p.Labels = append(p.Labels, siloLabel(names[i], r.SiloSummary))
		p.Tables = append(p.Tables, siloLinesOf(fmt.Sprintf("silos-%d", i+1), names[i], r.SiloSummary))
		p.Runs = append(p.Runs, siloRunNote(names[i], r))
	}
	r := results[0]
	p.Lead = fmt.Sprintf("%s: %s, %s, every silo with a privacy target of its own.", prose.Joined(names),
		prose.Counted(r.Clients, "silo", "silos"), prose.Counted(r.Parameters, "parameter", "parameters"))
	return p
}

// siloFigureName says what a run's test figure is.
func siloFigureName(m sim.SiloMetrics) string {
	if m.TestError != nil {
		return "Test error"
	}
	return "Test MSE"
}

func siloFigureOf(m sim.SiloMetrics) float64 {
	switch {
	case m.TestMSE != nil:
		return float64(*m.TestMSE)
	case m.TestError != nil:
		return float64(*m.TestError)
	}
	return float64(m.TestLoss)
}

func siloClaim(p fl.SiloPrivacy) layout.Badge {
	c := layout.ClaimOf(p.Statement)
	if c.Class == "heuristic" {
		c.Sentence = "A number that no proof covers: what was done to the examples beforehand is not accounted for, or batches of a random order are accounted as if every example were drawn by itself. What is left out stands below."
		if p.Proved != nil {
			c.Sentence = "The papers’ number: batches of a random order are accounted as if every example were drawn by itself. No proof covers that; the proved number stands beside it."
		}
	}
	return c
}

// provedWords is what is proved where no number of its own stands beside the claim's:
// the same, or nothing.
func provedWords(c event.Claim) string {
	if c == event.ClaimProved {
		return "the same"
	}
	return "nothing"
}

func newSiloSummaryRow(name string, r sim.SiloSummary) siloSummaryRow {
	row := siloSummaryRow{
		Method: name, Claim: siloClaim(r.Privacy), Figure: prose.Significant(siloFigureOf(r.Metrics), 4),
		Epsilon: prose.Cost(float64(r.Privacy.Epsilon)), Delta: prose.Rounded(float64(r.Privacy.Delta)), Proved: provedWords(r.Privacy.Claim),
		Silos: prose.Count(r.Clients), Rounds: prose.Count(r.Rounds), Terms: layout.TermsOf(r.Privacy.Statement),
	}
	if p := r.Privacy.Proved; p != nil {
		row.Proved, row.ProvedTerms = prose.Cost(float64(p.Epsilon)), layout.TermsOf(*p)
	}
	return row
}

func siloLabel(name string, r sim.SiloSummary) layout.Label {
	s := r.Privacy.Statement
	l := layout.Label{Method: name, Claim: siloClaim(r.Privacy), NotCovered: s.NotCovered}
	l.Rows = []layout.LabelRow{
		{Name: "What is protected", Value: layout.Protects(s)},
		{Name: "From whom", Value: layout.FromWhom(s), Note: string(s.Trust)},
		{Name: "Epsilon, most exposed silo", Value: prose.Cost(float64(s.Epsilon)), Large: true},
	}
	if p := r.Privacy.Proved; p != nil {
		l.Rows = append(l.Rows, layout.LabelRow{Name: "Proved for the same releases", Value: "epsilon " + prose.Cost(float64(p.Epsilon)),
			Note: layout.RelationWords(*p) + "; every epoch counts as a release of its own"})
	}
	l.Rows = append(l.Rows,
		layout.LabelRow{Name: "Delta", Value: prose.Rounded(float64(s.Delta))},
		layout.LabelRow{Name: "Unit", Value: layout.UnitWords(s)},
		layout.LabelRow{Name: "Relation", Value: layout.RelationWords(s)},
		layout.LabelRow{Name: "Batches", Value: s.Sampling},
		layout.LabelRow{Name: "Assumes", Value: strings.Join(r.Privacy.Assumes, "; ")},
		layout.LabelRow{Name: "Good to know", Value: strings.Join(r.Privacy.Says, "; ")},
	)
	return l
}

func siloLinesOf(id, name string, r sim.SiloSummary) siloLines {
	t := siloLines{ID: id, Method: name, Clusters: r.Clusters > 1}
	for _, s := range r.Silos {
		line := siloLine{
			Name: s.Name, Examples: prose.Count(s.Examples), Noise: prose.Rounded(float64(s.Noise)), Epsilon: prose.Cost(float64(s.Epsilon)),
			Target: fmt.Sprintf("%s, %s", prose.Rounded(float64(s.Target.Epsilon)), prose.Rounded(float64(s.Target.Delta))),
			Proved: provedWords(s.Claim), Terms: fmt.Sprintf("%s, %s, %s", s.Claim, s.Unit, s.Relation), Sampling: s.Sampling, Figure: "unknown",
		}
		if s.Target.Epsilon == 0 {
			line.Target = "none"
		}
		if p := s.ProtectsPerson; p != nil {
			line.Person = "a person: " + person(p)
		}
		if s.Target.RecordsPerPerson > 1 {
			line.Target += fmt.Sprintf(" for %d records", s.Target.RecordsPerPerson)
		}
		if !s.Comparable {
			line.Name += " *"
		}
		if s.Proved != nil {
			line.Proved, line.ProvedTerms = prose.Cost(float64(*s.Proved)), fmt.Sprintf("%s, %s, %s", event.ClaimProved, s.Unit, event.ReplaceOne)
		}
		if s.Cluster != nil {
			line.Cluster = prose.Count(*s.Cluster + 1)
		}
		if f, ok := siloLineFigure(s); ok {
			line.Figure = prose.Rounded(f)
		}
		t.Lines = append(t.Lines, line)
	}
	return t
}

func siloLineFigure(s sim.SiloLine) (float64, bool) {
	switch {
	case s.TestMSE != nil:
		return float64(*s.TestMSE), true
	case s.TestError != nil:
		return float64(*s.TestError), true
	}
	return 0, false
}

func siloRunNote(name string, r sim.SiloResult) runNote {
	return runNote{Method: name, Command: r.Command, Config: r.Config, Facts: []layout.Fact{
		{Name: "Seed", Value: fmt.Sprint(r.Seed), Code: true},
		{Name: "Configuration, SHA-256", Value: r.ConfigSHA256, Code: true},
		{Name: "Models, SHA-256", Value: r.ModelSHA256, Code: true},
		{Name: "Kernel", Value: r.Kernel, Code: true},
		{Name: "Version", Value: r.Version, Code: true},
		{Name: "Run", Value: r.RunID, Code: true},
		{Name: "Took", Value: prose.Rounded(r.WallSeconds) + " s", Code: false},
	}}
}
