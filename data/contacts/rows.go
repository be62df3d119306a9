package contacts

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/coterie-fl/coterie/internal/pool"
)

// errMoved: the two passes over contacts did not see the same ones.
var errMoved = errors.New("contacts changed while they were read; read them again")

// both adds a contact to both persons' rows; it may be called by several workers at once.
type both func(a, b uint32, howA, howB How, at scene)

// fillRows makes the graph's rows of contacts. It goes through them twice, by pass: it
// counts degrees, then puts everything in its place, so that nothing is stored twice. With
// scenes it keeps when and where contacts took place.
func (g *Graph) fillRows(p *pool.Pool, scenes bool, pass func(add both) error) error {
	degree := make([]uint32, g.Persons())
	err := pass(func(a, b uint32, _, _ How, _ scene) {
		atomic.AddUint32(&degree[a], 1)
		atomic.AddUint32(&degree[b], 1)
	})
	if err != nil {
		return err
	}
	g.Offsets = make([]int64, len(degree)+1)
	for i, d := range degree {
		g.Offsets[i+1] = g.Offsets[i] + int64(d)
	}
	total := g.Offsets[len(degree)]
	g.Other, g.How = make([]uint32, total), make([]How, total)
	if scenes {
		g.Start, g.Where = make([]uint16, total), make([]uint32, total)
	}
	var moved atomic.Bool
	put := func(a, b uint32, how How, seen scene) {
		left := atomic.AddUint32(&degree[a], ^uint32(0))
		at := g.Offsets[a] + int64(left)
		if at >= g.Offsets[a+1] { // there were none left, and it wrapped around
			moved.Store(true)
			atomic.AddUint32(&degree[a], 1)
			return
		}
		if g.Other[at], g.How[at] = b, how; scenes {
			g.Start[at], g.Where[at] = seen.start, seen.place
		}
	}
	err = pass(func(a, b uint32, howA, howB How, seen scene) {
		put(a, b, howA, seen)
		put(b, a, howB, seen)
	})
	if err != nil {
		return err
	}
	if moved.Load() || slices.ContainsFunc(degree, func(left uint32) bool { return left != 0 }) {
		return errMoved
	}
	if scenes {
		g.sortScenes(p)
		return nil
	}
	g.sortRows(p)
	return nil
}

// sortRows makes rows the same, whoever filled them in which order.
func (g *Graph) sortRows(p *pool.Pool) {
	const chunk = 1 << 10
	rooms := make([][]uint64, p.Workers())
	p.Each((g.Persons()+chunk-1)/chunk, func(worker, c int) {
		room := rooms[worker]
		for i := c * chunk; i < min(g.Persons(), (c+1)*chunk); i++ {
			others, hows := g.Contacts(i)
			room = room[:0]
			for k, other := range others {
				room = append(room, uint64(other)<<16|uint64(hows[k]))
			}
			slices.Sort(room)
			for k, v := range room {
				others[k], hows[k] = uint32(v>>16), How(v)
			}
		}
		rooms[worker] = room
	})
}
