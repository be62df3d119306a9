package live

import (
	"strings"
	"time"

	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sweep/cells"
)

// crew are the workers that make a thing's cells over a queue, while somebody says so.
func (f *Folder) crew(t thing) []cells.Hand {
	if !t.alive(time.Now()) {
		return nil
	}
	c, err := load(f, t, cells.CrewFile, "crew ", true, parseAs[cells.Crew])
	if err != nil {
		return nil
	}
	return c.Workers
}

// addCrew says in the list how many workers there are.
func (f *Folder) addCrew(t thing, r *row) {
	if n := len(f.crew(t)); n > 0 {
		r.Lines = append(r.Lines, prose.Counted(n, "worker", "workers"))
	}
}

// crewTable is what every worker says of itself.
func (f *Folder) crewTable(t thing, p *parts) {
	crew := f.crew(t)
	if len(crew) == 0 {
		return
	}
	table := layout.Table{ID: "crew-h"}
	shown := crew[:min(len(crew), mostPeople)]
	column := func(name string, figures bool, cell func(h cells.Hand) layout.Cell) {
		layout.AddColumn(&table, name, figures, shown, cell)
	}
	column("Worker", false, func(h cells.Hand) layout.Cell { return layout.Words(h.Name) })
	column("Makes", false, func(h cells.Hand) layout.Cell {
		if len(h.Doing) == 0 {
			return layout.Words("nothing")
		}
		return layout.Words(strings.Join(h.Doing, "; "))
	})
	column("Cells made", true, func(h cells.Hand) layout.Cell { return layout.Words(prose.Count(int(h.Made))) })
	column("At a time", true, func(h cells.Hand) layout.Cell { return layout.Words(prose.Count(h.Slots)) })
	p.add("crew", tableTemplate, tabled{Name: prose.Counted(len(crew), "worker", "workers"), Note: "As they say, every few seconds; cells made for whoever asked.", Table: table})
}
