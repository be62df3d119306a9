package live

import (
	_ "embed" // the parts of the page
	"fmt"
	"html/template"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/sim"
)

//go:embed parts.gohtml
var partsText string

var (
	standTemplate  = parsed(partsText + `{{template "stand" .}}`)
	curvesTemplate = parsed(partsText + `{{template "curves" .}}`)
	metersTemplate = parsed(partsText + `{{template "meters" .}}`)
	tableTemplate  = parsed(partsText + `{{template "tabled" .}}`)
	labelTemplate  = parsed(partsText + `{{template "labelled" .}}`)
	textTemplate   = parsed(partsText + `{{template "text" .}}`)
)

// stand is how a thing stands: the first part of its view.
type stand struct {
	State state
	Words string
	Meter *meter
	Facts []layout.Fact
	Links []Link
	Again string // the command that goes on
	Note  string
}

// curves are pictures under a heading.
type curves struct {
	ID, Name, Note string
	Only           bool // known in simulation only
	Panels         []study.Panel
	Map            template.HTML
	MapNote        string
}

// metered is a bar with its name, or several under one.
type metered struct {
	Name, Value, Note string
	Meter             *meter
	Bars              []metered
}

// meters are bars under a heading.
type meters struct {
	ID, Name, Note string
	Bars           []metered
}

// tabled is a table under a heading.
type tabled struct {
	Name, Note string
	Only       bool
	Table      layout.Table
}

// text is something long that is folded away.
type text struct{ ID, Name, Text string }

// parts collects a view's parts; the first fault ends it.
type parts struct {
	list []Part
	err  error
}

func (p *parts) add(id string, t func() *template.Template, view any) {
	if p.err != nil {
		return
	}
	one, err := fill(id, t, view)
	if p.err = err; err == nil {
		p.list = append(p.list, one)
	}
}

// runView is one run.
func (f *Folder) runView(t thing) (View, error) {
	s, err := f.gather(t)
	if err != nil {
		return View{}, err
	}
	v := View{Title: s.name, Lead: t.id}
	if t.id == "." {
		v.Lead = f.path
	}
	v.Status = s.name + ": " + s.state.Word
	if s.state == running {
		v.Status += "."
	} else {
		v.Status += ", " + s.words + "."
	}
	one := stand{State: s.state, Words: s.words, Meter: s.meter, Facts: s.facts()}
	if f.hasReport(t) {
		one.Links = append(one.Links, Link{"Open its report", to(reportPath, t)})
	}
	if s.state == stopped || s.state == silent {
		one.Again = "coterie run --resume " + prose.ShellWord(f.where(t))
	}
	var p parts
	p.add("stand", standTemplate, one)
	panels, err := s.drawn(s.charts())
	if err != nil {
		return View{}, err
	}
	if drawn := s.clusterMap(); len(panels) > 0 || drawn != "" {
		one := curves{ID: "curves-h", Name: "Curves", Only: true, Panels: panels, Map: drawn,
			MapNote: "First two parameters of every model, from the first round (line) to now (ring)."}
		if slices.ContainsFunc(s.curves, func(c curve) bool { return len(c.spreads)+len(c.errors) > 0 }) {
			one.Note = "Bands and bars are 95 % intervals over those who judge."
		}
		p.add("curves", curvesTemplate, one)
	}
	if bars := s.budgets(); len(bars.Bars) > 0 {
		p.add("budgets", metersTemplate, bars)
	}
	if s.summary != nil {
		if table := figuresOf(s.summary.Metrics); len(table.Rows) > 0 {
			p.add("figures", tableTemplate, tabled{Name: "Figures", Note: "Of the returned models, by the run’s judge, with 95 % intervals.", Only: true, Table: table})
		}
	}
	if len(s.people) > 0 {
		p.add("people", tableTemplate, s.participants())
	}
	if s.summary != nil {
		p.add("label", labelTemplate, s.label())
	}
	if file, err := f.readFile(t, sim.RunFile); err == nil {
		p.add("file", textTemplate, text{"run-file", "The run file, with every default", string(file)})
	}
	v.Parts = p.list
	return v, p.err
}

// facts are what a run is made of.
func (s shownRun) facts() (facts []layout.Fact) {
	add := func(name, value string) { facts = append(facts, layout.Fact{Name: name, Value: value}) }
	if s.known {
		add("Method", prose.Method(s.run.Algorithm.Kind))
		add("Data", s.run.Data.Kind)
		add("Protects", s.run.Privacy.Protects)
		add("Seed", fmt.Sprint(s.run.Seed))
	}
	if s.seconds > 0 {
		add("Time spent", duration(s.seconds))
	}
	if s.declined > 0 {
		add("Requests declined", prose.Count(s.declined))
	}
	if r := s.summary; r != nil {
		add("Rounds", prose.Count(r.Rounds))
		add("Ended by", r.Stopped)
		add("Clients", prose.Count(r.Clients))
		add("Parameters", prose.Count(r.Parameters))
	}
	return facts
}

// drawn are charts, and that of the clusters' sizes. It is drawn first, so that clusters have
// the colours that the map gives them, and stands last, beside it.
func (s shownRun) drawn(charts []study.Chart) ([]study.Panel, error) {
	sizes := s.sizes()
	if len(sizes.Series) < 2 {
		return study.Panels(charts)
	}
	drawn, err := study.Panels(append([]study.Chart{sizes}, charts...))
	if err != nil {
		return nil, err
	}
	return append(drawn[1:], drawn[0]), nil
}

// perRound makes a series of a figure of each record.
func (c curve) perRound(at func(sim.RoundRecord) *event.Number, spread map[int][2]float64) study.Series {
	out := study.Series{Name: prose.Method(c.method)}
	for _, r := range c.records {
		v := at(r)
		if v == nil || !chart.Drawable(float64(*v)) {
			continue
		}
		p := study.Point{X: float64(r.Round), Y: float64(*v), Low: float64(*v), High: float64(*v)}
		if s, ok := spread[r.Round]; ok && chart.Drawable(s[0]) && chart.Drawable(s[1]) && s[0] <= s[1] {
			p.Low, p.High = s[0], s[1]
		}
		out.Points = append(out.Points, p)
	}
	return out
}

// charts are the run's figures over its rounds. One colour is one method.
func (s shownRun) charts() (out []study.Chart) {
	add := func(title, y, note string, of func(c curve) study.Series) {
		one := study.Chart{Title: title, XTitle: "round", YTitle: y, Note: note}
		for _, c := range s.curves {
			if series := of(c); len(series.Points) > 0 {
				one.Series = append(one.Series, series)
			}
		}
		if len(one.Series) > 0 {
			out = append(out, one)
		}
	}
	add("Loss, by the judge", "loss", "", func(c curve) study.Series {
		return c.perRound(func(r sim.RoundRecord) *event.Number { return &r.Loss }, c.spreads)
	})
	add("Share of wrong answers", "error", "", func(c curve) study.Series {
		return c.perRound(func(r sim.RoundRecord) *event.Number { return r.Error }, c.errors)
	})
	if terms := s.terms(); terms != "" {
		note := "Of the participant that is most exposed: " + terms + "."
		add("Epsilon spent", "total epsilon", note, func(c curve) study.Series {
			return c.perRound(func(r sim.RoundRecord) *event.Number {
				if r.Max != nil {
					return r.Max
				}
				return r.Epsilon
			}, nil)
		})
	}
	add("Lambda, set by the server", "median lambda", "", func(c curve) study.Series {
		return c.perRound(func(r sim.RoundRecord) *event.Number { return r.Lambda }, nil)
	})
	return out
}

// terms are what the run's epsilon depends on; empty: there is none.
func (s shownRun) terms() string {
	if s.privacy == nil || s.privacy.Claim == event.ClaimNone {
		return ""
	}
	return layout.Claimed(*s.privacy)
}

// sizes are how many releases fell into each cluster, round by round.
func (s shownRun) sizes() study.Chart {
	c := study.Chart{Title: "Releases in every cluster", XTitle: "round", YTitle: "releases"}
	for _, r := range s.curves[0].records {
		for j, n := range r.Sizes[:min(len(r.Sizes), chart.MostNumbered)] {
			for len(c.Series) <= j {
				c.Series = append(c.Series, study.Series{Name: fmt.Sprintf("cluster %d", len(c.Series)+1)})
			}
			c.Series[j].Points = append(c.Series[j].Points, study.Point{X: float64(r.Round), Y: float64(n), Low: float64(n), High: float64(n)})
		}
	}
	return c
}

// clusterMap draws the way of every model, and where it is now.
func (s shownRun) clusterMap() template.HTML {
	records := s.curves[0].records
	if len(records) == 0 || len(records[0].Hypotheses) < 2 {
		return ""
	}
	ways := make([][]chart.Point, len(records[0].Hypotheses))
	x, y := chart.NoDomain(), chart.NoDomain()
	for _, r := range records {
		for j, at := range r.Hypotheses[:min(len(ways), len(r.Hypotheses))] {
			if chart.Drawable(at[0]) && chart.Drawable(at[1]) {
				ways[j] = append(ways[j], chart.Point{X: at[0], Y: at[1]})
				x, y = x.Include(at[0]), y.Include(at[1])
			}
		}
	}
	if x.Empty() {
		return ""
	}
	var out chart.Canvas
	ax := chart.NewAxis(x.Wide().Padded(0.1), chart.Real, chart.PlotLeft, chart.PlotRight, 6)
	ay := chart.NewAxis(y.Wide().Padded(0.1), chart.Real, chart.PlotBottom, chart.PlotTop, 5)
	out.Frame(ax, ay, "first parameter", "second parameter")
	places := make([]chart.Point, len(ways))
	for j, way := range ways {
		places[j] = chart.Point{X: math.NaN(), Y: math.NaN()}
		if n := len(way); n > 0 {
			places[j] = chart.Place(way[n-1], ax, ay)
			stride := max(1, n/400)
			thin := []chart.Point{}
			for i := 0; i < n; i += stride {
				thin = append(thin, way[i])
			}
			out.Path("way "+chart.ColourClass(j), chart.Polyline(append(thin, way[n-1]), ax, ay))
		}
	}
	out.HypothesisMarks(places)
	return out.SVG("clusters-map", "Clusters forming", fmt.Sprintf("Where %s are, by their first two parameters.", prose.Counted(len(ways), "model", "models")))
}

// mostBars keeps a list of bars readable.
const mostBars = 12

// budgets are what was spent against what may be.
func (s shownRun) budgets() meters {
	m := meters{ID: "budgets-h", Name: "Budgets"}
	if s.privacy == nil || s.privacy.Claim == event.ClaimNone {
		return m
	}
	bar := func(name string, spent, ceiling event.Number, note string) {
		e, c := float64(spent), float64(ceiling)
		value := prose.Cost(e)
		var b *meter
		if c > 0 {
			value += " of " + prose.Cost(c)
			b = newMeter(e, c, fmt.Sprintf("epsilon %s of %s", prose.Cost(e), prose.Cost(c)))
		}
		m.Bars = append(m.Bars, metered{Name: name, Value: value, Note: note, Meter: b})
	}
	targets := 0
	for _, p := range s.people {
		if p.Target.Epsilon > 0 {
			targets++
		}
	}
	if targets == 0 {
		ceiling := event.Number(0)
		if s.ceiling != nil {
			ceiling = *s.ceiling
		}
		bar("Most exposed participant", s.privacy.Epsilon, ceiling, layout.Claimed(*s.privacy))
		if ceiling == 0 {
			m.Note = "The run file sets no ceiling."
		}
		return m
	}
	people := slices.Clone(s.people)
	slices.SortStableFunc(people, func(a, b sim.Line) int { return compareShares(b, a) })
	for _, p := range people[:min(len(people), mostBars)] {
		bar(p.Name, p.Epsilon, p.Target.Epsilon, fmt.Sprintf("%s, unit %s, relation %s, delta %s", p.Claim, p.Unit, p.Relation, prose.Rounded(float64(p.Delta))))
	}
	m.Note = "Spent of every participant’s own target."
	if len(people) > mostBars {
		m.Note = fmt.Sprintf("Spent of every participant’s own target: the %d that have used most of it, of %s.", mostBars, prose.Count(len(people)))
	}
	return m
}

func compareShares(a, b sim.Line) int {
	x, y := float64(a.Epsilon/max(1e-300, a.Target.Epsilon)), float64(b.Epsilon/max(1e-300, b.Target.Epsilon))
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// figuresOf are the returned models' figures.
func figuresOf(m sim.Metrics) layout.Table {
	t := layout.Table{ID: "figures-h", Columns: []layout.Column{{Name: "Figure"}, {Name: "Value", Figures: true}, {Name: "From", Figures: true}, {Name: "To", Figures: true}}}
	for _, one := range []struct {
		name  string
		value *metrics.Figure
	}{
		{"Accuracy", m.Accuracy}, {"AUC", m.AUC}, {"Average precision", m.AveragePrecision}, {"Log loss", m.LogLoss}, {"Perplexity", m.Perplexity}, {"Brier score", m.Brier},
		{"RMSE", m.RMSE}, {"MAE", m.MAE}, {"R²", m.R2}, {"MSE", m.MSE}, {"Captured", m.Captured},
	} {
		if one.value == nil {
			continue
		}
		write := func(n *event.Number) layout.Cell {
			return layout.Words(prose.Optional(n, func(n event.Number) string { return prose.Rounded(float64(n)) }))
		}
		t.Rows = append(t.Rows, []layout.Cell{layout.Words(one.name), {Text: prose.Rounded(float64(one.value.Value)), Strong: true}, write(one.value.Low), write(one.value.High)})
	}
	return t
}

// mostPeople is how many participants a table lists.
const mostPeople = 100

// participants are what a finished run says of each.
func (s shownRun) participants() tabled {
	people := s.people[:min(len(s.people), mostPeople)]
	t := tabled{Name: "Participants", Only: true, Table: layout.Table{ID: "people-h"}}
	if len(s.people) > len(people) {
		t.Note = fmt.Sprintf("The first %d of %s; result.json has them all.", len(people), prose.Count(len(s.people)))
	}
	column := func(name string, figures bool, cell func(p sim.Line) layout.Cell) {
		layout.AddColumn(&t.Table, name, figures, people, cell)
	}
	number := func(n *event.Number) layout.Cell {
		return layout.Words(prose.Optional(n, func(n event.Number) string { return prose.Rounded(float64(n)) }))
	}
	column("Participant", false, func(p sim.Line) layout.Cell { return layout.Words(p.Name) })
	column("Examples", true, func(p sim.Line) layout.Cell { return layout.Words(prose.Count(p.Examples)) })
	column("Cluster", true, func(p sim.Line) layout.Cell {
		return layout.Words(prose.Optional(p.Cluster, func(c int) string { return prose.Count(c + 1) }))
	})
	column("Loss", true, func(p sim.Line) layout.Cell { return number(p.Loss) })
	column("Error", true, func(p sim.Line) layout.Cell { return number(p.Error) })
	column("Epsilon", true, func(p sim.Line) layout.Cell {
		return layout.Words(prose.Cost(float64(p.Epsilon)), fmt.Sprintf("%s, unit %s, relation %s", p.Claim, p.Unit, p.Relation))
	})
	return t
}

// label is the privacy label of a finished run.
func (s shownRun) label() layout.Label {
	st := s.summary.Privacy.Statement
	return layout.Label{Method: prose.Method(s.summary.Algorithm), Claim: layout.ClaimOf(st), NotCovered: st.NotCovered, Unnamed: "The run names nothing. Read docs/sharp-edges.md.", Rows: []layout.LabelRow{
		{Name: "Epsilon, most exposed participant", Value: prose.Cost(float64(st.Epsilon)), Note: layout.Claimed(st), Large: true},
		{Name: "What is protected", Value: layout.Protects(st)},
		{Name: "From whom", Value: layout.FromWhom(st), Note: string(st.Trust)},
		{Name: "Unit", Value: layout.UnitWords(st)},
		{Name: "Relation", Value: layout.RelationWords(st)},
		{Name: "Sampling", Value: st.Sampling},
	}}
}
