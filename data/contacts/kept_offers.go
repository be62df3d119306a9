package contacts

import (
	"slices"
	"sync/atomic"

	"github.com/coterie-fl/coterie/internal/pool"
)

// nominated is the rule of OwnRecord. Person j offers itself to the first S-1 contacts of
// its own report; example i takes the first K of the offers made to it. A contact is told
// as the person who offers itself reports it. So j's record is in its own example and in
// those that it offers itself to, and nowhere else.
//
// Offers are found twice, to count them and to fill them in: cheaper than to hold them.
func (r Rule) nominated(g *Graph, workers *pool.Pool) Kept {
	n := g.Persons()
	k := Kept{Offsets: make([]int64, n+1)}
	offers := newRankings(r, workers.Workers(), "offer")
	received := make([]uint32, n)
	workers.Each(n, func(w, j int) {
		others, _ := g.Contacts(j)
		offers[w].first(g, j, r.Most-1)
		for _, p := range offers[w].best {
			atomic.AddUint32(&received[others[p.place]], 1)
		}
	})
	for i, count := range received {
		k.Offsets[i+1] = int64(count)
	}
	k.allocate()
	workers.Each(n, func(w, j int) {
		others, hows := g.Contacts(j)
		offers[w].first(g, j, r.Most-1)
		for _, p := range offers[w].best {
			i := others[p.place]
			at := k.Offsets[i] + int64(atomic.AddUint32(&received[i], ^uint32(0)))
			k.Other[at], k.How[at] = uint32(j), hows[p.place]
		}
	})
	takes := newRankings(r, workers.Workers(), "take")
	scratch := make([][]uint64, workers.Workers())
	workers.Each(n, func(w, i int) {
		others, hows := k.Contacts(i)
		scratch[w] = inOrder(others, hows, scratch[w][:0])
		received[i] = uint32(takes[w].cut(g, i, r.Take, others, hows))
	})
	k.closeGaps(received)
	return k
}

// inOrder sorts contacts by person, then kind and duration: workers have filled them in as
// they came.
func inOrder(others []uint32, hows []How, scratch []uint64) []uint64 {
	for at, j := range others {
		scratch = append(scratch, uint64(j)<<16|uint64(hows[at]))
	}
	slices.Sort(scratch)
	for at, both := range scratch {
		others[at], hows[at] = uint32(both>>16), How(both)
	}
	return scratch
}

// cut moves the first so many contacts of person i to the front and returns how many there
// are.
func (o *ranking) cut(g *Graph, i, most int, others []uint32, hows []How) int {
	if len(others) <= most {
		return len(others)
	}
	o.firstOf(g, i, most, others, hows)
	slices.SortFunc(o.best, func(a, b ranked) int { return int(a.place - b.place) })
	for at, p := range o.best {
		others[at], hows[at] = others[p.place], hows[p.place]
	}
	return most
}

// closeGaps leaves so many contacts of each person.
func (k *Kept) closeGaps(counts []uint32) {
	to := int64(0)
	for i, count := range counts {
		from := k.Offsets[i]
		k.Offsets[i] = to
		copy(k.Other[to:], k.Other[from:from+int64(count)])
		copy(k.How[to:], k.How[from:from+int64(count)])
		to += int64(count)
	}
	k.Offsets[len(counts)] = to
	k.Other, k.How = k.Other[:to], k.How[:to]
}
