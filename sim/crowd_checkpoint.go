package sim

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// askedWords is how many numbers of 8 bytes a checkpoint has of everybody who was asked.
const askedWords = 15

// append adds the numbers.
func (a *asked) append(to []byte) []byte {
	declined := uint64(0)
	if a.Declined {
		declined = 1
	}
	m := &a.Account
	for _, v := range [askedWords]uint64{
		uint64(a.Client), uint64(m.Releases), math.Float64bits(m.Closed), uint64(m.Dimension), math.Float64bits(m.Multiplier),
		uint64(m.Same), math.Float64bits(m.Distance), math.Float64bits(m.Slack), uint64(m.Bare), math.Float64bits(a.Switch),
		uint64(a.Cluster), uint64(a.Paid.Rounds), uint64(a.Paid.Choices), uint64(a.Paid.Moments), uint64(a.Fell)<<1 | declined,
	} {
		to = binary.LittleEndian.AppendUint64(to, v)
	}
	return to
}

// read takes the numbers back.
func (a *asked) read(from []byte) {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(from[8*i:]) }
	number := func(i int) float64 { return math.Float64frombits(word(i)) }
	m := &a.Account
	a.Client, m.Releases, m.Closed, m.Dimension, m.Multiplier = int(word(0)), int64(word(1)), number(2), int(word(3)), number(4)
	m.Same, m.Distance, m.Slack, m.Bare, a.Switch = int64(word(5)), number(6), number(7), int64(word(8)), number(9)
	a.Cluster, a.Paid.Rounds, a.Paid.Choices, a.Paid.Moments = int(word(10)), int(word(11)), int(word(12)), int(word(13))
	a.Fell, a.Declined = int(int64(word(14))>>1), word(14)&1 == 1
}

// write writes everybody who was asked, a page at a time.
func (c *crowd) write(w io.Writer) error {
	var buffer []byte
	for i := range c.size {
		buffer = c.at(i).append(buffer)
		if len(buffer) >= 8*askedWords*pageSize || i == c.size-1 {
			if _, err := w.Write(buffer); err != nil {
				return fmt.Errorf("checkpoint: %w", err)
			}
			buffer = buffer[:0]
		}
	}
	return nil
}

// resume is a crowd of those who were asked before.
func (c *crowd) resume(from []byte) error {
	c.place, c.pages, c.size = map[int]int{}, nil, 0
	for ; len(from) > 0; from = from[8*askedWords:] {
		var a asked
		if len(from) < 8*askedWords {
			return fmt.Errorf("its list of clients is cut")
		}
		a.read(from)
		if _, twice := c.place[a.Client]; twice || a.Client < 0 || a.Client >= c.clients.Len() {
			return fmt.Errorf("its client %d is there twice, or none of the %d", a.Client, c.clients.Len())
		}
		c.add(a)
	}
	return nil
}
