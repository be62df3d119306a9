package mech

import (
	"math"
	"slices"

	"github.com/coterie-fl/coterie/internal/kernel"
	"github.com/coterie-fl/coterie/internal/rng"
)

// last are a step's two sums, for the next one to be compared with.
type last struct{ gradient, direction []float32 }

// signs are what SignalDirections goes by: the last step as it was released and, for
// whoever simulates and watches, its gradient without noise. Single precision is enough for
// the sign of a product, and half the memory.
//
// The vectors are as large as the model, so that a ClipState and the steps that go on from
// it share them: the next step's then lie elsewhere.
type signs struct {
	released last
	bare     bareGradient
	lent     bool // released is a ClipState's, and must stay as it is
	spare    last // what the next step may write over instead
	// old is what a ClipState had before it was saved to: whoever undoes that needs it until
	// steps are opened again.
	old last
	// undrawn is the deviation of noise that released.direction is still without: nothing is
	// read of it but its product with the next gradient, and the noise's share in that is
	// one normal value times the gradient's length (docs/proofs/joint-clipping.md). 0: none.
	undrawn float64
	// away is where the last step's sums lie, of so many values; nil: they are released here,
	// in this process. AwayLast says that there was one.
	away       Remote
	awayLength int
	awayLast   bool
}

// bareGradient is a step's gradient without noise: what noise is taken from a release again,
// by the key that it follows from, or, of few values, a copy.
type bareGradient struct {
	values    []float32
	key       *[32]byte
	deviation float64
}

// empty is of no step.
func (b bareGradient) empty() bareGradient { return bareGradient{values: b.values[:0]} }

// empty is memory without content.
func (l last) empty() last { return last{l.gradient[:0], l.direction[:0]} }

func (s *signs) reset() {
	s.own()
	if s.spare.gradient == nil {
		s.spare = s.old
	}
	s.old, s.undrawn, s.away, s.awayLast = last{}, 0, nil, false
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

// blockLength is how many values are compared and noted at a time: they stay in the cache
// from one to the other.
const blockLength = normalsAtOnce

// replacement has a step take the place of the last one, block by block, and adds up the
// products of its gradient with the last one's direction and gradient.
type replacement struct {
	last, to   last // which may share their memory
	clip, step float64
	noise      float64 // of the last direction, along whatever has length 1; 0: it is in there
	squares    float64 // of the gradient, summed up if there is such noise
	ok         bool    // there was a last one
	room       [blockLength]float32
}

// by is the replacement of the last step by one of n values, in the memory of to.
func (l last) by(to *last, n int) replacement {
	to.gradient, to.direction = slices.Grow(to.gradient[:0], n)[:n], slices.Grow(to.direction[:0], n)[:n]
	return replacement{last: l, to: *to, ok: len(l.gradient) == n && len(l.direction) == n}
}

// replaceBy goes on with the values that begin at from.
func replaceBy[F float32 | float64](r *replacement, from int, gradient, direction []F) {
	for len(gradient) > 0 {
		n := min(blockLength, len(gradient))
		end := from + n
		block := inSingle(r.room[:n], gradient[:n])
		if r.ok {
			r.clip += kernel.Dot(block, r.last.direction[from:end])
			r.step += kernel.Dot(block, r.last.gradient[from:end])
		}
		if r.noise != 0 {
			r.squares += kernel.SquaredNorm(block)
		}
		copy(r.to.gradient[from:end], block)
		copy(r.to.direction[from:end], inSingle(r.to.direction[from:end], direction[:n]))
		from, gradient, direction = end, gradient[n:], direction[n:]
	}
}

// bareProducts are those of a step's sums without noise with the last one's.
type bareProducts struct {
	last       last
	noise      *normals  // in the last gradient, negative; nil: values are without it
	values     []float32 // to be replaced; nil: nobody keeps them
	clip, step float64
	ok         bool // there was a last one
	room       [2][blockLength]float32
}

// withoutNoise are the products of a step of n values, in whose gradient there will be a
// noise, with the last one.
func (s *signs) withoutNoise(n int, last last, noise *normals) bareProducts {
	b := bareProducts{last: last}
	was := s.bare
	if was.key != nil {
		b.noise, b.ok = redrawn(was.key, -was.deviation), len(last.gradient) == n
	} else {
		b.ok = len(was.values) == n && len(last.gradient) == n
	}
	s.bare = bareGradient{was.values[:0], noise.key, noise.deviation}
	if noise.key == nil {
		b.values = slices.Grow(s.bare.values, n)[:n]
		s.bare.values = b.values
	}
	return b
}

// addBare goes on with a gradient's values that begin at from, before the last release's are
// replaced.
func addBare[F float32 | float64](b *bareProducts, from int, gradient []F) {
	n := len(gradient)
	block := inSingle(b.room[0][:n], gradient)
	if b.ok {
		before := b.room[1][:n]
		if b.noise != nil {
			copy(before, b.last.gradient[from:])
			addFrom(b.noise, before)
		} else {
			copy(before, b.values[from:])
		}
		b.clip += kernel.Dot(block, b.last.direction[from:from+n])
		b.step += kernel.Dot(block, before)
	}
	if b.values != nil {
		copy(b.values[from:], block)
	}
}

// signs are those of the products; false: there are none.
func (r *replacement) signs() (clip, step float64, ok bool) {
	return sign(r.clip + r.noise*math.Sqrt(r.squares)), sign(r.step), r.ok
}

// release is the replacement of the last release by one of n values.
func (s *signs) release(n int) replacement {
	was := s.released
	s.own()
	return was.by(&s.released, n)
}

// release is signs.release, with the noise that is still to be drawn.
func (s *Steps) release(n int) replacement {
	r := s.signs.release(n)
	s.drawLate(&r)
	return r
}

// drawLate draws what of the last direction's noise is needed, if it was not drawn.
func (s *Steps) drawLate(r *replacement) {
	if s.signs.undrawn > 0 {
		r.noise, s.signs.undrawn = s.signs.undrawn*rng.Normal(s.from.Keyed), 0
	}
}

// inSingle are values in single precision: as they are, or else in room.
func inSingle[F float32 | float64](room []float32, values []F) []float32 {
	if single, is := any(values).([]float32); is {
		return single
	}
	kernel.Narrow(room, any(values).([]float64))
	return room
}

// turnBy moves clip and step size by the signs of a released step (algorithm 3 of paper
// 001, lines 15 and 16), and notes whether they are those without noise, where somebody
// watches.
func (s *Steps) turnBy(released *replacement, bare *bareProducts) {
	clip, step, ok := released.signs()
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
	if !bare.ok {
		return
	}
	s.trace.Compared++
	if clip == sign(bare.clip) {
		s.trace.ClipAgree++
	}
	if step == sign(bare.step) {
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
