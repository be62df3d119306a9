package report

import (
	"bytes"
	_ "embed" // the page is part of the binary
	"errors"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/sim"
)

//go:embed silo.gohtml
var siloText string

var siloTemplate = template.Must(template.Must(pageTemplate.Clone()).New("silos").Parse(siloText))

// siloPage is all that the silo template shows.
type siloPage struct {
	Title, Lead, Figure string
	Style               template.CSS
	Several             bool
	Summary             []siloSummaryRow
	Rows                []vectorRow
	Labels              []label
	Tables              []siloLines
	Runs                []runNote
}

type siloSummaryRow struct {
	Method                                        string
	Claim                                         claim
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
	p := siloPage{Title: title, Style: template.CSS(styleText), Several: len(results) > 1, Figure: siloFigureName(results[0].Metrics)}
	names := make([]string, len(results))
	for i, r := range results {
		names[i] = siloMethod(r.SiloSummary)
		p.Summary = append(p.Summary, newSiloSummaryRow(names[i], r.SiloSummary))
		p.Rows = append(p.Rows, siloFigures(fmt.Sprintf("silo-%d", i+1), names[i], r))
		p.Labels = append(p.Labels, siloLabel(names[i], r.SiloSummary))
		p.Tables = append(p.Tables, siloLinesOf(fmt.Sprintf("silos-%d", i+1), names[i], r.SiloSummary))
		p.Runs = append(p.Runs, siloRunNote(names[i], r))
	}
	r := results[0]
	p.Lead = fmt.Sprintf("%s: %s, %s, every silo with a privacy target of its own.", joined(names),
		counted(r.Clients, "silo", "silos"), counted(r.Parameters, "parameter", "parameters"))
	return p
}

// siloMethods are the methods' names for readers.
var siloMethods = map[string]string{
	"local": "Local training", "fedavg": "FedAvg", "finetune": "Local fine-tuning", "ditto": "Ditto", "mocha": "Mocha",
	"ifca": "IFCA", "mr-mtl": "MR-MTL", "dp-fedavg": "DP-FedAvg (whole silos)",
}

func siloMethod(r sim.SiloSummary) string {
	if name, ok := siloMethods[r.Algorithm]; ok {
		return name
	}
	return r.Algorithm
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

func siloClaim(p fl.SiloPrivacy) claim {
	c := claimOf(sim.Result{Summary: sim.Summary{Privacy: fl.Privacy{Statement: p.Statement}}})
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
		Method: name, Claim: siloClaim(r.Privacy), Figure: significant(siloFigureOf(r.Metrics), 4),
		Epsilon: cost(float64(r.Privacy.Epsilon)), Delta: rounded(float64(r.Privacy.Delta)), Proved: provedWords(r.Privacy.Claim),
		Silos: count(r.Clients), Rounds: count(r.Rounds), Terms: termsOf(r.Privacy.Statement),
	}
	if p := r.Privacy.Proved; p != nil {
		row.Proved, row.ProvedTerms = cost(float64(p.Epsilon)), termsOf(*p)
	}
	return row
}

func siloLabel(name string, r sim.SiloSummary) label {
	s := r.Privacy.Statement
	l := label{Method: name, Claim: siloClaim(r.Privacy), NotCovered: s.NotCovered}
	l.Rows = []labelRow{
		{Name: "What is protected", Value: protects(s)},
		{Name: "From whom", Value: fromWhom(s), Note: string(s.Trust)},
		{Name: "Epsilon, most exposed silo", Value: cost(float64(s.Epsilon)), Large: true},
	}
	if p := r.Privacy.Proved; p != nil {
		l.Rows = append(l.Rows, labelRow{Name: "Proved for the same releases", Value: "epsilon " + cost(float64(p.Epsilon)),
			Note: relationWords(*p) + "; every epoch counts as a release of its own"})
	}
	l.Rows = append(l.Rows,
		labelRow{Name: "Delta", Value: rounded(float64(s.Delta))},
		labelRow{Name: "Unit", Value: unitWords(s)},
		labelRow{Name: "Relation", Value: relationWords(s)},
		labelRow{Name: "Batches", Value: s.Sampling},
		labelRow{Name: "Assumes", Value: strings.Join(r.Privacy.Assumes, "; ")},
		labelRow{Name: "Good to know", Value: strings.Join(r.Privacy.Says, "; ")},
	)
	return l
}

func siloLinesOf(id, name string, r sim.SiloSummary) siloLines {
	t := siloLines{ID: id, Method: name, Clusters: r.Clusters > 1}
	for _, s := range r.Silos {
		line := siloLine{
			Name: s.Name, Examples: count(s.Examples), Noise: rounded(float64(s.Noise)), Epsilon: cost(float64(s.Epsilon)),
			Target: fmt.Sprintf("%s, %s", rounded(float64(s.Target.Epsilon)), rounded(float64(s.Target.Delta))),
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
			line.Proved, line.ProvedTerms = cost(float64(*s.Proved)), fmt.Sprintf("%s, %s, %s", event.ClaimProved, s.Unit, event.ReplaceOne)
		}
		if s.Cluster != nil {
			line.Cluster = count(*s.Cluster + 1)
		}
		if f, ok := siloLineFigure(s); ok {
			line.Figure = rounded(f)
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
	return runNote{Method: name, Command: r.Command, Config: r.Config, Facts: []fact{
		{"Seed", fmt.Sprint(r.Seed), true},
		{"Configuration, SHA-256", r.ConfigSHA256, true},
		{"Models, SHA-256", r.ModelSHA256, true},
		{"Kernel", r.Kernel, true},
		{"Version", r.Version, true},
		{"Run", r.RunID, true},
		{"Took", rounded(r.WallSeconds) + " s", false},
	}}
}
