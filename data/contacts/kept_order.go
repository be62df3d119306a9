package contacts

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// lot draws a number for an ordered pair of persons: AES under a key of the purpose's own,
// which nobody without the key can tell from independent draws. People are known by their
// numbers in the files, since places in memory change when somebody goes. A lot is of one
// goroutine.
type lot struct {
	block    cipher.Block
	in, drew []byte
}

func newLot(key uint64, purpose string) lot {
	long := sha256.Sum256(fmt.Appendf(nil, "contacts|%s|%d", purpose, key))
	return secretLot([16]byte(long[:16]))
}

// secretLot draws by a secret that is a key itself.
func secretLot(secret [16]byte) lot {
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		panic(err) // 16 bytes are a key
	}
	return lot{block: block, in: make([]byte, 16), drew: make([]byte, 16)}
}

func (l *lot) draw(a, b int64) uint64 {
	binary.LittleEndian.PutUint64(l.in, uint64(a))
	binary.LittleEndian.PutUint64(l.in[8:], uint64(b))
	l.block.Encrypt(l.drew, l.in)
	return binary.LittleEndian.Uint64(l.drew)
}

// ranking says which of a person's contacts come first: the smallest numbers do. It is of
// one goroutine.
type ranking struct {
	lot
	longest  bool
	bothWays bool // one number for a pair, whoever asks
	best     []ranked
}

// ranked is a contact's place in a person's list, and its rank.
type ranked struct {
	rank  uint64
	place int32
}

// newRankings are one for each worker.
func newRankings(r Rule, workers int, purpose string) []*ranking {
	all := make([]*ranking, workers)
	for w := range all {
		all[w] = &ranking{lot: newLot(r.Key, purpose), longest: r.Longest}
	}
	return all
}

// secondsBits hold the seconds of any contact: 2^13 times Tick are fewer than 2^17.
const secondsBits = 17

// of is the rank of person i's contact with person j.
func (o *ranking) of(g *Graph, i, j int, how How) uint64 {
	a, b := g.ID[i], g.ID[j]
	if o.bothWays && b < a {
		a, b = b, a
	}
	drew := o.draw(a, b)
	if !o.longest {
		return drew
	}
	return shortness(how) | drew>>secondsBits
}

// shortness is smaller for longer contacts: the upper bits of a rank, if the longest come
// first.
func shortness(how How) uint64 {
	return (1<<secondsBits - 1 - uint64(how.Seconds())) << (64 - secondsBits)
}

// first finds the first so many of person i's contacts, and returns the rank of the last
// of them: the largest number if all are.
func (o *ranking) first(g *Graph, i, most int) uint64 {
	others, hows := g.Contacts(i)
	return o.firstOf(g, i, most, others, hows)
}

// firstOf is first among given contacts. Of equal ones the earlier comes first.
func (o *ranking) firstOf(g *Graph, i, most int, others []uint32, hows []How) uint64 {
	o.best = o.best[:0]
	if len(others) <= most {
		for place := range others {
			o.best = append(o.best, ranked{place: int32(place)})
		}
		return math.MaxUint64
	}
	if most == 0 {
		return 0
	}
	if o.longest { // most of the time durations alone decide, and nothing needs to be drawn
		for place, how := range hows {
			o.insert(ranked{shortness(how), int32(place)}, most)
		}
		if last, decided := o.decided(g, i, others, hows); decided {
			return last
		}
		o.best = o.best[:0]
	}
	for place, j := range others {
		o.insert(ranked{o.of(g, i, int(j), hows[place]), int32(place)}, most)
	}
	return o.best[most-1].rank
}

// insert puts a contact in its place among the best, of which there are to be so many.
func (o *ranking) insert(p ranked, most int) {
	at := len(o.best)
	switch {
	case at < most:
		o.best = append(o.best, p)
	case p.rank < o.best[at-1].rank:
		at--
	default:
		return
	}
	for ; at > 0 && p.rank < o.best[at-1].rank; at-- {
		o.best[at] = o.best[at-1]
	}
	o.best[at] = p
}

// decided says whether nobody was left out who lasts as long as the last of the best, and
// the rank of that one.
func (o *ranking) decided(g *Graph, i int, others []uint32, hows []How) (last uint64, yes bool) {
	shortest, tied := o.best[len(o.best)-1].rank, 0
	for _, how := range hows {
		if shortness(how) == shortest {
			tied++
		}
	}
	for _, p := range o.best {
		if p.rank == shortest {
			tied--
			last = max(last, o.of(g, i, int(others[p.place]), hows[p.place]))
		}
	}
	return last, tied == 0
}

// places appends those that first found, in rising order.
func (o *ranking) places(to []int32) []int32 {
	begin := len(to)
	for _, p := range o.best {
		to = append(to, p.place)
	}
	slices.Sort(to[begin:])
	return to
}
