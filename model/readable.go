package model

import (
	"fmt"

	"github.com/coterie-fl/coterie/data"
)

// reader is a learner of a network that does not read every value: an embedding has a vector for words
// alone. Where examples are protected, one that cannot be read must not be an error, which would be an
// answer that nobody has paid for: it counts for nothing, by a rule of this example alone.
type reader interface {
	// unreadable says what is wrong with an example; nil: nothing.
	unreadable(c *data.Client, i int) error
}

// Readable are those of a client's examples that a model can read. It is the client itself where all are.
func Readable(l Learner, c *data.Client) *data.Client {
	r, ok := l.(reader)
	if !ok {
		return c
	}
	var some []int
	for i := range c.Len() {
		if r.unreadable(c, i) == nil {
			some = append(some, i)
		}
	}
	if len(some) == c.Len() {
		return c
	}
	picked := c.Pick(some)
	return &picked
}

// Unreadable is what is wrong with the first of a client's examples that a model cannot read; nil: it can
// read all.
func Unreadable(l Learner, c *data.Client) error {
	r, ok := l.(reader)
	if !ok || c == nil {
		return nil
	}
	for i := range c.Len() {
		if err := r.unreadable(c, i); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	return nil
}

func (l *networkLearner[F]) unreadable(c *data.Client, i int) error {
	if l.people || !l.engine.network.chain.checks() || l.fitting(c) != nil { // which others tell
		return nil
	}
	if l.one == nil {
		l.one = make([]F, l.Input().Len())
	}
	l.put(l.one, c, i)
	return l.engine.network.chain.check(l.one)
}

// readable are those of a batch's examples that the network can read.
func (l *networkLearner[F]) readable(c *data.Client, batch []int) []int {
	if !l.engine.network.chain.checks() {
		return batch
	}
	l.read = l.read[:0]
	for _, i := range batch {
		if i < 0 || i >= c.Len() || l.unreadable(c, i) == nil { // places that are none are an error, as ever
			l.read = append(l.read, i)
		}
	}
	return l.read
}
