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
	"github.com/coterie-fl/coterie/internal/rng"
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
	name     string
	pool     data.Client
	members  int // of the pool
	trains   bool
	attacked bool // its examples are scored
}

// population is whoever the attack tells apart, and what other models are trained on.
type population struct {
	run        config.Run
	federation *data.Federation
	subjects   []subject
	unit       string
	// held says that clients hold examples out, so that these are the ones to compare with;
	// otherwise they are those of clients that did not train.
	held bool
	own  bool // a client is attacked by the model that it uses itself

	member []bool // by attacked example
	of     []int  // subject, by attacked example
}

// newPopulation is that of a run on its data.
func newPopulation(run config.Run, f *data.Federation, unit, client string) (*population, error) {
	if fl.IsCentral(run.Algorithm.Kind) {
		f = f.Pooled()
	}
	p := &population{run: run, federation: f, unit: unit}
	for i := range f.Train {
		if h := f.Train[i].Held; h != nil && h.Len() > 0 {
			p.held = true
		}
	}
	switch {
	case unit != UnitExample && unit != UnitClient:
		return nil, fmt.Errorf("%w: the unit %q is not known; allowed: example, client", ErrNotThere, unit)
	case f.Reconstruct && f.Train[0].Images == nil, run.Model.Kind == "projection":
		return nil, fmt.Errorf("%w: the run trains directions, which give an example no loss", ErrNotThere)
	case unit == UnitClient && client != "":
		return nil, fmt.Errorf("%w: --client %s attacks that client's examples; --unit client asks who took part, of all clients", ErrNotThere, client)
	case unit == UnitClient && len(f.Validation) == 0:
		return nil, fmt.Errorf("%w: all %d clients of the data took part, and there is none to compare them with; attack their examples instead: --unit example", ErrNotThere, len(f.Train))
	case unit == UnitExample && !p.held && len(f.Validation) == 0:
		return nil, fmt.Errorf("%w: nobody holds examples out, and there are none to compare the trained ones with; set data.test_share and train again", ErrNotThere)
	}
	p.held = p.held && unit == UnitExample
	p.own = p.held
	for i := range f.Train {
		s := subject{name: cmp.Or(f.Train[i].Name, strconv.Itoa(i)), pool: f.Train[i], members: f.Train[i].Len(), trains: true}
		if p.held {
			s.pool = joined(&f.Train[i])
		}
		p.add(s, client)
	}
	for i := range f.Validation {
		if !p.held {
			p.add(subject{name: f.Validation[i].Name, pool: f.Validation[i]}, client)
		}
	}
	if client != "" && !slices.ContainsFunc(p.subjects, func(s subject) bool { return s.attacked && s.trains }) {
		return nil, fmt.Errorf("%w: no client %q trained; there are %s", ErrNotThere, client, few(p.subjects))
	}
	for k := range p.subjects {
		s := &p.subjects[k]
		for i := range s.pool.Len() {
			if s.attacked {
				p.member, p.of = append(p.member, i < s.members), append(p.of, k)
			}
		}
	}
	return p, nil
}

// add adds a subject without what it holds out.
func (p *population) add(s subject, client string) {
	s.pool.Held, s.pool.Sensitive = nil, nil
	s.attacked = client == "" || s.name == client || !s.trains
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

// few are some of the subjects' names.
func few(subjects []subject) string {
	var names string
	for i, s := range subjects {
		switch {
		case i == 5:
			return names + ", …"
		case i > 0:
			names += ", "
		}
		names += s.name
	}
	return names
}

// resplit is the population's data with other members, and which of the attacked examples
// are among them. Of clients that hold examples out every one has as many members as
// before; otherwise as many clients train.
func (p *population) resplit(choose func(part, members, all int) []int) (*data.Federation, []bool) {
	f := *p.federation
	f.Sensitive, f.Train, f.Validation = nil, nil, nil
	var in []bool
	note := func(s *subject, chosen func(i int) bool) {
		for i := range s.pool.Len() {
			if s.attacked {
				in = append(in, chosen(i))
			}
		}
	}
	if p.held {
		f.Validation = p.federation.Validation
		for k := range p.subjects {
			s := &p.subjects[k]
			train := slices.Sorted(slices.Values(choose(k, s.members, s.pool.Len())))
			trains, rest := flags(train, s.pool.Len())
			client, held := s.pool.Pick(train), s.pool.Pick(rest)
			client.Held = &held
			f.Train = append(f.Train, client)
			note(s, func(i int) bool { return trains[i] })
		}
		return &f, in
	}
	train := choose(0, len(p.federation.Train), len(p.subjects))
	trains, _ := flags(train, len(p.subjects))
	for k := range p.subjects {
		s := &p.subjects[k]
		if trains[k] {
			f.Train = append(f.Train, s.pool)
		} else {
			f.Validation = append(f.Validation, s.pool)
		}
		note(s, func(int) bool { return trains[k] })
	}
	return &f, in
}

// flags say which of n are chosen, and which are the rest.
func flags(chosen []int, n int) (is []bool, rest []int) {
	is = make([]bool, n)
	for _, i := range chosen {
		is[i] = true
	}
	for i, yes := range is {
		if !yes {
			rest = append(rest, i)
		}
	}
	return is, rest
}

// reference is the data of a reference model: other members, as many, of all examples.
func (p *population) reference(seed uint64, at int) (*data.Federation, []bool) {
	family := rng.NewFamily(seed, "members of reference models")
	return p.resplit(func(part, members, all int) []int {
		order := identity(all)
		family.Stream(at, part).Shuffle(order)
		return order[:members]
	})
}

// shadow is the data of one of several shadow models: of the target's own members a part
// of that nobody else has.
func (p *population) shadow(seed uint64, at, of int) (*data.Federation, []bool, error) {
	var fault error
	family := rng.NewFamily(seed, "members of shadow models")
	f, in := p.resplit(func(part, members, _ int) []int {
		order := identity(members)
		family.Stream(0, part).Shuffle(order)
		if members < of {
			fault = fmt.Errorf("%w: %s has %d members, which are not %d disjoint parts; use --shadows %d or fewer", ErrNotThere, p.whose(part), members, of, members)
		}
		return order[at*members/of : (at+1)*members/of]
	})
	return f, in, fault
}

func (p *population) whose(part int) string {
	if p.held {
		return p.subjects[part].name
	}
	return "the run"
}

// identity is 0..n-1.
func identity(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
