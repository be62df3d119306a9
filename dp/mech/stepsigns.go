package mech

import (
	"slices"

	"github.com/coterie-fl/coterie/internal/kernel"
)

// last are a step's two sums, for the next one to be compared with.
type last struct{ gradient, direction []float32 }

// signs are what SignalDirections goes by: the last step as it was released and, for
// whoever simulates and watches, as it was without noise. Single precision is enough for
// the sign of a product, and half the memory.
//
// The vectors are as large as the model, so that a ClipState and the steps that go on from
// it share them: the next step's then lie elsewhere.
type signs struct {
	released, bare last
	lent           bool // released is a ClipState's, and must stay as it is
	spare          last // what the next step may write over instead
	// old is what a ClipState had before it was saved to: whoever undoes that needs it until
	// steps are opened again.
	old last
}

// empty is memory without content.
func (l last) empty() last { return last{l.gradient[:0], l.direction[:0]} }

func (s *signs) reset() {
	s.own()
	if s.spare.gradient == nil {
		s.spare = s.old
	}
	s.old = last{}
	s.released, s.bare = s.released.empty(), s.bare.empty()
}

// own has released be memory that may be written over, without content if it was lent.
func (s *signs) own() {
	if s.lent {
		s.released, s.spare, s.lent = s.spare.empty(), last{}, false
	}
}

// load goes on from a state, after reset.
func (s *signs) load(from *ClipState) {
	if s.spare.gradient == nil {
		s.spare = s.released
	}
	s.released, s.lent = last{from.Gradient, from.Direction}, true
}

func (s *signs) save(to *ClipState) {
	if s.lent { // no step was made since
		to.Gradient, to.Direction = slices.Clone(s.released.gradient), slices.Clone(s.released.direction)
		return
	}
	s.old = last{to.Gradient, to.Direction}
	to.Gradient, to.Direction, s.lent = s.released.gradient, s.released.direction, true
}

// compare is the sign of the gradient's product with the last step's direction, and with
// its gradient. False: there were none.
func compare[F float32 | float64](l *last, gradient, direction []F) (clip, step float64, ok bool) {
	if ok = len(l.gradient) == len(gradient) && len(l.direction) == len(gradient); ok {
		a, b := products(gradient, l.direction, l.gradient)
		clip, step = sign(a), sign(b)
	}
	return clip, step, ok
}

// note has a step take the place of the last one.
func note[F float32 | float64](l *last, gradient, direction []F) {
	l.gradient, l.direction = replace(l.gradient, gradient), replace(l.direction, direction)
}

// replace is src in single precision, in the memory of dst.
func replace[F float32 | float64](dst []float32, src []F) []float32 {
	if single, is := any(src).([]float32); is {
		return append(dst[:0], single...)
	}
	dst = slices.Grow(dst[:0], len(src))[:len(src)]
	for i, v := range src {
		dst[i] = float32(v)
	}
	return dst
}

// products are those of a vector with two others, in one pass: an addition waits for the
// one before it, and two sums wait at the same time.
func products[F float32 | float64](v []F, a, b []float32) (withA, withB float64) {
	if single, is := any(v).([]float32); is {
		return kernel.Dot(single, a), kernel.Dot(single, b)
	}
	a, b = a[:len(v)], b[:len(v)]
	for i, x := range v {
		withA += float64(x) * float64(a[i])
		withB += float64(x) * float64(b[i])
	}
	return withA, withB
}

// turnBy moves clip and step size by the signs of a released step (algorithm 3 of paper
// 001, lines 15 and 16), and notes whether they are those without noise.
func turnBy[F float32 | float64](s *Steps, gradient, direction []F, bareClip, bareStep float64, compared bool) {
	clip, step, ok := compare(&s.signs.released, gradient, direction)
	s.signs.own()
	note(&s.signs.released, gradient, direction)
	if !ok { // nothing was released before: nothing moves
		return
	}
	if s.rule.Clipping.Random {
		clip, step = s.coin(), s.coin()
	}
	s.rule.Clipping.turn(&s.state, clip, step)
	if s.trace == nil {
		return
	}
	up := func(sign float64, up, all *int64) {
		if sign > 0 {
			*up++
		}
		*all++
	}
	up(clip, &s.trace.ClipUp, &s.trace.ClipSigns)
	up(step, &s.trace.StepUp, &s.trace.StepSigns)
	if !compared {
		return
	}
	s.trace.Compared++
	if clip == bareClip {
		s.trace.ClipAgree++
	}
	if step == bareStep {
		s.trace.StepAgree++
	}
}

// coin is -1 or 1.
func (s *Steps) coin() float64 {
	word := uint64(0)
	if s.from.Exact != nil {
		word, _ = s.from.Exact.word() // a failing source fails where noise is drawn
	} else {
		word = s.from.Keyed.Uint64()
	}
	return 1 - 2*float64(word&1)
}
