package mech

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// A sum of second moments is the symmetric matrix of all x_i*x_j, summed over rows x. It
// is kept and released as a triangle: first the diagonal, then what lies above it, row by
// row.

// TriangleLength is how many values a symmetric matrix of so many rows has.
func TriangleLength(features int) int { return features * (features + 1) / 2 }

// Mirror sets dst, a whole matrix row by row, to what a triangle stands for.
func Mirror(dst, triangle []float64, features int) error {
	if len(triangle) != TriangleLength(features) || len(dst) != features*features {
		return fmt.Errorf("second moments: a triangle of %d values and a matrix of %d are not of %d features", len(triangle), len(dst), features)
	}
	at := features
	for i := range features {
		dst[i*features+i] = triangle[i]
		for j := i + 1; j < features; j++ {
			dst[i*features+j], dst[j*features+i] = triangle[at], triangle[at]
			at++
		}
	}
	return nil
}

// MostMomentFeatures is how many features rows may have whose second moments are summed: a
// matrix of so many rows has 512 MB.
const MostMomentFeatures = 1 << 13

// momentBits is how fine rows are told: their clip is from 2^17 to 2^18 steps long.
const momentBits = 18

// mostWhole is how many rows' products float64 adds up without rounding: each is at most
// 2^36, and whole numbers are exact up to 2^53.
const mostWhole = 1 << 16

// MomentSum adds second moments of rows that are clipped to a norm, as integers: every
// row is brought to a lattice, where its norm is compared without rounding, and its
// products are whole. One row more or less then moves the triangle, with what lies above
// the diagonal counted sqrt(2) times, by at most clip^2, one replaced by at most
// sqrt(2)*clip^2: docs/proofs/second-moments.md. It is released once. It is not safe for
// concurrent use.
type MomentSum struct {
	features    int
	clip        float64
	bound       float64 // that noise on the diagonal goes by
	lattice     Lattice // of rows
	replaceOnly bool    // the bound holds under replace-one only
	row         []float64
	steps       []int64
	products    gram
	sum         []int64 // triangle, in squared steps
	terms       int64
	wasReleased bool
}

// NewMomentSum sums second moments of rows that are clipped to a norm. A sum that was made
// for replace-one cannot be released under add-remove.
func NewMomentSum(features int, clip float64, relation event.Relation) (*MomentSum, error) {
	switch {
	case features < 1 || features > MostMomentFeatures:
		return nil, fmt.Errorf("second moments: %d features; allowed: 1 to %d", features, MostMomentFeatures)
	case !(clip > 0) || math.IsInf(clip, 0):
		return nil, fmt.Errorf("second moments: clip %v must be positive and finite", clip)
	}
	_, exponent := math.Frexp(clip) // clip is in [2^(exponent-1), 2^exponent)
	lattice, err := NewLattice(math.Ldexp(1, exponent-momentBits))
	if err != nil {
		return nil, fmt.Errorf("second moments: clip %v: %w", clip, err)
	}
	if _, err := NewLattice(lattice.Step * lattice.Step); err != nil {
		return nil, fmt.Errorf("second moments: clip %v is too large or too small to be squared: %w", clip, err)
	}
	square := clip * clip
	if math.FMA(clip, clip, -square) > 0 { // it was rounded down
		square = math.Nextafter(square, math.Inf(1))
	}
	// Two such matrices have an inner product of (x*y)^2, which is never negative: as far
	// apart as positive sums are.
	bound, err := PositiveBound(square, relation)
	if err != nil {
		return nil, fmt.Errorf("second moments: %w", err)
	}
	return &MomentSum{
		features: features, clip: clip, bound: bound, lattice: lattice, replaceOnly: relation == event.ReplaceOne,
		row: make([]float64, features), steps: make([]int64, features),
		products: newGram(features), sum: make([]int64, TriangleLength(features)),
	}, nil
}

// Add adds one row's second moments. A row that is not finite counts as zero, by a rule of
// this row alone.
func (s *MomentSum) Add(x []float64) error {
	switch {
	case s.wasReleased:
		return fmt.Errorf("second moments: the sum was released already")
	case len(x) != s.features:
		return fmt.Errorf("second moments: a row of %d features does not fit a sum of %d", len(x), s.features)
	case s.terms == maxSum>>(2*momentBits):
		return fmt.Errorf("second moments: %d rows are all that an int64 holds safely", s.terms)
	}
	copy(s.row, x)
	if _, err := Clip(s.row, s.clip); err != nil {
		return err
	}
	if err := s.lattice.Truncate(s.steps, s.row); err != nil {
		return fmt.Errorf("second moments: %w", err)
	}
	s.lattice.shrink(s.steps, s.clip)
	for i, q := range s.steps {
		s.row[i] = float64(q)
	}
	s.products.add(s.row)
	s.terms++
	if s.terms%mostWhole == 0 {
		s.settle()
	}
	return nil
}

// settle moves what was added as floats, all of it whole numbers, to the integers.
func (s *MomentSum) settle() {
	s.products.triangle(func(at int, v float64) { s.sum[at] += int64(v) })
	s.products.reset()
}

// sigmas are the noise's deviations in squared steps, on the diagonal and above it.
func (s *MomentSum) sigmas(g Gaussian) (diagonal, above uint64, err error) {
	squared := Lattice{Step: s.lattice.Step * s.lattice.Step}
	if diagonal, err = g.Sigma(s.bound, squared); err != nil {
		return 0, 0, err
	}
	if above, err = g.Sigma(s.boundAbove(), squared); err != nil {
		return 0, 0, err
	}
	if above < 1<<20 { // what accountants go by: account.LeastSigma
		return 0, 0, fmt.Errorf("second moments: noise of %v times the clip's square is less than 2^20 of its steps; allowed: %v or more", g.Multiplier, g.Multiplier*(1<<20)/float64(above))
	}
	return diagonal, above, nil
}

// boundAbove is that of values above the diagonal, which stand twice in the matrix and so
// need noise of half the variance only.
func (s *MomentSum) boundAbove() float64 {
	return math.Nextafter(s.bound*(math.Sqrt2/2), math.Inf(1))
}

// open refuses what may not be released, and ends the sum.
func (s *MomentSum) open(g Gaussian, terms Terms, length int) (event.Release, error) {
	if err := g.check(); err != nil {
		return event.Release{}, err
	}
	release, err := terms.release(g.Event(), s.replaceOnly)
	switch {
	case err != nil:
		return event.Release{}, fmt.Errorf("second moments: %w", err)
	case s.wasReleased:
		return event.Release{}, fmt.Errorf("second moments: the sum was released already")
	case length != len(s.sum):
		return event.Release{}, fmt.Errorf("second moments: a triangle of %d values does not fit a destination of %d", len(s.sum), length)
	}
	s.settle()
	s.wasReleased = true
	return release, nil
}

// ReleaseMoments sets dst to the triangle plus exact noise. On an error nothing in dst may
// leave.
func (g Gaussian) ReleaseMoments(dst []float64, s *MomentSum, terms Terms, e *Entropy) (event.Release, error) {
	diagonal, above, err := s.sigmas(g)
	if err != nil {
		return event.Release{}, err
	}
	release, err := s.open(g, terms, len(dst))
	if err != nil {
		return event.Release{}, err
	}
	noise := make([]int64, len(dst))
	if err := e.DiscreteGaussian(noise[:s.features], diagonal); err != nil {
		return event.Release{}, fmt.Errorf("second moments: %w", err)
	}
	if err := e.DiscreteGaussian(noise[s.features:], above); err != nil {
		return event.Release{}, fmt.Errorf("second moments: %w", err)
	}
	for i, v := range s.sum {
		noise[i] += v
	}
	Lattice{Step: s.lattice.Step * s.lattice.Step}.Float(dst, noise)
	return release, nil
}

// SimulateMoments sets dst to the triangle plus float noise from a keyed source. The event
// is what a release would cost; floats themselves are not safe to release.
func (g Gaussian) SimulateMoments(dst []float64, s *MomentSum, terms Terms, src rand.Source) (event.Release, error) {
	release, err := s.open(g, terms, len(dst))
	if err != nil {
		return event.Release{}, err
	}
	Lattice{Step: s.lattice.Step * s.lattice.Step}.Float(dst, s.sum)
	addNormals(dst[:s.features], g.Multiplier*s.bound, src)
	addNormals(dst[s.features:], g.Multiplier*s.boundAbove(), src)
	return release, nil
}

// Moments is ReleaseMoments, or with simulated noise SimulateMoments, of what was paid for.
func (p *Paid) Moments(g Gaussian, dst []float64, s *MomentSum, from Randomness) error {
	if err := p.draw(g.Event()); err != nil {
		return fmt.Errorf("second moments: %w", err)
	}
	var err error
	if from.Exact != nil {
		_, err = g.ReleaseMoments(dst, s, p.terms, from.Exact)
	} else {
		_, err = g.SimulateMoments(dst, s, p.terms, from.Keyed)
	}
	return err
}

// PlainMoments adds second moments of rows as they are: nothing is protected.
type PlainMoments struct{ products gram }

// NewPlainMoments sums second moments of rows of so many features.
func NewPlainMoments(features int) *PlainMoments { return &PlainMoments{newGram(features)} }

// Add adds one row's.
func (s *PlainMoments) Add(x []float64) error {
	if len(x) != s.products.features {
		return fmt.Errorf("second moments: a row of %d features does not fit a sum of %d", len(x), s.products.features)
	}
	s.products.add(x)
	return nil
}

// Unprotected sets dst to the triangle.
func (s *PlainMoments) Unprotected(dst []float64) error {
	if len(dst) != TriangleLength(s.products.features) {
		return fmt.Errorf("second moments: a triangle of %d features does not fit a destination of %d", s.products.features, len(dst))
	}
	s.products.triangle(func(at int, v float64) { dst[at] = v })
	return nil
}

// gram sums up outer products of rows, many at a time.
type gram struct {
	features int
	rows     []float64 // that are not yet in matrix
	matrix   []float64
	work     kernel.Workspace[float64]
}

// gramRows is how many rows are multiplied at once.
const gramRows = 256

func newGram(features int) gram {
	return gram{features: features, matrix: make([]float64, features*features)}
}

func (g *gram) add(x []float64) {
	g.rows = append(g.rows, x...)
	if len(g.rows) >= gramRows*g.features {
		g.multiply()
	}
}

func (g *gram) multiply() {
	x := kernel.Dense(g.rows, len(g.rows)/g.features, g.features)
	kernel.Gemm(1, x.T(), x, 1, kernel.Dense(g.matrix, g.features, g.features), &g.work)
	g.rows = g.rows[:0]
}

// triangle gives every value of the sum and its place.
func (g *gram) triangle(each func(at int, v float64)) {
	g.multiply()
	at, d := g.features, g.features
	for i := range d {
		each(i, g.matrix[i*d+i])
		for j := i + 1; j < d; j++ {
			each(at, g.matrix[i*d+j])
			at++
		}
	}
}

func (g *gram) reset() { clear(g.matrix) }
