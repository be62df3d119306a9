package mech

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
)

// ErrUnpaid means that a mechanism was to draw what nobody was charged for.
var ErrUnpaid = errors.New("a draw that was not paid for")

// Paid is what a release was charged for and has not drawn yet. Mechanisms take from
// it before they draw: what was not charged (one step more, less noise, another
// rate) is refused, so that the noise drawn is the noise paid for.
type Paid struct {
	terms Terms
	claim event.Claim
	left  []charged
}

// charged is one kind of draw and how often it may still be made.
type charged struct {
	what  event.Event
	times int64
}

// NewPaid opens a release that was paid for.
func NewPaid(r event.Release) (*Paid, error) {
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("paid: %w", err)
	}
	p := &Paid{terms: Terms{Unit: r.Unit, Relation: r.Relation, Trust: r.Trust}, claim: r.Claim}
	return p, p.add(r.What, 1)
}

// add lists single draws. Validate has bounded the depth.
func (p *Paid) add(e event.Event, times int64) error {
	switch e := e.(type) {
	case event.Composed:
		for _, part := range e.Parts {
			if err := p.add(part, times); err != nil {
				return err
			}
		}
	case event.Repeated:
		if e.Times > 0 && times > maxDraws/e.Times {
			return fmt.Errorf("paid: more than %d draws", int64(maxDraws))
		}
		return p.add(e.Of, times*e.Times)
	case event.Sampled:
		if e.Sampling == event.FullBatch {
			return p.add(e.Of, times) // it is the draw itself
		}
		p.left = append(p.left, charged{e, times})
	case event.Tuning:
		return fmt.Errorf("paid: the best of several runs is not one release's draws")
	default:
		p.left = append(p.left, charged{e, times})
	}
	return nil
}

const maxDraws = 1 << 50

// Left is how many draws are paid for and not made.
func (p *Paid) Left() (draws int64) {
	for _, c := range p.left {
		draws += c.times
	}
	return draws
}

// find is where a draw is listed that may still be made.
func (p *Paid) find(what event.Event) (int, error) {
	for i, c := range p.left {
		if c.what == what && c.times > 0 {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%w: %s; left is %s", ErrUnpaid, event.Describe(what), p.inWords())
}

// inWords lists what may still be drawn.
func (p *Paid) inWords() string {
	var list []string
	for _, c := range p.left {
		if c.times > 0 {
			list = append(list, event.Describe(event.Repeated{Times: c.times, Of: c.what}))
		}
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", and ")
}

// take counts one draw that is about to be made.
func (p *Paid) take(at int) error {
	c := &p.left[at]
	if c.times < 1 {
		return fmt.Errorf("%w: all draws of %s were made", ErrUnpaid, event.Describe(c.what))
	}
	c.times--
	return nil
}

// draw counts one draw, right before it is made.
func (p *Paid) draw(what event.Event) error {
	at, err := p.find(what)
	if err != nil {
		return err
	}
	return p.take(at)
}

// Release is Gaussian.Release of what was paid for.
func (p *Paid) Release(g Gaussian, dst []int64, s *ClippedSum, e *Entropy) error {
	if err := p.draw(g.Event()); err != nil {
		return fmt.Errorf("gaussian: %w", err)
	}
	_, err := g.Release(dst, s, p.terms, e)
	return err
}

// Simulate is Gaussian.Simulate of what was paid for.
func (p *Paid) Simulate(g Gaussian, dst []float64, s *SimulatedSum, src rand.Source) error {
	if err := p.draw(g.Event()); err != nil {
		return fmt.Errorf("gaussian: %w", err)
	}
	_, err := g.Simulate(dst, s, p.terms, src)
	return err
}

// Choose is Selection.Choose, or with simulated noise Simulate, of what was paid for.
func (p *Paid) Choose(s Selection, scores Scores, from Randomness) (int, error) {
	if err := p.draw(s.Event()); err != nil {
		return 0, fmt.Errorf("selection: %w", err)
	}
	var choice int
	var err error
	if from.Exact != nil {
		choice, _, err = s.Choose(scores, p.terms, from.Exact)
	} else {
		choice, _, err = s.Simulate(scores, p.terms, from.Keyed)
	}
	return choice, err
}
