package data

import (
	"fmt"
	"slices"
)

// pictureSilos collects silos of pictures into a federation.
type pictureSilos struct {
	f     *Federation
	limit int // pictures to train a silo; 0: all
}

func newPictureSilos(classes, limit int, report LoadReport) *pictureSilos {
	report = report.clone()
	return &pictureSilos{f: &Federation{Classes: classes, Report: &report}, limit: limit}
}

// add adds a silo. Its pictures to train come in the order of a draw, so that a
// limit takes a random part of them.
func (p *pictureSilos) add(c Client) {
	report := p.f.Report
	if c.Len() == 0 {
		report.leaveOut(leftTinySilo, fmt.Sprintf("%s: %d to train, %d held out", c.Name, c.Len(), c.Held.Len()))
		return
	}
	if p.limit > 0 && c.Len() > p.limit {
		report.leaveOutMany(leftOverLimit, c.Len()-p.limit)
		c.Index = c.Index[:p.limit]
	}
	slices.Sort(c.Index)
	slices.Sort(c.Held.Index)
	p.f.Train = append(p.f.Train, c)
}

// keep counts all pictures of the federation as kept.
func (p *pictureSilos) keep() {
	for i := range p.f.Train {
		p.f.Report.Kept += p.f.Train[i].Len() + p.f.Train[i].Held.Len()
	}
}

// done is the federation, if anybody is in it.
func (p *pictureSilos) done() (*Federation, error) {
	if len(p.f.Train) == 0 {
		return nil, fmt.Errorf("no silo is left: %s", p.f.Report)
	}
	return p.f, nil
}
