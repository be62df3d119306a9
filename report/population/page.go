// Package population makes the page of a population: a map of its regions, the epidemic curve, its contacts.
package population

import (
	"bytes"
	_ "embed" // the page is part of the binary
	"fmt"
	"io"

	"github.com/coterie-fl/coterie/data/contacts"
	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/study"
)

//go:embed page.gohtml
var pageText string

var pageTemplate = layout.Parse(pageText)

// Made is what a page is of, and how it was made.
type Made struct{ Title, Source, Command, Version string }

// page is all that the template shows.
type page struct {
	Title, Lead     string
	Panels          []study.Panel
	Regions, Kinds  layout.Table
	Contacts, Facts []layout.Fact
	Command         string
}

// HTML writes the page as one file that needs nothing else.
func HTML(w io.Writer, f contacts.Figures, m Made) error {
	view, err := newPage(f, m)
	if err == nil {
		err = layout.Write(w, pageTemplate, view)
	}
	if err != nil {
		return fmt.Errorf("report: the population %q: %w", m.Title, err)
	}
	return nil
}

// WritePage writes the page to a file, whole or not at all.
func WritePage(path string, f contacts.Figures, m Made) error {
	var text bytes.Buffer
	if err := HTML(&text, f, m); err != nil {
		return err
	}
	return durable.WriteFile(path, text.Bytes(), 0o644)
}

func newPage(f contacts.Figures, m Made) (page, error) {
	p := page{
		Title: m.Title, Command: m.Command, Regions: regionTable(f), Kinds: kindTable(f),
		Lead: fmt.Sprintf("%s in %s, with %s. By day %d, %s were infected.", prose.Counted(f.Persons, "person", "persons"),
			prose.Counted(f.Households, "household", "households"), prose.Counted(int(f.Contacts), "contact", "contacts"), len(f.Curve)-1, percent(f.Ever, f.Persons)),
		Facts: []layout.Fact{{Name: "Source", Value: m.Source}, {Name: "Version", Value: m.Version, Code: true}},
		Contacts: []layout.Fact{
			{Name: "Contacts of a person, mean", Value: fmt.Sprintf("%.1f", f.Degree.Mean)},
			{Name: "Across regions", Value: percent(int(f.AcrossRegions), int(f.Contacts))},
		},
	}
	for _, q := range f.Degree.Quantiles {
		p.Contacts = append(p.Contacts, layout.Fact{Name: fmt.Sprintf("%g %% of the persons have at most", 100*q.Share), Value: prose.Count(q.Contacts)})
	}
	if f.Target != nil {
		p.Lead += fmt.Sprintf(" %s are newly infected in the week after it, which is to be foretold.", percent(*f.Target, f.Persons))
	}
	var err error
	p.Panels, err = Panels(f)
	return p, err
}

// Panels are the map and the epidemic curve.
func Panels(f contacts.Figures) ([]study.Panel, error) {
	picture, note := drawMap(f.Regions)
	curves, err := study.Panels([]study.Chart{curve(f.Curve)})
	return append([]study.Panel{{Name: "Residences", Note: note, Chart: picture}}, curves...), err
}

// curve is the epidemic by day.
func curve(days []contacts.DayCount) study.Chart {
	now, fresh := study.Series{Name: "infected"}, study.Series{Name: "newly infected"}
	for _, d := range days {
		x := float64(d.Day)
		now.Points = append(now.Points, study.Point{X: x, Y: float64(d.Infected), Low: float64(d.Infected), High: float64(d.Infected)})
		fresh.Points = append(fresh.Points, study.Point{X: x, Y: float64(d.New), Low: float64(d.New), High: float64(d.New)})
	}
	return study.Chart{Title: "Epidemic curve", XTitle: "day", YTitle: "persons", Series: []study.Series{now, fresh},
		Note: "Asymptomatic cases are shown as susceptible, so the curve has none of them."}
}

func regionTable(f contacts.Figures) layout.Table {
	t := layout.Table{ID: "regions-h"}
	count := func(n *int) layout.Cell {
		if n == nil {
			return layout.Cell{}
		}
		return layout.Words(prose.Count(*n))
	}
	layout.AddColumn(&t, "Region", false, f.Regions, func(r contacts.RegionCount) layout.Cell { return layout.Words(fmt.Sprint(r.Region)) })
	layout.AddColumn(&t, "Persons", true, f.Regions, func(r contacts.RegionCount) layout.Cell { return count(&r.Persons) })
	layout.AddColumn(&t, "Ever infected", true, f.Regions, func(r contacts.RegionCount) layout.Cell {
		return layout.Words(percent(r.Ever, r.Persons))
	})
	layout.AddColumn(&t, "Infected on the last day", true, f.Regions, func(r contacts.RegionCount) layout.Cell { return count(&r.Now) })
	layout.AddColumn(&t, "Infected in the next week", true, f.Regions, func(r contacts.RegionCount) layout.Cell { return count(r.Target) })
	return t
}

func kindTable(f contacts.Figures) layout.Table {
	t := layout.Table{ID: "contacts-h"}
	layout.AddColumn(&t, "Where", false, f.Kinds, func(k contacts.KindCount) layout.Cell { return layout.Words(k.Kind) })
	layout.AddColumn(&t, "Contacts", true, f.Kinds, func(k contacts.KindCount) layout.Cell { return layout.Words(prose.Count(int(k.Contacts))) })
	layout.AddColumn(&t, "Share", true, f.Kinds, func(k contacts.KindCount) layout.Cell {
		return layout.Words(percent(int(k.Contacts), int(f.Contacts)))
	})
	return t
}

func percent(part, of int) string {
	return fmt.Sprintf("%.3g %%", 100*float64(part)/float64(max(1, of)))
}
