package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/contacts"
	"github.com/coterie-fl/coterie/report/population"
)

// checked is what `coterie data check` prints.
type checked struct {
	data.Summary
	Population *contacts.Figures `json:"population,omitempty"` // of persons with contacts
}

// tellData prints what a run file's data are.
func (a *app) tellData(fed *data.Federation, run config.Run, f checkFlags, file string) error {
	c := checked{Summary: fed.Summary(run.Data)}
	if people := fed.Train[0].People; people != nil {
		persons := 0
		for _, client := range fed.Train {
			persons += client.Len()
		}
		if g := contacts.GraphOf(people); g != nil && g.Persons() == persons { // else everybody has a population of its own
			figures := g.Figures()
			c.Population = &figures
		}
	}
	if f.report != "" {
		if c.Population == nil {
			return fmt.Errorf("%w: --report is for data.kind pandemic, of one population, not for %s", errUsage, run.Data.Kind)
		}
		made := population.Made{Title: "A population and its epidemic", Source: c.Report.Source, Version: version(), Command: fmt.Sprintf("coterie data check %s --report %s", file, f.report)}
		if err := population.WritePage(f.report, *c.Population, made); err != nil {
			return err
		}
	}
	if a.output == "json" {
		return a.printJSON(c)
	}
	if err := a.printSummary(c.Summary); err != nil || c.Population == nil {
		return err
	}
	return a.printPopulation(*c.Population, f.report)
}

// printPopulation shows regions, contacts and the epidemic to people.
func (a *app) printPopulation(p contacts.Figures, page string) error {
	a.remark("")
	if err := a.printFigures(p); err != nil {
		return err
	}
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nregion\tpersons\tever infected\ton the last day\tin the next week")
	for _, r := range p.Regions {
		next := "not known"
		if r.Target != nil {
			next = fmt.Sprint(*r.Target)
		}
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%s\n", r.Region, r.Persons, r.Ever, r.Now, next)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := a.printLines("", "infected by day:"); err != nil {
		return err
	}
	highest := 1
	for _, d := range p.Curve {
		highest = max(highest, d.Infected)
	}
	const every, widest = 4, 50
	for i := 0; i < len(p.Curve); i += every {
		d := p.Curve[i]
		if err := a.printLines(fmt.Sprintf("  day %2d %8d %s", d.Day, d.Infected, strings.Repeat("#", (d.Infected*widest+highest-1)/highest))); err != nil {
			return err
		}
	}
	if page != "" {
		a.remark("\npage    %s", page)
	}
	return nil
}
