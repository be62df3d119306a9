package report

import (
	"bytes"
	_ "embed" // the page is part of the binary
	"fmt"
	"html/template"
	"io"
	"math"

	"github.com/coterie-fl/coterie/sim"
)

//go:embed study.gohtml
var studyText string

// studyTemplate shares badges, legends and style with the report of a run.
var studyTemplate = template.Must(template.Must(pageTemplate.Clone()).New("study").Parse(studyText))

// StudyHTML writes a study as one file that needs nothing else: no script, no
// font, no request. The same study gives the same bytes. Nothing is written if
// the study has faults; all of them are named at once.
func StudyHTML(w io.Writer, s Study) error {
	if err := checkStudy(s); err != nil {
		return fmt.Errorf("report: the study %q cannot be shown: %w", s.ID, err)
	}
	view, err := newStudyPage(s)
	if err != nil {
		return fmt.Errorf("report: the study %q cannot be shown: %w", s.ID, err)
	}
	var page bytes.Buffer
	if err := studyTemplate.Execute(&page, view); err != nil {
		return fmt.Errorf("report: filling the page of the study %q: %w", s.ID, err)
	}
	if _, err := w.Write(page.Bytes()); err != nil {
		return fmt.Errorf("report: writing the page of the study %q: %w", s.ID, err)
	}
	return nil
}

// WriteStudy writes the page of a study to a file, whole or not at all.
func WriteStudy(path string, s Study) error {
	var page bytes.Buffer
	if err := StudyHTML(&page, s); err != nil {
		return err
	}
	return sim.WriteFile(path, page.Bytes())
}

// studyPage is all that the template shows.
type studyPage struct {
	Title, Paper string
	Style        template.CSS
	Facts        []fact
	Intro        []string
	Caveats      []string
	CaveatIcon   template.HTML
	Summary      string
	Tallies      []tally
	Sections     []studySection
	Charts       []studyChart
	Strips       []studyStrip
	Again        []fact
	Command      string
}

func newStudyPage(s Study) (studyPage, error) {
	p := studyPage{
		Title: s.Title, Paper: s.Paper, Style: template.CSS(styleText), Intro: s.Intro,
		Caveats: s.Caveats, CaveatIcon: icon(iconHeuristic),
		Summary: summarySentence(s.Rows), Tallies: talliesOf(s.Rows),
		Sections: sectionsOf(seeded(s)), Command: s.Command,
		Facts: []fact{
			{"Scale", s.Scale, false}, {"Seeds", count(s.Seeds), false},
			{"Took", duration(s.Seconds), false}, {"Experiment", s.ID, true},
		},
		Again: []fact{{"Version", s.Version, true}, {"Kernel", s.Kernel, true}},
	}
	if p.Title == "" {
		p.Title = "A study without a title"
	}
	look := newLooks(s.Charts)
	for i, c := range s.Charts {
		p.Charts = append(p.Charts, newStudyChart(fmt.Sprintf("chart-%d", i+1), c, look))
	}
	for _, strip := range s.Strips {
		view, err := newStudyStrip(strip)
		if err != nil {
			return studyPage{}, err
		}
		p.Strips = append(p.Strips, view)
	}
	return p, nil
}

// duration writes seconds as a person would say them.
func duration(seconds float64) string {
	switch {
	case math.IsNaN(seconds) || math.IsInf(seconds, 0) || seconds < 0:
		return unknown
	case seconds < 120:
		return rounded(seconds) + " s"
	case seconds < 2*3600:
		whole := int(math.Round(seconds))
		return fmt.Sprintf("%d min %d s", whole/60, whole%60)
	case seconds > 1e9:
		return rounded(seconds/3600) + " h"
	}
	minutes := int(math.Round(seconds / 60))
	return fmt.Sprintf("%s h %d min", count(minutes/60), minutes%60)
}
