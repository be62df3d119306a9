package contacts

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// Hash writes what examples of people to train on are made of: their graph, and the whole
// that it is a part of.
func (t trainees) Hash(part func(key any, write func(w io.Writer))) { hashGraphs(part, t.g, t.whole) }

// Hash writes what is foretold from.
func (f foretold) Hash(part func(key any, write func(w io.Writer))) { hashGraphs(part, f.g) }

// Hash writes what examples with neighbours are made of.
func (h neighbourhoods) Hash(part func(key any, write func(w io.Writer))) {
	hashGraphs(part, h.g, h.whole)
}

func hashGraphs(part func(key any, write func(w io.Writer)), graphs ...*Graph) {
	for _, g := range graphs {
		if g != nil {
			part(g, g.hash)
		}
	}
}

// hash writes all of a graph to a hash, which takes everything.
func (g *Graph) hash(w io.Writer) {
	b := bufio.NewWriterSize(w, 1<<15)
	fmt.Fprintln(b, g.Days, g.ByStays, g.Places)
	hashed(b, g.ID)
	hashed(b, g.Household)
	hashed(b, g.Size)
	hashed(b, g.Age)
	hashed(b, g.Sex)
	hashed(b, g.Region)
	hashed(b, g.Did)
	hashed(b, g.Out)
	hashed(b, g.Offsets)
	hashed(b, g.Other)
	hashed(b, g.How)
	hashed(b, g.Start)
	hashed(b, g.Where)
	hashed(b, g.Infected)
	hashed(b, g.Recovered)
	hashed(b, g.Target)
	_ = b.Flush()
}

// hashed writes numbers, with how many they are before them.
func hashed[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int64](b *bufio.Writer, all []T) {
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], uint64(len(all)))
	_, _ = b.Write(word[:])
	for _, v := range all {
		binary.LittleEndian.PutUint64(word[:], uint64(v))
		_, _ = b.Write(word[:])
	}
}
