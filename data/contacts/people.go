package contacts

import "github.com/coterie-fl/coterie/data"

// trainees are a graph's persons as training reads them: an example a person, of all windows
// whose labels are known, with the contacts that a rule has kept.
type trainees struct {
	g    *Graph
	kept *Kept // nil: all contacts
	ends []int
	// whole is what g is a part of; nil: g is whole.
	whole *Graph
}

// Trainees are the graph's persons with all their contacts, to train on.
func (g *Graph) Trainees() data.People { return trainees{g: g, ends: g.TrainingEnds()} }

func (t trainees) Persons() int   { return t.g.Persons() }
func (t trainees) ID(i int) int64 { return t.g.ID[i] }
func (t trainees) Inputs() int    { return Pooled }
func (t trainees) Windows() int   { return len(t.ends) }

// Input is one window's; it counts if the person could fall ill after it.
func (t trainees) Input(dst []float32, person, window int) int {
	susceptible, infected := t.g.Label(person, t.ends[window])
	if !susceptible {
		return -1
	}
	t.g.Fill(dst, t.kept, person, t.ends[window])
	if infected {
		return 1
	}
	return 0
}

// Under keeps the contacts that a rule allows.
func (t trainees) Under(r data.NodeRule) (data.People, int, bool, error) {
	rule := Rule(r)
	if rule.Relation == ThinnedRemoval {
		anew, err := t.thinnedAnew(rule)
		if err != nil {
			return nil, 0, false, err
		}
		most, proved := rule.Examples()
		return anew, most, proved, nil
	}
	kept, err := rule.Of(t.g)
	if err != nil {
		return nil, 0, false, err
	}
	most, proved := rule.Examples()
	t.kept = &kept
	return t, most, proved, nil
}

// foretold are a graph's persons as judging and predicting read them: the last days that
// are known, with all contacts.
type foretold struct{ g *Graph }

// Foretold are the graph's persons, to be judged by who falls ill after the known days.
func (g *Graph) Foretold() data.People { return foretold{g} }

func (f foretold) Persons() int   { return f.g.Persons() }
func (f foretold) ID(i int) int64 { return f.g.ID[i] }
func (f foretold) Inputs() int    { return Pooled }
func (f foretold) Windows() int   { return 1 }

func (f foretold) Input(dst []float32, person, _ int) int {
	susceptible, infected := f.g.Label(person, f.g.Days)
	if !susceptible {
		return -1
	}
	f.g.Fill(dst, nil, person, f.g.Days)
	if infected {
		return 1
	}
	return 0
}

// Under changes nothing: whoever foretells reads what it holds.
func (f foretold) Under(data.NodeRule) (data.People, int, bool, error) { return f, 0, false, nil }

// graphed are people of a graph.
type graphed interface {
	graph() *Graph // their own
	all() *Graph   // what it is a part of, or itself
}

func (t trainees) graph() *Graph { return t.g }

func (n neighbourhoods) graph() *Graph { return n.g }

func (n neighbourhoods) all() *Graph {
	if n.whole != nil {
		return n.whole
	}
	return n.g
}

func (f foretold) graph() *Graph { return f.g }
func (f foretold) all() *Graph   { return f.g }

func (t trainees) all() *Graph {
	if t.whole != nil {
		return t.whole
	}
	return t.g
}

// GraphOf is the whole graph that people to train on are of; nil: they are of none of this
// package.
func GraphOf(p data.People) *Graph {
	if of, ok := p.(graphed); ok {
		return of.all()
	}
	return nil
}

// HeldBy is the graph that people's own holder has: a part of the whole, where several
// hold people. Nil: they are of none of this package.
func HeldBy(p data.People) *Graph {
	if of, ok := p.(graphed); ok {
		return of.graph()
	}
	return nil
}

// Part is the graph of some persons alone, in their order; contacts with others are dropped.
func (g *Graph) Part(in func(i int) bool) *Graph {
	place := make([]uint32, g.Persons())
	const nowhere = ^uint32(0)
	p := &Graph{Days: g.Days, Places: g.Places}
	for i := range place {
		if place[i] = nowhere; !in(i) {
			continue
		}
		place[i] = uint32(len(p.ID))
		p.ID, p.Household, p.Size = append(p.ID, g.ID[i]), append(p.Household, g.Household[i]), append(p.Size, g.Size[i])
		p.Age, p.Sex, p.Region = append(p.Age, g.Age[i]), append(p.Sex, g.Sex[i]), append(p.Region, g.Region[i])
		p.Did, p.Out = append(p.Did, g.Did[i]), append(p.Out, g.Out[i])
		p.Infected, p.Recovered = append(p.Infected, g.Infected[i]), append(p.Recovered, g.Recovered[i])
	}
	if g.Target != nil {
		p.Target = make([]uint64, (len(p.ID)+63)/64)
	}
	p.Offsets = make([]int64, len(p.ID)+1)
	each := func(use func(me, at int, other uint32, from int64)) {
		for i, me := range place {
			if me == nowhere {
				continue
			}
			k := 0
			for from := g.Offsets[i]; from < g.Offsets[i+1]; from++ {
				if j := place[g.Other[from]]; j != nowhere {
					use(int(me), k, j, from)
					k++
				}
			}
		}
	}
	each(func(me, _ int, _ uint32, _ int64) { p.Offsets[me+1]++ })
	for i := range p.ID {
		p.Offsets[i+1] += p.Offsets[i]
	}
	p.Other, p.How = make([]uint32, p.Offsets[len(p.ID)]), make([]How, p.Offsets[len(p.ID)])
	if g.Start != nil {
		p.Start, p.Where = make([]uint16, len(p.Other)), make([]uint32, len(p.Other))
	}
	each(func(me, at int, other uint32, from int64) {
		to := p.Offsets[me] + int64(at)
		if p.Other[to], p.How[to] = other, g.How[from]; p.Start != nil {
			p.Start[to], p.Where[to] = g.Start[from], g.Where[from]
		}
	})
	for i, me := range place {
		if me != nowhere && g.Positive(i) {
			p.Target[me/64] |= 1 << (me % 64)
		}
	}
	return p
}
