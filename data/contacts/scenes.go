package contacts

import (
	"cmp"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/internal/pool"
)

// Place is where people meet.
type Place struct {
	Longitude, Latitude float32
	For                 Did // what people come for; 0: somebody lives there
}

// scene is when and where a contact took place.
type scene struct {
	start uint16 // in ticks of the day
	place uint32
}

// sceneOf is a scene that begins at a second of the day.
func sceneOf(second int, place uint32) scene {
	return scene{uint16(min(second/Tick, math.MaxUint16)), place}
}

// scenery is all places: residences in order of rlid, then the others in order of alid.
func (p *Population) scenery() []Place {
	all := make([]Place, 0, p.Households()+len(p.places))
	for h := range p.Households() {
		longitude, latitude := p.residence(h)
		all = append(all, placeAt(longitude, latitude, 0))
	}
	for k, at := range p.places {
		longitude, latitude := p.location(k)
		all = append(all, placeAt(longitude, latitude, at.kind.did()))
	}
	return all
}

// placeAt is a place as the files, which have five digits of a degree, tell of it.
func placeAt(longitude, latitude float64, what Did) Place {
	const digits = 1e5
	return Place{float32(math.Round(longitude*digits) / digits), float32(math.Round(latitude*digits) / digits), what}
}

// sortScenes is sortRows for rows with scenes.
func (g *Graph) sortScenes(p *pool.Pool) {
	type contact struct {
		first uint64 // other and how
		at    scene
	}
	const chunk = 1 << 10
	rooms := make([][]contact, p.Workers())
	p.Each((g.Persons()+chunk-1)/chunk, func(worker, c int) {
		room := rooms[worker]
		for i := c * chunk; i < min(g.Persons(), (c+1)*chunk); i++ {
			from := g.Offsets[i]
			others, hows := g.Contacts(i)
			room = room[:0]
			for k, other := range others {
				room = append(room, contact{uint64(other)<<16 | uint64(hows[k]), scene{g.Start[from+int64(k)], g.Where[from+int64(k)]}})
			}
			slices.SortFunc(room, func(a, b contact) int {
				return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.at.start, b.at.start), cmp.Compare(a.at.place, b.at.place))
			})
			for k, c := range room {
				others[k], hows[k] = uint32(c.first>>16), How(c.first)
				g.Start[from+int64(k)], g.Where[from+int64(k)] = c.at.start, c.at.place
			}
		}
		rooms[worker] = room
	})
}
