package model

import (
	"math"

	"github.com/coterie-fl/coterie/data"
)

// eachJudged hands losses and outputs of c's pictures to use, some at a time.
func (l *siloPictures) eachJudged(theta []float64, c *data.Client, use func(from int, losses []float64, outputs []float32)) error {
	l.narrow(theta)
	for len(l.every) < len(c.Index) {
		l.every = append(l.every, len(l.every))
	}
	out := l.net.Output().Len()
	if l.outputs == nil {
		l.outputs, l.losses = make([]float32, judged*out), make([]float64, judged)
	}
	for from := 0; from < len(c.Index); from += judged {
		n := min(judged, len(c.Index)-from)
		outputs, losses := l.outputs[:n*out], l.losses[:n]
		err := l.load(c, l.every[from:from+n])
		if err == nil {
			err = l.engine.Outputs(outputs, l.theta, l.ex, l.rows)
		}
		if err != nil {
			return err
		}
		spare := l.grad[:out] // nobody asks for this gradient
		for k := range losses {
			label, target := 0, []float32(nil)
			if l.labelled {
				label = l.ex.Labels[k]
			} else {
				target = l.ex.Targets[k : k+1]
			}
			losses[k] = l.engine.objective.loss(outputs[k*out:(k+1)*out], label, target, spare)
		}
		use(from, losses, outputs)
	}
	return nil
}

func (l *siloPictures) Judge(theta []float64, c *data.Client) (loss float64, wrong int, err error) {
	out := l.net.Output().Len()
	err = l.eachJudged(theta, c, func(_ int, losses []float64, outputs []float32) {
		for k, e := range losses {
			loss += e
			if l.labelled && largestAt(outputs[k*out:(k+1)*out]) != l.ex.Labels[k] {
				wrong++
			}
		}
	})
	return loss / float64(max(1, len(c.Index))), wrong, err
}

// largestAt is where the largest value is: the first of equals.
func largestAt(values []float32) int {
	best := 0
	for j, v := range values {
		if v > values[best] {
			best = j
		}
	}
	return best
}

func (l *siloPictures) Losses(dst, theta []float64, c *data.Client) error {
	return l.eachJudged(theta, c, func(from int, losses []float64, _ []float32) { copy(dst[from:], losses) })
}

// Loss is the mean cross entropy, or the root mean squared error of values.
func (l *siloPictures) Loss(theta []float64, c *data.Client) (float64, error) {
	loss, _, err := l.Judge(theta, c)
	if !l.labelled {
		loss = math.Sqrt(loss)
	}
	return loss, err
}

// Train follows the model's own loss; d.Loss is not asked.
func (l *siloPictures) Train(d Descent, theta []float64, c *data.Client, shuffle Shuffler) error {
	if len(l.vector) != len(theta) {
		l.vector = make([]float64, len(theta))
	}
	return trainPlain(l, d, theta, l.vector, c, shuffle, &l.order)
}

// trainPlain is plain descent on the gradients of a silo's learner.
func trainPlain(l SiloLearner, d Descent, theta, grad []float64, c *data.Client, shuffle Shuffler, kept *[]int) error {
	order := (*kept)[:0]
	for i := range c.Len() {
		order = append(order, i)
	}
	*kept = order
	size := len(order)
	if d.Batch > 0 {
		size = min(size, d.Batch)
	}
	for range d.Epochs {
		if size < len(order) {
			shuffle.Shuffle(order)
		}
		for rest := order; len(rest) > 0; {
			batch := rest[:min(size, len(rest))]
			rest = rest[len(batch):]
			if err := l.Gradient(grad, theta, c, batch, SiloStep{}); err != nil {
				return err
			}
			for i, g := range grad {
				theta[i] -= d.Step * g
			}
		}
	}
	return nil
}
