package fair

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/coterie-fl/coterie/internal/rng"
)

// What a zero Bootstrap means.
const (
	DefaultResamples = 2000
	DefaultLevel     = 0.95
)

// maxResampled bounds the figures kept for all resamples together (512 MiB).
const maxResampled = 1 << 26

// Bootstrap says how intervals are made: units are drawn with replacement, as
// many as there are, and the interval holds the middle of the figures so found
// (the percentile interval of Efron 1979). The same seed gives the same interval.
type Bootstrap struct {
	Seed      uint64
	Resamples int     // 0: DefaultResamples
	Level     float64 // 0: DefaultLevel
}

// resolved fills the defaults in and checks the settings.
func (b Bootstrap) resolved() (Bootstrap, error) {
	b.Resamples, b.Level = cmp.Or(b.Resamples, DefaultResamples), cmp.Or(b.Level, DefaultLevel)
	if !(b.Level > 0 && b.Level < 1) {
		return b, fmt.Errorf("fair: the interval's level is %v: it must lie between 0 and 1", b.Level)
	}
	if b.Resamples < 0 || b.rank() < 1 {
		return b, fmt.Errorf("fair: %d resamples are too few for intervals at level %v: take at least %.0f",
			b.Resamples, b.Level, math.Ceil(2/(1-b.Level))-1)
	}
	return b, nil
}

// rank is the place of the interval's ends, counted from outside: of R sorted
// figures, those at (R+1)a and (R+1)(1-a), a half of what the level leaves out
// (Davison and Hinkley 1997, section 5.3).
func (b Bootstrap) rank() int {
	const slack = 1e-9 // 1 - 0.9 is a little less than 0.1
	return int(float64(b.Resamples+1)*(1-b.Level)/2 + slack)
}

// resampled holds figures by resample, one sorted column each; undefined ones
// are NaN and come first.
type resampled struct {
	Bootstrap
	columns []float64
}

// resample draws the units again and again. measure turns sums by group into
// figures.
func (s *sample) resample(b Bootstrap, figures int, measure func(totals, out []float64)) (*resampled, error) {
	if figures > maxResampled/b.Resamples {
		return nil, fmt.Errorf("fair: %d resamples of %d figures do not fit in memory: take fewer resamples or fewer groups", b.Resamples, figures)
	}
	r := &resampled{Bootstrap: b, columns: make([]float64, figures*b.Resamples)}
	family := rng.NewFamily(b.Seed, "fair bootstrap")
	drawer, columns := s.drawer(), s.columns()
	var src rng.Stream
	totals := make([]float64, s.groups*s.kinds.width)
	out := make([]float64, figures)
	for i := range b.Resamples {
		src.Key(&family, i, 0)
		columns.totals(drawer.draw(&src), totals)
		measure(totals, out)
		for f, v := range out {
			r.columns[f*b.Resamples+i] = v
		}
	}
	for f := range figures {
		slices.Sort(r.column(f))
	}
	return r, nil
}

func (r *resampled) column(figure int) []float64 {
	return r.columns[figure*r.Resamples:][:r.Resamples]
}

// interval gives a figure's interval. Undefined resamples count as lying beyond
// both ends; if an end falls among them, ok is false.
func (r *resampled) interval(figure int) (low, high float64, undefined int, ok bool) {
	column := r.column(figure)
	for undefined < len(column) && math.IsNaN(column[undefined]) {
		undefined++
	}
	rank := r.rank()
	if undefined >= rank {
		return 0, 0, undefined, false
	}
	return column[rank-1], column[undefined+len(column)-rank], undefined, true
}

// Draws are divided among halves of the kinds while that is cheaper than drawing
// one by one: while there are many units to a kind, or more units than a fast
// cache holds (BenchmarkDraw).
const (
	manyToAKind = 12
	blockUnits  = 1 << 12
)

// drawer draws as many units as there are, all equally likely, with replacement.
type drawer struct {
	kindOf []int32
	before []int // units of earlier kinds
	times  []int32
}

func (s *sample) drawer() *drawer {
	d := &drawer{kindOf: s.kindOf, before: make([]int, len(s.copies)+1), times: make([]int32, len(s.copies))}
	for kind, n := range s.copies {
		d.before[kind+1] = d.before[kind] + int(n)
	}
	return d
}

// draw gives how often each kind was drawn, until the next call.
func (d *drawer) draw(src *rng.Stream) []int32 {
	d.divide(src, 0, len(d.times), len(d.kindOf))
	return d.times
}

// divide spreads draws over the kinds from..to-1. How many of them fall on the
// first half is binomial.
func (d *drawer) divide(src *rng.Stream, from, to, draws int) {
	units := d.before[to] - d.before[from]
	switch {
	case to-from == 1:
		d.times[from] = int32(draws)
	case units <= blockUnits && units < manyToAKind*(to-from):
		d.drawEach(src, from, to, draws)
	default:
		middle := (from + to) / 2
		low := binomial(src, draws, uint64(d.before[middle]-d.before[from]), uint64(units))
		d.divide(src, from, middle, low)
		d.divide(src, middle, to, draws-low)
	}
}

// drawEach draws unit by unit, four of them from every 64 random bits.
func (d *drawer) drawEach(src *rng.Stream, from, to, draws int) {
	clear(d.times[from:to])
	kindOf := d.kindOf[d.before[from]:d.before[to]]
	n := uint32(len(kindOf))
	// Lemire 2019: reject the few low products that would favour small values.
	limit := (1 << 16) % n
	for draws > 0 {
		word := src.Uint64()
		for range 4 {
			product := uint32(uint16(word)) * n
			word >>= 16
			if product&math.MaxUint16 >= limit && draws > 0 {
				d.times[kindOf[product>>16]]++
				draws--
			}
		}
	}
}

// binomial is the number of successes in so many trials, each with the
// probability share/whole (share < whole < 2^63), exactly. A trial succeeds if an
// endless string of fair bits is less than the binary digits of share/whole;
// trials are decided together, digit by digit, so that two bits a trial suffice
// on average.
func binomial(src *rng.Stream, trials int, share, whole uint64) (successes int) {
	for undecided := trials; undecided > 0 && share > 0; {
		ones := fairOnes(src, undecided)
		share *= 2
		if share >= whole { // the digit is 1: a bit 0 is less
			share -= whole
			successes += undecided - ones
			undecided = ones
		} else { // the digit is 0: a bit 1 is more
			undecided -= ones
		}
	}
	return successes
}

// fairOnes counts the ones among n fair bits.
func fairOnes(src *rng.Stream, n int) (ones int) {
	for ; n > 64; n -= 64 {
		ones += bits.OnesCount64(src.Uint64())
	}
	return ones + bits.OnesCount64(src.Uint64()>>(64-n))
}
