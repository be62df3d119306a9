package membership

import (
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/rng"
)

// resplit is the population's data with other members, and which of the attacked examples
// are among them. Of clients that hold examples out every one has as many members as
// before; otherwise as many clients train.
func (p *population) resplit(choose func(part, members, all int) []int) (*data.Federation, []bool) {
	f := *p.federation
	f.Sensitive, f.Train, f.Validation = nil, nil, nil
	var in []bool
	note := func(s *subject, chosen func(i int) bool) {
		for _, i := range s.scored {
			in = append(in, chosen(i))
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
		client := s.pool
		client.Held = s.held
		if trains[k] {
			f.Train = append(f.Train, client)
		} else {
			f.Validation = append(f.Validation, client)
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
