package membership

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/report/prose"
)

// ErrNotThere means that a run's data do not have what an attack compares.
var ErrNotThere = errors.New("membership cannot be inferred")

// What is attacked.
const (
	UnitExample = "example"
	UnitClient  = "client"
)

// subject is a client as the attack sees it: everything that it has, what was trained on
// first.
type subject struct {
	name    string
	pool    data.Client
	members int // of the pool
	trains  bool
	scored  []int        // places in the pool of those that are attacked
	held    *data.Client // what it holds out, if that is not in the pool; nil: nobody asked
}

// population is whoever the attack tells apart, and what other models are trained on.
type population struct {
	run        config.Run
	federation *data.Federation
	subjects   []subject
	unit       string
	// held says that clients hold examples out, so that these are the ones to compare with;
	// otherwise they are those of clients that did not train.
	held      bool
	strangers bool   // non-members are examples of clients that did not train
	own       bool   // a client is attacked by the model that it uses itself
	by        string // otherwise: by the model of this client; empty: by a newcomer's

	member []bool // by attacked example
	of     []int  // subject, by attacked example
}

// newPopulation is that of a run on its data. Others says that examples of clients that did
// not train are compared with, whatever is held out.
func newPopulation(run config.Run, f *data.Federation, others bool, unit, client string) (*population, error) {
	p := &population{run: run, federation: f, unit: unit, by: client}
	asked := false
	for i := range f.Train {
		asked = asked || f.Train[i].Held != nil
		p.held = p.held || f.Train[i].Held != nil && f.Train[i].Held.Len() > 0
	}
	switch {
	case f.Train[0].People != nil:
		return nil, fmt.Errorf("%w: people are judged by their own later days, so that nobody is a non-member; there is nothing to compare them with", ErrNotThere)
	case unit != UnitExample && unit != UnitClient:
		return nil, fmt.Errorf("%w: the unit %q is not known; allowed: example, client", ErrNotThere, unit)
	case f.Reconstruct && f.Train[0].Images == nil, run.Model.Kind == "projection":
		return nil, fmt.Errorf("%w: the run trains directions, which give an example no loss", ErrNotThere)
	case unit == UnitClient && client != "":
		return nil, fmt.Errorf("%w: --client %s attacks that client's examples; --unit client asks who took part, of all clients", ErrNotThere, client)
	case unit == UnitClient && len(f.Validation) == 0:
		return nil, fmt.Errorf("%w: %s took part, and there is none to compare with; name examples of clients that did not by --non-members, or attack examples instead: --unit example",
			ErrNotThere, prose.Counted(len(f.Train), "client of the data", "clients of the data, all of them,"))
	case unit == UnitExample && !p.held && len(f.Validation) == 0:
		return nil, fmt.Errorf("%w: nobody holds examples out, and there are none to compare the trained ones with; name some by --non-members, or set data.test_share and train again", ErrNotThere)
	}
	p.held = p.held && unit == UnitExample && !others
	p.own, p.strangers = p.held, !p.held && unit == UnitExample
	if fl.IsCentral(run.Algorithm.Kind) && unit == UnitExample {
		if err := p.pool(client); err != nil {
			return nil, err
		}
	} else {
		for i := range f.Train {
			p.add(subject{name: nameOf(&f.Train[i], i), pool: f.Train[i], members: f.Train[i].Len(), trains: true}, client)
		}
	}
	for i := range f.Validation {
		if s := (subject{name: f.Validation[i].Name, pool: f.Validation[i]}); !p.held {
			if asked {
				none := f.Validation[i].Pick(nil)
				s.pool.Held = &none
			}
			p.add(s, client)
		}
	}
	if client != "" && !slices.ContainsFunc(p.subjects, func(s subject) bool { return s.trains && len(s.scored) > 0 }) {
		return nil, p.noClient(client)
	}
	for k := range p.subjects {
		for _, i := range p.subjects[k].scored {
			p.member, p.of = append(p.member, i < p.subjects[k].members), append(p.of, k)
		}
	}
	return p, nil
}

func (p *population) noClient(client string) error {
	var names []string
	for i := range p.federation.Train {
		names = append(names, nameOf(&p.federation.Train[i], i))
	}
	return fmt.Errorf("%w: no client %q trained; there are %s", ErrNotThere, client, few(names))
}

func nameOf(c *data.Client, i int) string { return cmp.Or(c.Name, strconv.Itoa(i)) }

// pool adds everybody's examples as one subject. Of a client that is named its own are
// attacked. Where nobody holds examples out, those of clients that did not train stand in
// their place.
func (p *population) pool(client string) error {
	f := p.federation
	whole := *f.Pooled()
	one := whole.Train[0]
	if p.strangers {
		var others []*data.Client
		for i := range f.Validation {
			others = append(others, &f.Validation[i])
		}
		rest := data.Joined(others...)
		one.Held = &rest
	}
	p.held, p.own = true, true
	p.add(subject{name: nameOf(&one, 0), pool: one, members: one.Len(), trains: true}, "")
	s := &p.subjects[0]
	if client == "" || client == s.name {
		p.federation = &whole
		return nil
	}
	s.scored = nil
	trained, held := 0, s.members
	those := func(from, n int) {
		for i := range n {
			s.scored = append(s.scored, from+i)
		}
	}
	for i := range f.Train {
		c, kept := &f.Train[i], 0
		if c.Held != nil && !p.strangers {
			kept = c.Held.Len()
		}
		if c.Name == client {
			those(trained, c.Len())
			those(held, kept)
		}
		trained, held = trained+c.Len(), held+kept
	}
	if len(s.scored) == 0 {
		return p.noClient(client)
	}
	if p.strangers {
		those(s.members, s.pool.Len()-s.members)
	}
	slices.Sort(s.scored)
	p.federation = &whole
	return nil
}

// add adds a subject; what it holds out is in its pool if that is compared with.
func (p *population) add(s subject, client string) {
	s.held = s.pool.Held
	if p.held && s.trains {
		s.pool, s.held = joined(&s.pool), nil
	}
	s.pool.Held, s.pool.Sensitive = nil, nil
	if client == "" || s.name == client || !s.trains {
		s.scored = identity(s.pool.Len())
	}
	p.subjects = append(p.subjects, s)
}

// joined is all that a client has.
func joined(c *data.Client) data.Client {
	if c.Held == nil || c.Held.Len() == 0 {
		return *c
	}
	all := data.Joined(c, c.Held)
	all.Name, all.Group = c.Name, c.Group
	return all
}

// few are some of the names.
func few(names []string) string {
	var out string
	for i, name := range names {
		switch {
		case i == 5:
			return out + ", …"
		case i > 0:
			out += ", "
		}
		out += name
	}
	return out
}

// identity is 0..n-1.
func identity(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
