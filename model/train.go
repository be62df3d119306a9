package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// Loss is what training follows downhill.
type Loss int

// The losses of the papers.
const (
	SquaredError Loss = iota // mean of squares: the synthetic study's nearest setting
	RMSE                     // its root: equation 14 of paper 000
	CrossEntropy             // of classes
)

// ParseLoss reads a run file's name.
func ParseLoss(name string) (Loss, error) {
	switch name {
	case "squared-error":
		return SquaredError, nil
	case "rmse":
		return RMSE, nil
	case "cross-entropy":
		return CrossEntropy, nil
	}
	return 0, fmt.Errorf("loss %q is not known; allowed: squared-error, rmse, cross-entropy", name)
}

// Shuffler permutes in place.
type Shuffler interface{ Shuffle([]int) }

// Descent is plain gradient descent at a client.
type Descent struct {
	Step   float64
	Epochs int
	Batch  int // 0: all examples
	Loss   Loss
}

// NewDescent reads a run file's block.
func NewDescent(l config.Local) (Descent, error) {
	loss, err := ParseLoss(l.Loss)
	return Descent{Step: l.Step, Epochs: l.Epochs, Batch: l.Batch, Loss: loss}, err
}

// apart is how many values a worker's buffer holds at least: smaller ones would
// share cache lines with other workers' and make them wait for each other.
const apart = 32

// Scratch is memory that one worker reuses.
type Scratch struct {
	gradient []float64
	order    []int
}

// rowModel has a gradient on rows.
type rowModel interface {
	gradient(grad, theta []float64, rows data.Rows, order []int, loss Loss) error
}

// train moves theta downhill, in place.
func (d Descent) train(m rowModel, theta []float64, rows data.Rows, shuffle Shuffler, s *Scratch) error {
	if cap(s.gradient) < len(theta) {
		s.gradient = make([]float64, max(len(theta), apart))
	}
	grad := s.gradient[:len(theta)]
	whole := d.Batch == 0 || d.Batch >= rows.Len()
	if !whole {
		s.order = s.order[:0]
		for i := range rows.Len() {
			s.order = append(s.order, i)
		}
	}
	for range d.Epochs {
		if whole {
			if err := d.step(m, theta, grad, rows, nil); err != nil {
				return err
			}
			continue
		}
		shuffle.Shuffle(s.order)
		for rest := s.order; len(rest) > 0; {
			batch := rest[:min(d.Batch, len(rest))]
			rest = rest[len(batch):]
			if err := d.step(m, theta, grad, rows, batch); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d Descent) step(m rowModel, theta, grad []float64, rows data.Rows, batch []int) error {
	if err := m.gradient(grad, theta, rows, batch, d.Loss); err != nil {
		return err
	}
	for i, g := range grad {
		theta[i] -= d.Step * g
	}
	return nil
}

// Best is the lowest loss among hypotheses of n parameters that lie one after
// another, and which of them has it: the lowest index on a tie.
func Best(l Learner, n int, hypotheses []float64, c *data.Client) (loss float64, index int, err error) {
	loss = math.Inf(1)
	for j := 0; (j+1)*n <= len(hypotheses); j++ {
		e, err := l.Loss(hypotheses[j*n:(j+1)*n], c)
		if err != nil {
			return loss, index, err
		}
		if e < loss {
			loss, index = e, j
		}
	}
	return loss, index, nil
}

// RowJudge is a learner of rows that tells every row's squared error.
type RowJudge interface {
	Learner
	RowErrors(dst, theta []float64, c *data.Client) error
}

// HonestRMSE scores every row under the hypothesis that fits the client's other
// rows best: a client that chooses on the rows it is scored on looks better than
// it is. It says false for a client without other rows, and for pictures.
func HonestRMSE(l Learner, n int, hypotheses []float64, c *data.Client) (rmse float64, ok bool, err error) {
	judge, ok := l.(RowJudge)
	rows := c.Len()
	if !ok || rows < 2 {
		return 0, false, nil
	}
	k := len(hypotheses) / n
	errs, totals := make([]float64, k*rows), make([]float64, k)
	for j := range k {
		if err := judge.RowErrors(errs[j*rows:(j+1)*rows], hypotheses[j*n:(j+1)*n], c); err != nil {
			return 0, false, err
		}
		for _, e := range errs[j*rows : (j+1)*rows] {
			totals[j] += e
		}
	}
	var sum float64
	for i := range rows {
		best := 0
		for j := 1; j < k; j++ {
			if totals[j]-errs[j*rows+i] < totals[best]-errs[best*rows+i] {
				best = j
			}
		}
		sum += errs[best*rows+i]
	}
	return math.Sqrt(sum / float64(rows)), true, nil
}
