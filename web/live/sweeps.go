package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/sweep"
	"github.com/coterie-fl/coterie/sweep/cells"
)

// grid is a sweep as far as it has come.
type grid struct {
	sweep.Outline
	metric string
	done   int
	total  int
	values [][]float64 // by point: of the seeds that are done
}

// readGrid takes up the cells that are there.
func (f *Folder) readGrid(t thing) (g grid, err error) {
	g.Outline, err = load(f, t, sweep.PlanFile, "plan ", false, parseAs[sweep.Outline])
	if err != nil {
		return g, err
	}
	g.values = make([][]float64, len(g.Points))
	for i, point := range g.Points {
		g.total += len(point.Cells)
		for _, name := range point.Cells {
			cell, err := load(f, t, path.Join(".", name), "cell ", true, parseAs[sweep.Cell])
			if err != nil {
				continue // not there yet
			}
			g.metric = cell.Metric
			g.values[i] = append(g.values[i], float64(cell.Value))
			g.done++
		}
	}
	return g, nil
}

// charged is what tells the two kinds of results apart.
type charged struct {
	Name    string          `json:"name"`
	Tuning  string          `json:"tuning"`
	Points  json.RawMessage `json:"points"`
	Metric  string          `json:"metric"`
	Test    *event.Number   `json:"test"`
	Privacy event.Statement `json:"privacy"`
}

func (f *Folder) describeSweep(t thing, r *row) error {
	g, err := f.readGrid(t)
	if errors.Is(err, fs.ErrNotExist) {
		c, err := load(f, t, sweep.ResultFile, "charged ", true, parseAs[charged])
		if err != nil {
			return err
		}
		r.Name, r.Lines = c.Name, []string{"tuning: " + c.Tuning}
		return nil
	}
	if err != nil {
		return err
	}
	r.Name = g.Name
	r.Lines = []string{g.words()}
	if !t.finished {
		r.Meter = newMeter(float64(g.done), float64(g.total), fmt.Sprintf("%d of %d runs", g.done, g.total))
	}
	f.addCrew(t, r)
	return nil
}

func (g grid) words() string {
	return fmt.Sprintf("%s of %s runs, %s in %s; tuning: %s", prose.Count(g.done), prose.Count(g.total),
		prose.Counted(len(g.Points), "setting", "settings"), prose.Counted(g.Seeds, "seed", "seeds"), g.Tuning)
}

// sweepView is one sweep: its settings with intervals over seeds, as they come in.
func (f *Folder) sweepView(t thing) (View, error) {
	g, err := f.readGrid(t)
	if errors.Is(err, fs.ErrNotExist) {
		return f.chargedView(t)
	}
	if err != nil {
		return View{}, err
	}
	r := f.row(t)
	v := View{Title: g.Name, Lead: t.id, Status: fmt.Sprintf("%s: %s.", g.Name, r.State.Word)}
	one := stand{State: r.State, Words: g.words(), Meter: newMeter(float64(g.done), float64(g.total), fmt.Sprintf("%d of %d runs", g.done, g.total))}
	if f.hasReport(t) && t.finished {
		one.Links = append(one.Links, Link{"Open its report", to(reportPath, t)})
	}
	if r.State == silent {
		one.Note = "The same command goes on where it was."
	}
	if g.Tuning == "not charged" {
		one.Note += " " + sweep.NotCharged + ": choosing by these figures tells of the examples that they were measured on."
	}
	var p parts
	p.add("stand", standTemplate, one)
	panels, err := study.Panels(g.charts())
	if err != nil {
		return View{}, err
	}
	if len(panels) > 0 {
		p.add("curves", curvesTemplate, curves{ID: "curves-h", Name: "Figures", Only: true, Panels: panels, Note: "Means over the seeds that are done, with 95 % intervals; lower is better."})
	}
	f.crewTable(t, &p)
	if table := g.table(); len(table.Rows) > 0 {
		p.add("points", tableTemplate, tabled{Name: "Settings", Only: true, Table: table, Note: "The best so far first."})
	}
	v.Parts = p.list
	return v, p.err
}

// mean is that of a point, with its interval; NaN: nothing is done.
func (g grid) mean(i int) (mean, half float64) {
	if len(g.values[i]) == 0 {
		return math.NaN(), math.NaN()
	}
	return metrics.Spread(g.values[i])
}

// charts show the points against each setting that is a number and varies; where none is,
// there is no picture.
func (g grid) charts() (out []study.Chart) {
	varied := map[string]map[string]bool{}
	for _, p := range g.Points {
		for k, v := range p.Settings {
			if varied[k] == nil {
				varied[k] = map[string]bool{}
			}
			varied[k][v] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(varied)) {
		if len(varied[key]) < 2 {
			continue
		}
		series, names, log := map[string]*study.Series{}, []string{}, true
		for i, p := range g.Points {
			x, ok := number(p.Settings[key])
			mean, half := g.mean(i)
			if !ok || math.IsNaN(mean) {
				continue
			}
			rest := settingsInWords(p.Settings, key)
			if series[rest] == nil {
				series[rest] = &study.Series{Name: rest}
				names = append(names, rest)
			}
			one := study.Point{X: x, Y: mean, Low: mean, High: mean}
			if !math.IsNaN(half) {
				one.Low, one.High = mean-half, mean+half
			}
			log = log && x > 0
			series[rest].Points = append(series[rest].Points, one)
		}
		c := study.Chart{Title: "By " + key, XTitle: key, YTitle: g.metric, LogX: log && wide(varied[key])}
		for _, name := range names {
			c.Series = append(c.Series, *series[name])
		}
		if len(c.Series) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// wide says that values span more than a factor of ten.
func wide(values map[string]bool) bool {
	low, high := math.Inf(1), 0.0
	for v := range values {
		if x, ok := number(v); ok {
			low, high = min(low, x), max(high, x)
		}
	}
	return high > 10*low
}

func number(text string) (float64, bool) {
	var n float64
	if json.Unmarshal([]byte(text), &n) != nil {
		return 0, false
	}
	return n, true
}

func settingsInWords(settings map[string]string, but string) string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		if k != but {
			words = append(words, k+"="+settings[k])
		}
	}
	if len(words) == 0 {
		return "all"
	}
	return strings.Join(words, " ")
}

// table has every setting, those that are done in order of their means.
func (g grid) table() layout.Table {
	order := make([]int, len(g.Points))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, _ := g.mean(a)
		y, _ := g.mean(b)
		switch {
		case math.IsNaN(x) && math.IsNaN(y), x == y:
			return 0
		case math.IsNaN(y), x < y:
			return -1
		}
		return 1
	})
	order = order[:min(len(order), mostPeople)]
	t := layout.Table{ID: "points-h"}
	layout.AddColumn(&t, "Setting", false, order, func(i int) layout.Cell { return layout.Words(settingsInWords(g.Points[i].Settings, "")) })
	layout.AddColumn(&t, "Runs", true, order, func(i int) layout.Cell {
		return layout.Words(fmt.Sprintf("%d of %d", len(g.values[i]), len(g.Points[i].Cells)))
	})
	layout.AddColumn(&t, "Mean "+g.metric, true, order, func(i int) layout.Cell {
		mean, half := g.mean(i)
		switch {
		case math.IsNaN(mean):
			return layout.Cell{}
		case math.IsNaN(half):
			return layout.Cell{Text: prose.Rounded(mean), Strong: true}
		}
		return layout.Cell{Text: prose.Rounded(mean), Strong: true, Small: []string{"± " + prose.Rounded(half)}}
	})
	return t
}

// chargedView is a tuning that silos paid for. How many trials were made is nowhere in it.
func (f *Folder) chargedView(t thing) (View, error) {
	c, err := load(f, t, sweep.ResultFile, "charged ", true, parseAs[charged])
	if err != nil {
		return View{}, err
	}
	one := stand{State: finished, Words: "tuning: " + c.Tuning, Note: "How many trials every silo made is a secret that pays for the choice; it stands nowhere.", Facts: []layout.Fact{
		{Name: "Epsilon", Value: prose.Cost(float64(c.Privacy.Epsilon)) + " (" + layout.Claimed(c.Privacy) + ")"},
		{Name: c.Metric + " of the tuned models", Value: prose.Optional(c.Test, func(n event.Number) string { return prose.Rounded(float64(n)) })},
	}}
	var p parts
	p.add("stand", standTemplate, one)
	return View{Title: c.Name, Lead: t.id, Status: c.Name + ": finished.", Parts: p.list}, p.err
}

func (f *Folder) describeStudy(t thing, r *row) error {
	if at, ok := f.standing(t); ok {
		r.Lines = []string{fmt.Sprintf("%s of %s done", prose.Count(at.Done), prose.Counted(at.Total, "cell", "cells"))}
		if !t.finished {
			r.Meter = newMeter(float64(at.Done), float64(at.Total), r.Lines[0])
		}
		f.addCrew(t, r)
		return nil
	}
	n, err := f.cells(t)
	r.Lines = []string{prose.Counted(n, "cell", "cells") + " done"}
	return err
}

// standing is how far a study says that it is; not ok: it says nothing, or has ended.
func (f *Folder) standing(t thing) (at cells.Standing, ok bool) {
	at, err := load(f, t, cells.StandingFile, "standing ", true, parseAs[cells.Standing])
	return at, err == nil && at.Total > 0 && at.Done >= 0 && at.Done <= at.Total
}

// cells is how many a study has done.
func (f *Folder) cells(t thing) (int, error) {
	entries, err := fs.ReadDir(f.root.FS(), path.Join(t.id, cellsFolder))
	n := 0
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			n++
		}
	}
	return n, err
}

// studyView is a study of coterie reproduce.
func (f *Folder) studyView(t thing) (View, error) {
	r := f.row(t)
	one := stand{State: r.State, Words: r.Lines[0]}
	if f.hasReport(t) {
		one.Links = append(one.Links, Link{"Open its report", to(reportPath, t)})
	}
	if at, ok := f.standing(t); ok {
		one.Meter = newMeter(float64(at.Done), float64(at.Total), r.Lines[0])
		one.Note = "Of the cells that are known so far: a study with several stages knows those of the next when the one before is done."
	}
	if r.State == silent {
		one.Note = "The same command goes on where it was."
	}
	var p parts
	p.add("stand", standTemplate, one)
	f.crewTable(t, &p)
	return View{Title: r.Name, Lead: t.id, Status: r.Name + ": " + r.State.Word + ".", Parts: p.list}, p.err
}
