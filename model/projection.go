package model

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// Projection takes examples to their parts along a few directions of length 1 at right
// angles: principal components. Its parameters are the directions, one after another, the
// one with the largest eigenvalue first, and then the eigenvalues. It is computed from a
// sum of second moments and not trained by steps.
type Projection struct {
	Features   int // of a row; of a picture all its pixels, of every channel
	Components int
	stopped    func() bool // nil: nobody stops it
}

// mostComponents is how many directions are kept where nobody says how many.
const mostComponents = 50

// NewProjection is that of data of a shape, on so many components; 0: all, at most 50.
func NewProjection(s data.Shape, components int) (Projection, error) {
	m := Projection{Features: s.Features, Components: components}
	if s.Pictures() {
		m.Features = s.Height * s.Width * s.Depth()
	}
	if components == 0 {
		m.Components = min(m.Features, mostComponents)
	}
	if m.Components < 1 || m.Components > m.Features {
		return m, fmt.Errorf("a projection on %d components of %d features; allowed: 1 to %d", components, m.Features, m.Features)
	}
	return m, nil
}

// Parameters is the length of theta.
func (m Projection) Parameters() int { return m.Components * (m.Features + 1) }

// Directions are theta's, one after another.
func (m Projection) Directions(theta []float64) []float64 { return theta[:m.Components*m.Features] }

// Eigenvalues are theta's, the largest first. They are those of the sum of second moments.
func (m Projection) Eigenvalues(theta []float64) []float64 { return theta[m.Components*m.Features:] }

// Initialise takes the first features themselves, with eigenvalues of 0.
func (m Projection) Initialise(theta []float64, _ rand.Source) {
	clear(theta)
	for k := range m.Components {
		theta[k*m.Features+k] = 1
	}
}

// Learner is the model with one worker's memory.
func (m Projection) Learner() (Learner, error) {
	return &projectionLearner{Projection: m, row: make([]float64, m.Features)}, nil
}

type projectionLearner struct {
	Projection
	row    []float64
	parts  []float64
	losses []float64
}

// errNoSteps is what a projection answers to whoever would train it.
var errNoSteps = errors.New("a projection is computed from second moments (algorithm.kind pca), not trained by steps")

// Gradient is refused.
func (l *projectionLearner) Gradient([]float64, []float64, *data.Client, []int, *Step) error {
	return errNoSteps
}

// Train is refused.
func (l *projectionLearner) Train([]float64, *data.Client, *Pass) error { return errNoSteps }

// Loss is the root of the mean squared distance to the projection.
func (l *projectionLearner) Loss(theta []float64, c *data.Client) (float64, error) {
	loss, _, err := l.Judge(theta, c)
	return math.Sqrt(loss), err
}

// Judge is the mean squared distance to the projection.
func (l *projectionLearner) Judge(theta []float64, c *data.Client) (float64, int, error) {
	l.losses = slices.Grow(l.losses[:0], c.Len())[:c.Len()]
	if err := l.Losses(l.losses, theta, c); err != nil {
		return 0, 0, err
	}
	var sum float64
	for _, v := range l.losses {
		sum += v
	}
	return sum / float64(max(1, c.Len())), 0, nil
}

// Losses are every example's squared distance to its projection: what of |x|^2 is not
// captured. With directions of 0, which capture nothing, it is |x|^2 itself.
func (l *projectionLearner) Losses(dst, theta []float64, c *data.Client) error {
	return l.each(theta, c, func(i int, x, parts []float64) {
		dst[i] = max(0, kernel.Dot(x, x)-kernel.Dot(parts, parts))
	})
}

// Outputs are every example's parts along the directions.
func (l *projectionLearner) Outputs(dst, theta []float64, c *data.Client) ([]float64, int, error) {
	err := l.each(theta, c, func(_ int, _, parts []float64) { dst = append(dst, parts...) })
	return dst, l.Components, err
}

// Reader is a learner that gives examples to others, one after another.
type Reader interface {
	// Read gives every example's values to do, in room that the next one takes over.
	Read(c *data.Client, do func(x []float64) error) error
}

// Read asks now and then whether to stop.
func (l *projectionLearner) Read(c *data.Client, do func(x []float64) error) error {
	var p pause
	for i := range c.Len() {
		if err := c.Values(l.row, i); err != nil {
			return err
		}
		if err := do(l.row); err != nil {
			return err
		}
		if err := p.after(l.Features*l.Features, l.stopped); err != nil {
			return err
		}
	}
	return nil
}

func (l *projectionLearner) each(theta []float64, c *data.Client, do func(i int, x, parts []float64)) error {
	if len(theta) != l.Parameters() {
		return fmt.Errorf("a projection of %d parameters has %d", l.Parameters(), len(theta))
	}
	l.parts = slices.Grow(l.parts[:0], l.Components)[:l.Components]
	i := 0
	return l.Read(c, func(x []float64) error {
		for k := range l.parts {
			l.parts[k] = kernel.Dot(theta[k*l.Features:(k+1)*l.Features], x)
		}
		do(i, x, l.parts)
		i++
		return nil
	})
}

// Captured are what a projection captures of the squared length of every example, and that
// length itself.
func Captured(l Learner, theta []float64, c *data.Client) (kept, whole []float64, err error) {
	kept, whole = make([]float64, c.Len()), make([]float64, c.Len())
	if err := l.Losses(kept, theta, c); err != nil {
		return nil, nil, err
	}
	// Along no direction nothing is captured: what is left is all there is.
	if err := l.Losses(whole, make([]float64, len(theta)), c); err != nil {
		return nil, nil, err
	}
	for i := range kept {
		kept[i] = whole[i] - kept[i]
	}
	return kept, whole, nil
}
