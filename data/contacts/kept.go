package contacts

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/coterie-fl/coterie/internal/pool"
)

// The relations: what it is that goes when the claim counts what a person's absence
// changes, and by which rule contacts are kept so that it can be counted.
// docs/proofs/node-relations.md has a theorem for each that has one.
const (
	OwnRecord      = "own-record"      // a person's attributes, history and own report of contacts; what others report stays theirs
	HomeRemoval    = "home-removal"    // a person with all its contacts, of which only those at home are kept
	ThinnedRemoval = "thinned-removal" // a person with all its contacts, of which a keyed hash keeps a share
	Pruned         = "pruned"          // heuristic: a person of the graph that is left after a cap
	Authors        = "authors"         // heuristic: every example draws neighbours of its own
)

// Rule says which contacts enter whose example.
type Rule struct {
	Relation string
	// Most is S, the examples that one person's record can be in, its own included. Under
	// OwnRecord a person offers itself to S-1 others; under HomeRemoval it is the largest
	// declared household that contributes; under Pruned the cap; under Authors how many
	// neighbours an example draws.
	Most    int
	Take    int      // K: the offers that an example takes at most (OwnRecord)
	Keep    float64  // tau, the share of contacts that thinning keeps
	Degree  int      // the contacts that nobody has more of: a promise, of thinning
	Key     uint64   // of hashes
	Secret  [16]byte // that thinning draws by: of one step, and known to nobody
	Longest bool     // the longest contacts come first, ties by hash; otherwise all by hash
}

// Kept are the contacts of every example, compressed as those of a Graph.
type Kept struct {
	Offsets []int64
	Other   []uint32
	How     []How
	// Start and Where are the scenes, if the graph has some and people chose among their own
	// contacts; nil otherwise.
	Start []uint16
	Where []uint32
}

// Contacts are those in person i's example.
func (k *Kept) Contacts(i int) ([]uint32, []How) {
	from, to := k.Offsets[i], k.Offsets[i+1]
	return k.Other[from:to], k.How[from:to]
}

// Examples is S: how many examples change at most when one unit of the relation goes, its
// own included; proved says whether that is a theorem. Thinning's is the worst of a
// distribution: Appearances has it.
func (r Rule) Examples() (most int, proved bool) {
	switch r.Relation {
	case OwnRecord, HomeRemoval:
		return r.Most, true
	case ThinnedRemoval:
		return r.Degree + 1, true
	}
	return r.Most, false
}

// Check says what is wrong with a rule, all of it.
func (r Rule) Check() error {
	var faults []error
	refuse := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if r.Relation != ThinnedRemoval && r.Most < 1 {
		refuse("a person's own example is one already: the most examples that a person is in cannot be %d, 1 is the least", r.Most)
	}
	switch r.Relation {
	case OwnRecord:
		if r.Take < 1 {
			refuse("an example cannot take %d of the offers made to it: 1 is the least, 20 is usual", r.Take)
		}
	case ThinnedRemoval:
		if !(r.Keep > 0 && r.Keep <= 1) {
			refuse("thinning cannot keep a share of %v of the contacts: it must be above 0 and at most 1", r.Keep)
		}
		if r.Degree < 1 {
			refuse("thinning needs a promise of how many contacts nobody has more of; it is %d, 1 is the least", r.Degree)
		}
	case HomeRemoval, Pruned, Authors:
	default:
		refuse("nothing is known of the relation %q; there are %s, %s, %s, %s and %s", r.Relation, OwnRecord, HomeRemoval, ThinnedRemoval, Pruned, Authors)
	}
	return errors.Join(faults...)
}

// Of applies the rule. Time is linear in the contacts, memory in those that are kept, and
// the result is the same for any number of cores.
func (r Rule) Of(g *Graph) (Kept, error) {
	if err := r.Check(); err != nil {
		return Kept{}, err
	}
	for i := 1; i < len(g.ID); i++ { // who changes places by having another's number would change other examples
		if g.ID[i] <= g.ID[i-1] {
			return Kept{}, fmt.Errorf("persons must be in order of their numbers, each once: number %d comes after %d", g.ID[i], g.ID[i-1])
		}
	}
	workers := pool.New(runtime.GOMAXPROCS(0))
	defer workers.Close()
	switch r.Relation {
	case OwnRecord:
		return r.nominated(g, workers), nil
	case HomeRemoval:
		if err := householdsAsDeclared(g); err != nil {
			return Kept{}, err
		}
		return g.chosen(workers, r.atHome(g)), nil
	case ThinnedRemoval:
		if err := r.promiseHolds(g); err != nil {
			return Kept{}, err
		}
		if r.Secret == [16]byte{} {
			return Kept{}, errNoSecret
		}
		return g.chosen(workers, r.thinned(g, workers.Workers())), nil
	case Pruned:
		return g.chosen(workers, r.mutual(g, workers)), nil
	default:
		return g.chosen(workers, r.drawn(g, workers.Workers())), nil
	}
}

// choice appends the places, in person i's own contacts, of those that enter its example,
// in rising order.
type choice func(worker, i int, places []int32) []int32

// chosen are the contacts that a choice keeps: counted first, then filled in, so that
// nothing is held twice.
func (g *Graph) chosen(workers *pool.Pool, choose choice) Kept {
	n := g.Persons()
	k := Kept{Offsets: make([]int64, n+1)}
	scratch := make([][]int32, workers.Workers())
	workers.Each(n, func(w, i int) {
		scratch[w] = choose(w, i, scratch[w][:0])
		k.Offsets[i+1] = int64(len(scratch[w]))
	})
	k.allocate()
	if g.Start != nil {
		k.Start, k.Where = make([]uint16, len(k.Other)), make([]uint32, len(k.Other))
	}
	workers.Each(n, func(w, i int) {
		from := g.Offsets[i]
		scratch[w] = choose(w, i, scratch[w][:0])
		for at, place := range scratch[w] {
			to, of := k.Offsets[i]+int64(at), from+int64(place)
			if k.Other[to], k.How[to] = g.Other[of], g.How[of]; k.Start != nil {
				k.Start[to], k.Where[to] = g.Start[of], g.Where[of]
			}
		}
	})
	return k
}

// allocate turns counts into offsets and makes room for that many.
func (k *Kept) allocate() {
	for i := 1; i < len(k.Offsets); i++ {
		k.Offsets[i] += k.Offsets[i-1]
	}
	total := k.Offsets[len(k.Offsets)-1]
	k.Other, k.How = make([]uint32, total), make([]How, total)
}

// atHome keeps what happened at home within households that are declared to be no larger
// than S. It looks at the pair alone, and at nothing that another's going would change.
func (r Rule) atHome(g *Graph) choice {
	return func(_, i int, places []int32) []int32 {
		if int(g.Size[i]) > r.Most {
			return places
		}
		others, hows := g.Contacts(i)
		for place, j := range others {
			if hows[place].Kind() == Home && g.Household[j] == g.Household[i] {
				places = append(places, int32(place))
			}
		}
		return places
	}
}

// householdsAsDeclared refuses tables in which more people live in a household than it is
// declared to have: as many as that change when one of them goes.
func householdsAsDeclared(g *Graph) error {
	if g.Persons() == 0 {
		return nil
	}
	members := make([]uint32, int(slices.Max(g.Household))+1)
	for _, h := range g.Household {
		members[h]++
	}
	for i, h := range g.Household {
		if members[h] > uint32(g.Size[i]) {
			return fmt.Errorf("%d people live in the household of person %d, which is declared to have %d: the claim counts on the declared size; correct it in the household table to %d or more", members[h], g.ID[i], g.Size[i], members[h])
		}
	}
	return nil
}

// drawn is the authors' way: every example takes contacts of its own, whoever else holds
// them.
func (r Rule) drawn(g *Graph, workers int) choice {
	rankings := newRankings(r, workers, "draw")
	return func(w, i int, places []int32) []int32 {
		o := rankings[w]
		o.first(g, i, r.Most)
		return o.places(places)
	}
}

// mutual keeps a contact that is among the first S-1 of both, so that nobody is in more
// than S examples of the graph that is left. Of the given graph that says nothing: when
// somebody goes, the places that it had pass on.
func (r Rule) mutual(g *Graph, workers *pool.Pool) choice {
	rankings := newRankings(r, workers.Workers(), "pair")
	for _, o := range rankings {
		o.bothWays = true
	}
	last := make([]uint64, g.Persons()) // the rank of the last one that a person would have
	workers.Each(g.Persons(), func(w, i int) {
		last[i] = rankings[w].first(g, i, r.Most-1)
	})
	return func(w, i int, places []int32) []int32 {
		if r.Most == 1 {
			return places
		}
		others, hows := g.Contacts(i)
		for place, j := range others {
			if of := rankings[w].of(g, i, int(j), hows[place]); of <= last[i] && of <= last[j] {
				places = append(places, int32(place))
			}
		}
		return places
	}
}
