package study

import (
	"bytes"
	"cmp"
	_ "embed" // the page is part of the binary
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
)

//go:embed page.gohtml
var pageText string

// pageTemplate shares badges, legends and style with the report of a run.
var pageTemplate = layout.Parse(pageText)

// HTML writes a study as one file that needs nothing else: no script, no
// font, no request. The same study gives the same bytes. Nothing is written if
// the study has faults; all of them are named at once.
func HTML(w io.Writer, s Study) error {
	if err := check(s); err != nil {
		return fmt.Errorf("report: the study %q cannot be shown: %w", s.ID, err)
	}
	view, err := newPage(s)
	if err != nil {
		return fmt.Errorf("report: the study %q cannot be shown: %w", s.ID, err)
	}
	if err := layout.Write(w, pageTemplate, view); err != nil {
		return fmt.Errorf("report: the study %q: %w", s.ID, err)
	}
	return nil
}

// WritePage writes the page of a study to a file, whole or not at all.
func WritePage(path string, s Study) error {
	var page bytes.Buffer
	if err := HTML(&page, s); err != nil {
		return err
	}
	return durable.WriteFile(path, page.Bytes(), 0o644)
}

// page is all that the template shows.
type page struct {
	Title, Paper string
	Facts        []layout.Fact
	Intro        []string
	Caveats      []string
	CaveatIcon   template.HTML
	Summary      string
	Tallies      []tally
	Differing    []differing
	Sections     []section
	Charts       []Panel
	Strips       []shownStrip
	Again        []layout.Fact
	Command      string
}

// Contents are the sections that the page lists at its top: not those that go on with the
// one before, such as what the text claims of a table.
func (p page) Contents() (listed []section) {
	for i, s := range p.Sections {
		if i == 0 || !strings.HasPrefix(s.Title, p.Sections[i-1].Title+": ") {
			listed = append(listed, s)
		}
	}
	return listed
}

func newPage(s Study) (page, error) {
	p := page{
		Title: cmp.Or(s.Title, "A study without a title"), Paper: s.Paper, Intro: s.Intro,
		Caveats: s.Caveats, CaveatIcon: layout.Icon(layout.IconWarning),
		Summary: summarySentence(s), Tallies: talliesOf(s), Differing: differingOf(s),
		Sections: sectionsOf(seeded(s), s.Paper == ""), Command: s.Command,
		Facts: []layout.Fact{{Name: "Scale", Value: s.Scale}, {Name: "Seeds", Value: prose.Count(s.Seeds)}},
		Again: []layout.Fact{{Name: "Version", Value: s.Version, Code: true}, {Name: "Kernel", Value: s.Kernel, Code: true}},
	}
	for _, d := range s.Devices {
		p.Again = append(p.Again, layout.Fact{Name: "Computed by", Value: d})
	}
	if s.Seconds > 0 { // otherwise nobody looked at the clock
		p.Facts = append(p.Facts, layout.Fact{Name: "Took", Value: duration(s.Seconds)})
	}
	p.Facts = append(p.Facts, layout.Fact{Name: "Experiment", Value: s.ID, Code: true})
	var err error
	if p.Charts, err = Panels(s.Charts); err != nil {
		return page{}, err
	}
	for _, strip := range s.Strips {
		view, err := newShownStrip(strip)
		if err != nil {
			return page{}, err
		}
		p.Strips = append(p.Strips, view)
	}
	return p, nil
}

// duration writes seconds as a person would say them.
func duration(seconds float64) string {
	switch {
	case math.IsNaN(seconds) || math.IsInf(seconds, 0) || seconds < 0:
		return prose.Unknown
	case seconds < 120:
		return prose.Rounded(seconds) + " s"
	case seconds < 2*3600:
		whole := int(math.Round(seconds))
		return fmt.Sprintf("%d min %d s", whole/60, whole%60)
	case seconds > 1e9:
		return prose.Rounded(seconds/3600) + " h"
	}
	minutes := int(math.Round(seconds / 60))
	return fmt.Sprintf("%s h %d min", prose.Count(minutes/60), minutes%60)
}
