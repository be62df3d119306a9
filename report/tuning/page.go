// Package tuning makes the page of a sweep: its settings, and what the best one costs by how it was found.
package tuning

import (
	"bytes"
	_ "embed" // the page is part of the binary
	"fmt"
	"io"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/sweep"
)

//go:embed page.gohtml
var pageText string

var pageTemplate = layout.Parse(pageText)

// Made is how a sweep was made.
type Made struct{ Command, Version, Kernel string }

// page is all that the template shows.
type page struct {
	Title, Lead           string
	Charged, ChargedWords string
	Verdict               string
	PriceTable            layout.Table
	Missing               []string // prices that there are none of, and why
	Growth, Figures       []study.Panel
	Caption               string
	Settings              layout.Table
	Label                 layout.Label
	Command               string
	Facts                 []layout.Fact
}

// HTML writes the page of a sweep over a grid as one file that needs nothing else.
func HTML(w io.Writer, r sweep.Result, m Made) error {
	view, err := newPage(r, m)
	if err == nil {
		err = layout.Write(w, pageTemplate, view)
	}
	if err != nil {
		return fmt.Errorf("report: the sweep %q: %w", r.Name, err)
	}
	return nil
}

// WritePage writes the page to a file, whole or not at all.
func WritePage(path string, r sweep.Result, m Made) error {
	var text bytes.Buffer
	if err := HTML(&text, r, m); err != nil {
		return err
	}
	return durable.WriteFile(path, text.Bytes(), 0o644)
}

func newPage(r sweep.Result, m Made) (page, error) {
	best := r.Points[r.Best]
	p := page{
		Title: r.Name, Command: m.Command, PriceTable: priceTable(r), Settings: settingsTable(r), Label: labelOf(r),
		Lead: fmt.Sprintf("%s, %s each. The best is %s, with a %s of %s.", prose.Counted(len(r.Points), "setting", "settings"),
			prose.Counted(r.Seeds, "run", "runs"), settingWords(best.Settings), metricWords(r), prose.Rounded(float64(best.Mean))),
		Caption: fmt.Sprintf("The %s of every setting, mean over %s; lower is better.", metricWords(r), prose.Counted(r.Seeds, "seed", "seeds")),
		Verdict: verdict(r),
		Facts: []layout.Fact{
			{Name: "Runs", Value: prose.Count(r.Runs)}, {Name: "Version", Value: m.Version, Code: true}, {Name: "Kernel", Value: m.Kernel, Code: true},
		},
	}
	if tuned, words, ok := strings.Cut(r.Says[0], "charged: "); ok {
		p.Charged, p.ChargedWords = capital(tuned)+"charged.", capital(words)+"."
	}
	for _, s := range r.Says[1:] {
		if why, ok := strings.CutPrefix(s, "prices: "); ok {
			p.Missing = append(p.Missing, capital(why)+".")
			continue
		}
		p.ChargedWords += " " + capital(s) + "."
	}
	growth, figures := growthChart(r), figureCharts(r)
	panels, err := study.Panels(append(growth, figures...))
	if err != nil {
		return p, err
	}
	p.Growth, p.Figures = panels[:len(growth)], panels[len(growth):]
	return p, nil
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func metricWords(r sweep.Result) string {
	if r.Metric == "error" {
		return "test error"
	}
	return r.Metric
}

// wayWords say what each way is.
var wayWords = map[string]string{
	sweep.WayOne:    "as if the best setting had been known before",
	sweep.WayGrid:   "every run counts as seen: all of them composed",
	sweep.WayRandom: "the best of a secret, random number of runs; of the others nothing is told",
}

// priceTable has every way in a row, with the claim, unit and relation of its epsilon.
func priceTable(r sweep.Result) layout.Table {
	t := layout.Table{ID: "prices-h"}
	column := func(name string, figures bool, cell func(p sweep.Price) layout.Cell) {
		layout.AddColumn(&t, name, figures, r.Prices, cell)
	}
	column("Way to it", false, func(p sweep.Price) layout.Cell {
		words := wayWords[p.Way]
		if p.Pivot {
			words += ", beside one run that is sent and that they follow"
		}
		return layout.Words(capital(p.Way), words)
	})
	column("Runs", true, func(p sweep.Price) layout.Cell {
		c := layout.Words(prose.Rounded(float64(p.Runs)))
		if p.Way == sweep.WayRandom {
			c.Small = []string{"on average"}
		}
		return c
	})
	column("Epsilon", true, func(p sweep.Price) layout.Cell {
		c := layout.Words(prose.Cost(float64(p.Privacy.Epsilon)), layout.TermsOf(p.Privacy))
		c.Strong = true
		return c
	})
	column("Claim", false, func(p sweep.Price) layout.Cell {
		badge := layout.ClaimOf(p.Privacy)
		return layout.Cell{Badge: &badge}
	})
	column("Proved for the same releases", true, func(p sweep.Price) layout.Cell {
		if p.Proved == nil {
			return layout.Cell{}
		}
		return layout.Words(prose.Cost(float64(p.Proved.Epsilon)), layout.Claimed(*p.Proved))
	})
	column("Noise for the target", true, func(p sweep.Price) layout.Cell {
		return layout.Words(prose.Optional(p.Noise, func(n event.Number) string { return prose.Rounded(float64(n)) }))
	})
	return t
}

// verdict is what the best setting costs when its tuning is counted.
func verdict(r sweep.Result) string {
	if len(r.Prices) < 2 {
		return ""
	}
	cost := func(p sweep.Price) string {
		return fmt.Sprintf("epsilon %s (%s)", prose.Cost(float64(p.Privacy.Epsilon)), layout.Claimed(p.Privacy))
	}
	words := fmt.Sprintf("Had it been known, the best setting would cost %s. Found by a grid of %s it costs %s",
		cost(r.Prices[0]), prose.Counted(len(r.Points), "run", "runs"), cost(r.Prices[1]))
	if len(r.Prices) > 2 {
		words += fmt.Sprintf("; by random stopping with as many runs on average, %s", cost(r.Prices[2]))
	}
	return words + "."
}

// labelOf is what is promised: by one run, or by all of them.
func labelOf(r sweep.Result) layout.Label {
	s, p := r.Privacy.Statement, r.Privacy
	l := layout.Label{Method: "One run of the best setting", Claim: layout.ClaimOf(s), NotCovered: s.NotCovered, Unnamed: "The run names nothing. That is unusual: ask."}
	if r.Shared > 0 {
		l.Method = fmt.Sprintf("All %d runs of a seed together", len(r.Points))
	}
	l.Rows = []layout.LabelRow{
		{Name: "Epsilon, most exposed client", Value: prose.Cost(float64(s.Epsilon)), Large: true},
		{Name: "Delta", Value: prose.Rounded(float64(s.Delta))},
		{Name: "Proved for the same releases", Value: provedWords(p.Proved)},
		{Name: "What is protected", Value: layout.Protects(s)},
		{Name: "From whom", Value: layout.FromWhom(s), Note: string(s.Trust)},
		{Name: "Unit", Value: layout.UnitWords(s)},
		{Name: "Relation", Value: layout.RelationWords(s)},
		{Name: "Radius", Value: prose.Optional(s.Radius, func(n event.Number) string { return prose.Rounded(float64(n)) })},
		{Name: "Sampling", Value: s.Sampling},
		{Name: "Assumes", Value: strings.Join(p.Assumes, "; ")},
		{Name: "Good to know", Value: strings.Join(p.Says, "; ")},
	}
	return l
}

func provedWords(s *event.Statement) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("epsilon %s (%s)", prose.Cost(float64(s.Epsilon)), layout.Claimed(*s))
}
