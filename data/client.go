package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Rows are examples: Features values of X for every Y.
type Rows struct {
	X        []float64
	Y        []float64
	Features int
}

// Len is the number of rows.
func (r Rows) Len() int { return len(r.Y) }

// Pictures are some of a store of images.
type Pictures struct {
	Images *Images
	Index  []int
}

// Client is what one participant holds: examples, which are rows, pictures or people, and who
// it is. It is how all readers see examples: Len says how many there are, Pick gives
// some of them; models read Rows or Pictures themselves, without a call an example.
// What they read most stands first.
type Client struct {
	Rows
	Pictures
	People People  // nil: examples are rows or pictures; Y of Rows are then labels to judge by, if anything
	Group  int     // the group that it truly belongs to; known in simulation only
	Name   string  // empty: it has none
	Held   *Client // what it holds out of its own examples, perhaps nothing; nil: nobody asked
	// Sensitive is, by sensitive attribute and row, the place in the attribute's values,
	// -1: none of them; nil: there are none.
	Sensitive [][]int32
}

// Len is the number of examples.
func (c *Client) Len() int {
	if c.Images != nil {
		return len(c.Index)
	}
	if c.People != nil {
		return c.People.Persons()
	}
	return c.Rows.Len()
}

// PictureCount is how many pictures clients' sets have, with what they hold out: also those of a set that
// nobody's examples are.
func PictureCount(clients ...[]Client) (count int) {
	counted := map[*Images]bool{}
	add := func(c *Client) {
		if c != nil && c.Images != nil && !counted[c.Images] {
			counted[c.Images] = true
			count += c.Images.Len()
		}
	}
	for _, some := range clients {
		for i := range some {
			add(&some[i])
			add(some[i].Held)
		}
	}
	return count
}

// Pick is the client with some of its examples only, by their places. Rows are copied.
func (c *Client) Pick(places []int) Client {
	out := Client{Group: c.Group, Name: c.Name, Held: c.Held}
	for _, groups := range c.Sensitive {
		out.Sensitive = append(out.Sensitive, those(groups, places))
	}
	if c.People != nil {
		out.People, out.Features = somePeople{c.People, places}, c.Features
		if len(c.Y) > 0 {
			out.Y = those(c.Y, places)
		}
		return out
	}
	if c.Images == nil {
		out.Rows = c.Rows.pick(places)
		return out
	}
	out.Images, out.Index = c.Images, those(c.Index, places)
	return out
}

// Values sets dst to example i: a row's features, or a picture's pixels from 0 to 1.
func (c *Client) Values(dst []float64, i int) error {
	if c.People != nil {
		return errors.New("a person has no row of values: they are built from its contacts")
	}
	if c.Images == nil {
		if len(dst) != c.Features {
			return fmt.Errorf("rows have %d features, not %d", c.Features, len(dst))
		}
		copy(dst, c.X[i*c.Features:(i+1)*c.Features])
		return nil
	}
	pixels := c.Images.picture(c.Index[i])
	if len(dst) != len(pixels) {
		return fmt.Errorf("pictures have %d pixels, not %d", len(pixels), len(dst))
	}
	for j, v := range pixels {
		dst[j] = float64(v) / 255
	}
	return nil
}

// appendBytes adds what example i is, for a draw that depends on it alone: a row's values,
// a picture's pixels, or a person's number.
func (c *Client) appendBytes(i int, buffer []byte) []byte {
	if c.People != nil {
		return binary.LittleEndian.AppendUint64(buffer, uint64(c.People.ID(i)))
	}
	if c.Images != nil {
		return append(buffer, c.Images.picture(c.Index[i])...)
	}
	return appendRow(buffer, c.X[i*c.Features:(i+1)*c.Features], c.Y[i])
}

// appendRow adds a row's values, little-endian.
func appendRow(buffer []byte, x []float64, y float64) []byte {
	at := len(buffer)
	buffer = slices.Grow(buffer, 8*len(x)+8)[:at+8*len(x)+8]
	for _, v := range x {
		binary.LittleEndian.PutUint64(buffer[at:], math.Float64bits(v))
		at += 8
	}
	binary.LittleEndian.PutUint64(buffer[at:], math.Float64bits(y))
	return buffer
}

// pick copies some rows.
func (r Rows) pick(index []int) Rows {
	out := Rows{Features: r.Features, X: make([]float64, 0, len(index)*r.Features), Y: make([]float64, 0, len(index))}
	for _, i := range index {
		out.X = append(out.X, r.X[i*r.Features:(i+1)*r.Features]...)
		out.Y = append(out.Y, r.Y[i])
	}
	return out
}
