package evaluate

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/model"
)

// The sums of values that an example counts in: itself, squared and absolute error,
// target and squared target, all of them 0 to 1 in units of the bound, so that a row's
// norm is at most sqrt(5).
const (
	sumExamples = iota
	sumSquares
	sumAbsolute
	sumTargets
	sumTargetSquares
	valueSums
)

// valueScale brings a row of sums to norm 1 at most.
var valueScale = 1 / math.Sqrt(valueSums)

// Answer is the participant's half: it pays, then counts its held-out examples by what
// the model that it would use says of them, and writes the noised counts to out. False:
// it declines. A participant that holds nothing out (nil, too) releases noised zeros, as
// does one whose examples cannot be asked: then p.Mishap says why, to its owner alone.
func (e *Evaluation) Answer(b fl.Broadcast, p *fl.Participant, held *data.Client, l model.Learner, out []float64) (released bool, err error) {
	if len(out) != e.Length() {
		return false, fmt.Errorf("evaluation: room for %d values; a release has %d", len(out), e.Length())
	}
	paid, err := p.Pay(b.Round, e.Price(p))
	if err != nil || paid == nil {
		return false, err
	}
	bound, err := mech.PositiveBound(1, e.relation())
	if err != nil {
		return false, fmt.Errorf("evaluation: %w", err)
	}
	lattice, err := e.gaussian.Lattice(bound)
	if err != nil {
		return false, fmt.Errorf("evaluation: %w", err)
	}
	sum, err := mech.NewPositiveSum(e.Length(), 1, e.relation(), lattice)
	if err != nil {
		return false, fmt.Errorf("evaluation: %w", err)
	}
	p.Mishap = nil
	if held != nil && held.Len() > 0 && !p.Blank {
		if theta, scaled := e.adopt(b, p, held, l); theta != nil {
			if err := e.count(sum, theta, p, scaled, l); err != nil {
				return false, fmt.Errorf("evaluation: %w", err)
			}
		}
	}
	entropy := mech.SystemEntropy()
	if e.run.Privacy.Noise != "exact" {
		entropy.Reset(e.family.Stream(0, p.ID))
	}
	noised := make([]int64, len(out))
	if err := paid.Release(e.gaussian, noised, sum, entropy); err != nil {
		return false, fmt.Errorf("evaluation: %w", err)
	}
	lattice.Float(out, noised)
	fl.Clamp(out, e.Bounds())
	return true, nil
}

// adopt is the model that the participant would use, and its held-out examples as that
// model reads them; nil if they cannot be had.
func (e *Evaluation) adopt(b fl.Broadcast, p *fl.Participant, held *data.Client, l model.Learner) (theta []float64, scaled *data.Client) {
	defer func() {
		if r := recover(); r != nil {
			theta, p.Mishap = nil, fmt.Errorf("the model to evaluate cannot be had: %v", r)
		}
	}()
	theta = make([]float64, e.algorithm.Model().Parameters())
	e.algorithm.Adopt(theta, b, p, l)
	return theta, p.Standardised(held)
}

// count adds up what the examples say. One that cannot be asked counts nowhere, by a rule
// of this example alone.
func (e *Evaluation) count(sum *mech.ClippedSum, theta []float64, p *fl.Participant, held *data.Client, l model.Learner) error {
	term := make([]float64, e.Length())
	var a asked
	for i := range held.Len() {
		clear(term)
		if err := e.ask(&a, term, theta, held, i, l); err != nil {
			clear(term)
			p.Mishap = fmt.Errorf("held-out example %d counts nowhere: %w", i, err)
		}
		c, err := mech.Clip(term, 1)
		if err == nil {
			err = sum.Add(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// asked is room for one example and its answer.
type asked struct {
	one              data.Client
	outputs, targets []float64
}

// ask sets term to what one example counts. It is asked by itself: beside others it could
// be rounded otherwise, and fall into another bin on their account.
func (e *Evaluation) ask(a *asked, term, theta []float64, held *data.Client, i int, l model.Learner) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it cannot be asked: %v", r)
		}
	}()
	if held.Images != nil {
		a.one = data.Client{Pictures: data.Pictures{Images: held.Images, Index: held.Index[i : i+1]}}
	} else {
		f := held.Features
		a.one = data.Client{Rows: data.Rows{Features: f, X: held.X[i*f : (i+1)*f], Y: held.Y[i : i+1]}}
	}
	if a.outputs, _, err = l.Outputs(a.outputs[:0], theta, &a.one); err != nil {
		return err
	}
	a.targets = metrics.Targets(a.targets[:0], &a.one)
	return e.term(term, a.outputs, a.targets[0])
}

// term sets dst to what an example counts: one cell of a histogram of probability by
// class (of two) or by right and wrong (of more), or a row of sums.
func (e *Evaluation) term(dst, outputs []float64, target float64) error {
	if e.classes == 0 {
		if len(outputs) != 1 {
			return fmt.Errorf("it has %d outputs, not one value", len(outputs))
		}
		r := math.Abs(outputs[0]-target) / e.bound
		if !(r <= 1) { // or not a number
			r = 1
		}
		y := within(target / e.bound)
		for i, v := range [valueSums]float64{1, r * r, r, y, y * y} {
			dst[i] = v * valueScale
		}
		return nil
	}
	label := int(target)
	if float64(label) != target || label < 0 || label >= e.classes {
		return fmt.Errorf("its class is %v; allowed: 0 to %d", target, e.classes-1)
	}
	if n := len(outputs); n != e.classes && !(n == 1 && e.classes == 2) {
		return fmt.Errorf("it has %d outputs for %d classes", n, e.classes)
	}
	p := make([]float64, e.classes)
	metrics.Task{Classes: e.classes, Loss: e.loss}.Probabilities(p, outputs)
	row, probability := label, p[1]
	if e.classes > 2 {
		row, probability = 0, slices.Max(p)
		if slices.Index(p, probability) == label {
			row = 1
		}
	}
	dst[row*e.bins+e.bin(probability)] = 1
	return nil
}

// bin is where a probability falls; what is not a number falls into the first.
func (e *Evaluation) bin(p float64) int {
	return min(e.bins-1, int(within(p)*float64(e.bins)))
}

// within is v from 0 to 1, and 0 if it is no number.
func within(v float64) float64 {
	if !(v > 0) {
		return 0
	}
	return min(1, v)
}
