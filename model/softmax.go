package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// Softmax is a linear model with an output for each of more than two classes: softmax
// regression under the cross entropy. Its parameters are class by class, the features'
// and then the intercept's.
type Softmax struct{ Linear }

// Parameters is the length of theta.
func (m Softmax) Parameters() int { return m.Classes * m.Linear.Parameters() }

// Learner is the model with one worker's memory.
func (m Softmax) Learner() (Learner, error) {
	if m.Features < 1 || m.Classes < 2 {
		return nil, fmt.Errorf("a softmax of %d features and %d classes; allowed: 1 or more, and 2 or more", m.Features, m.Classes)
	}
	l := &softmaxLearner{Softmax: m, one: m.Linear.Parameters(), z: make([]float64, m.Classes), target: make([]float64, m.Classes)}
	var err error
	l.trained, l.judged, err = objectives[float64](m.Loss, m.Emphasis, m.Classes, m.Classes)
	l.addTo = l.addWeighted // made once: a closure a step would be memory a step
	return l, err
}

// softmaxLearner is a softmax with memory. Every example's gradient is the product of
// the loss's slopes at the outputs and its features, so that clipping needs a few
// products and no vector of all parameters.
type softmaxLearner struct {
	Softmax
	one             int // parameters of one class
	trained, judged Objective[float64]
	z, target       []float64
	sum             stepSum[float64]
	slopes          []float64 // of a batch, one example after another
	scratch         []float64 // norms and factors of a batch
	rows            data.Rows
	batch           []int
	shift           []float64
	vector          []float64 // exact sums: one example's gradient
	every           []int
	addTo           func(dst, factors []float64)
	pause           pause
	_               [128]byte // the next worker's fields lie on other cache lines
}

func (l *softmaxLearner) fits(theta []float64, c *data.Client) error {
	if len(c.X) == len(c.Y)*l.Features && len(theta) == l.Parameters() {
		return nil
	}
	return fmt.Errorf("%d values in %d rows and %d parameters for a softmax of %d features and %d parameters",
		len(c.X), len(c.Y), len(theta), l.Features, l.Parameters())
}

// ready says why so many of a client's rows cannot be read now.
func (l *softmaxLearner) ready(theta []float64, c *data.Client, rows int) error {
	if err := l.fits(theta, c); err != nil {
		return err
	}
	return l.pause.after(rows*l.Features*l.Classes, l.stopped)
}

// part is what one class has of theta or of a gradient.
func (l *softmaxLearner) part(theta []float64, class int) []float64 {
	return theta[class*l.one : (class+1)*l.one]
}

func (l *softmaxLearner) row(i int) []float64 { return l.rows.X[i*l.Features : (i+1)*l.Features] }

// score sets l.z to row i's outputs and d to the slopes of an objective there. It
// returns the loss and the row's class.
func (l *softmaxLearner) score(o Objective[float64], theta, d []float64, i int) (loss float64, label int, err error) {
	y := l.rows.Y[i]
	if label = int(y); float64(label) != y || label < 0 || label >= l.Classes {
		return 0, 0, fmt.Errorf("row %d has the class %v; allowed: 0 to %d", i, y, l.Classes-1)
	}
	x := l.row(i)
	for class := range l.z {
		l.z[class] = l.output(l.part(theta, class), x)
	}
	clear(l.target)
	l.target[label] = 1
	return o.loss(l.z, label, l.target, d), label, nil
}

// eachJudged hands every row's loss to use, with its outputs in l.z.
func (l *softmaxLearner) eachJudged(theta []float64, c *data.Client, use func(i int, loss float64, label int)) error {
	if err := l.ready(theta, c, len(c.Y)); err != nil {
		return err
	}
	l.rows = c.Rows
	spare := l.room(1)
	for i := range c.Y {
		loss, label, err := l.score(l.judged, theta, spare, i)
		if err != nil {
			return err
		}
		use(i, loss, label)
	}
	return nil
}

// room is for the slopes of so many examples.
func (l *softmaxLearner) room(n int) []float64 {
	if len(l.slopes) < n*l.Classes {
		l.slopes = make([]float64, max(n*l.Classes, ownLine))
	}
	return l.slopes[:n*l.Classes]
}

func (l *softmaxLearner) Loss(theta []float64, c *data.Client) (float64, error) {
	loss, _, err := l.Judge(theta, c)
	return loss, err
}

func (l *softmaxLearner) Judge(theta []float64, c *data.Client) (loss float64, wrong int, err error) {
	err = l.eachJudged(theta, c, func(_ int, e float64, label int) {
		loss += e
		if largestAt(l.z) != label {
			wrong++
		}
	})
	return loss / float64(max(1, len(c.Y))), wrong, err
}

func (l *softmaxLearner) Losses(dst, theta []float64, c *data.Client) error {
	return l.eachJudged(theta, c, func(i int, e float64, _ int) { dst[i] = e })
}

func (l *softmaxLearner) Outputs(dst, theta []float64, c *data.Client) ([]float64, int, error) {
	err := l.eachJudged(theta, c, func(int, float64, int) { dst = append(dst, l.z...) })
	return dst, l.Classes, err
}

func (l *softmaxLearner) Train(theta []float64, c *data.Client, p *Pass) error {
	return p.Descend(l, theta, c)
}

func (l *softmaxLearner) Gradient(dst, theta []float64, c *data.Client, batch []int, s *Step) error {
	if err := s.check(len(theta), l.Linear.Loss); err != nil {
		return err
	}
	if s.Whole {
		batch = identity(&l.every, len(c.Y))
	}
	if err := l.ready(theta, c, len(batch)); err != nil {
		return fmt.Errorf("step: %w", err)
	}
	if len(dst) != len(theta) {
		return fmt.Errorf("step: room for %d values of %d", len(dst), len(theta))
	}
	l.rows, l.batch, l.shift = c.Rows, batch, s.Shift
	slopes := l.room(len(batch))
	for k, i := range batch {
		if i < 0 || i >= len(c.Y) {
			return fmt.Errorf("step: row %d of %d", i, len(c.Y))
		}
		if _, _, err := l.score(l.trained, theta, slopes[k*l.Classes:(k+1)*l.Classes], i); err != nil {
			return fmt.Errorf("step: %w", err)
		}
	}
	if len(l.scratch) < 2*len(batch) {
		l.scratch = make([]float64, 2*max(len(batch), ownLine))
	}
	norms, factors := l.scratch[:len(batch)], l.scratch[len(batch):2*len(batch)]
	if s.bound() == 0 {
		for k := range factors {
			factors[k] = 1 / float64(len(batch))
		}
		clear(dst)
		l.addWeighted(dst, factors)
		return nil
	}
	if err := l.protected(dst, s, norms, factors); err != nil {
		return fmt.Errorf("step: %w", err)
	}
	kernel.Scale(dst, 1/float64(s.Divisor), dst)
	return nil
}

// protected sets dst to the clipped sum, noised if the step has noise.
func (l *softmaxLearner) protected(dst []float64, s *Step, norms, factors []float64) error {
	if s.exact() {
		return l.exact(dst, s)
	}
	sum, err := l.sum.floats(len(dst), 1, s)
	if err != nil {
		return err
	}
	l.norms(norms)
	if err := sum.AddWeighted(0, norms, factors, l.addTo); err != nil {
		return err
	}
	return l.sum.release(dst, s)
}

// norms sets dst to the norm of every example's gradient, d (x, 1)' + shift:
// |d|^2*(|x|^2+1) + 2*sum over classes of d*<(x, 1), shift> + |shift|^2.
func (l *softmaxLearner) norms(dst []float64) {
	var constant float64
	if l.shift != nil {
		constant = kernel.SquaredNorm(l.shift)
	}
	for k, i := range l.batch {
		x, d := l.row(i), l.slopes[k*l.Classes:(k+1)*l.Classes]
		squares := kernel.SquaredNorm(x)
		if l.Intercept {
			squares++
		}
		squares *= kernel.SquaredNorm(d)
		if l.shift != nil {
			for class, a := range d {
				squares += 2 * a * l.output(l.part(l.shift, class), x)
			}
			squares += constant
		}
		dst[k] = math.Sqrt(positive(squares))
	}
}

// addWeighted adds the batch's gradients, times factors, to dst.
func (l *softmaxLearner) addWeighted(dst, factors []float64) {
	var shifts float64
	for k, i := range l.batch {
		if factors[k] == 0 {
			continue // a slope that is not finite, times 0, would be no number
		}
		x := l.row(i)
		for class, slope := range l.slopes[k*l.Classes : (k+1)*l.Classes] {
			a, part := slope*factors[k], l.part(dst, class)
			kernel.Axpy(a, x, part[:l.Features])
			if l.Intercept {
				part[l.Features] += a
			}
		}
		shifts += factors[k]
	}
	if l.shift != nil {
		kernel.Axpy(shifts, l.shift, dst)
	}
}

// exact sets dst to the batch's sum with exact noise: every example's gradient is
// formed, clipped and added as integers.
func (l *softmaxLearner) exact(dst []float64, s *Step) error {
	sum, err := l.sum.integers(len(dst), s)
	if err != nil {
		return err
	}
	if len(l.vector) < len(dst) {
		l.vector = make([]float64, max(len(dst), ownLine))
	}
	v, batch, slopes, one := l.vector[:len(dst)], l.batch, l.slopes, [1]float64{1}
	defer func() { l.slopes = slopes }()
	for k, i := range batch {
		l.batch, l.slopes = batch[k:k+1], slopes[k*l.Classes:(k+1)*l.Classes]
		clear(v)
		l.addWeighted(v, one[:])
		if err := sum.Add(v); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	return l.sum.releaseExact(dst, s)
}
