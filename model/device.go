package model

import (
	"errors"
	"fmt"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
)

// Device computes one network outside this process: gradients and outputs of a client's rows,
// which are pictures' places among those that it holds, or those of texts or of values. What is
// private about a step stays here: the device gives norms and weighted sums, and package dp/mech
// makes weights, noise and charge of them. It may be used by several learners at a time.
type Device interface {
	// Gradients takes rows forwards and back under theta, in chunks, one after another. Of
	// every chunk use is given the norms of its rows' gradients, not below the true ones;
	// add then adds the gradients times factors to a sum, leaving out rows of factor 0. All
	// that was added is in the sums once Gradients returns. There are two sums at most.
	Gradients(theta []float32, c *data.Client, rows []int, use func(norms []float64, add func(sum, factors []float32) error) error) error
	// Whole is Gradients for sums of whole numbers, if the Plan says so: add adds
	// the gradients times weights, each value rounded toward zero, to a sum before it returns. What
	// a row adds depends on that row, its weight and theta alone.
	Whole(theta []float32, c *data.Client, rows []int, use func(norms []float64, add func(sum, weights []float64) error) error) error
	// Outputs sets dst to the network's outputs of rows, which are no texts, one after another.
	Outputs(dst, theta []float32, c *data.Client, rows []int) error
	// Mean sets dst to the mean of the rows' gradients.
	Mean(dst, theta []float32, c *data.Client, rows []int) error
	// Losses sets dst to the losses of rows of texts, with noise added to their words' vectors,
	// one text after another, unless it is nil.
	Losses(dst []float64, theta []float32, c *data.Client, rows []int, noise []float32) error
	// Stay has parameters stay on the device for a pass's steps.
	Stay(start Start) (Resident, error)
}

// On is the model with learners that compute on a device, which was made for its Plan.
func On(m Model, d Device) Model {
	n, err := forDevice(m)
	if err != nil { // it has no plan
		return m
	}
	own := *n
	own.device = d
	return &own
}

// onDevice is the gradient of a step: its sum, and what that is to be multiplied by.
func (l *networkLearner[F]) onDevice(theta []float64, c *data.Client, batch []int, s *Step) (sum []F, factor float64, err error) {
	switch {
	case len(theta) != len(l.theta):
		return nil, 0, fmt.Errorf("%d parameters for a network of %d", len(theta), len(l.theta))
	case s.Shift != nil:
		return nil, 0, fmt.Errorf("a device makes no steps with a regulariser inside the clip; set run.device cpu")
	}
	rows, err := l.deviceRows(c, batch)
	if err != nil {
		return nil, 0, err
	}
	fromDouble(l.theta, theta)
	single := any(l.theta).([]float32)
	if s.bound() == 0 {
		sum = l.single()
		if len(rows) == 0 {
			clear(sum)
			return sum, 1, nil
		}
		return sum, 1, l.device.Mean(any(sum).([]float32), single, c, rows)
	}
	if s.exact() {
		return nil, 1 / float64(s.Divisor), l.exactThere(single, c, rows, s)
	}
	clipped, err := l.sum.floats(len(l.theta), 1, s)
	if err != nil {
		return nil, 0, err
	}
	lane := any(clipped).(*mech.LaneSum[float32])
	err = l.device.Gradients(single, c, rows, func(norms []float64, add func(sum, factors []float32) error) error {
		var failed error
		err := lane.AddWeighted(0, norms, l.factors(len(norms)), func(dst, factors []float32) {
			if err := add(dst, factors); err != nil {
				failed = err
			}
		})
		if err == nil {
			err = failed
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	sum = clipped.Room()
	return sum, 1 / float64(s.Divisor), l.sum.release(sum, s)
}

// exactThere sets l.vector to the batch's sum with exact noise, of gradients that a device adds up.
func (l *networkLearner[F]) exactThere(theta []float32, c *data.Client, rows []int, s *Step) error {
	sum, err := l.sum.integers(len(l.theta), s)
	if err != nil {
		return err
	}
	if !sum.Weighted() {
		return fmt.Errorf("a device adds whole numbers where noise is at least 2^-22 of the clip, about 2.4e-7, and parameters are at most 2^27; set run.device cpu")
	}
	sum.Lanes(1)
	sum.Spread(l.engine.runner)
	var weights []float64
	err = l.device.Whole(theta, c, rows, func(norms []float64, add func(sum, weights []float64) error) error {
		if len(weights) < len(norms) {
			weights = make([]float64, len(norms))
		}
		var failed error
		err := sum.AddWeighted(0, norms, weights, func(dst, weights []float64) {
			if failed == nil {
				failed = add(dst, weights)
			}
		})
		return errors.Join(err, failed)
	})
	if err != nil {
		return err
	}
	return l.sum.releaseExact(l.double(), s)
}

// factors is room for the weights of a chunk's rows.
func (l *networkLearner[F]) factors(n int) []float32 {
	if cap(l.weights) < n {
		l.weights = make([]float32, n)
	}
	return l.weights[:n]
}

// deviceRows are where a client's examples are: among its pictures, or its rows.
func (l *networkLearner[F]) deviceRows(c *data.Client, batch []int) ([]int, error) {
	if err := l.fitting(c); err != nil {
		return nil, err
	}
	l.places = l.places[:0]
	for _, i := range batch {
		if i < 0 || i >= c.Len() {
			return nil, fmt.Errorf("example %d of %d", i, c.Len())
		}
		if l.pictures {
			i = c.Index[i]
		}
		l.places = append(l.places, i)
	}
	return l.places, nil
}

// outputsOf sets dst to the outputs of the examples that are laid out, or of the client's
// own on a device.
func (l *networkLearner[F]) outputsOf(dst []F, c *data.Client, batch []int) error {
	if l.device == nil || l.engine.noise != nil || l.vocabulary > 0 { // of texts a device gives losses only
		return l.engine.Outputs(dst, l.theta, l.ex, l.rows)
	}
	if l.stopped != nil && l.stopped() {
		return ErrStopped
	}
	rows, err := l.deviceRows(c, batch)
	if err != nil {
		return err
	}
	return l.device.Outputs(any(dst).([]float32), any(l.theta).([]float32), c, rows)
}

// judgesTexts says that a device gives the losses of texts, whose outputs nobody asks for.
func (l *networkLearner[F]) judgesTexts() bool {
	return l.device != nil && l.vocabulary > 0
}

// textLosses sets dst to the losses of all of a client's texts, some at a time.
func (l *networkLearner[F]) textLosses(dst, theta []float64, c *data.Client) error {
	if len(theta) != len(l.theta) {
		return fmt.Errorf("%d parameters for a network of %d", len(theta), len(l.theta))
	}
	fromDouble(l.theta, theta)
	block := deviceBlock
	if l.engine.noise != nil {
		block = blockSize
	}
	for from := 0; from < c.Len(); from += block {
		if l.stopped != nil && l.stopped() {
			return ErrStopped
		}
		to := min(from+block, c.Len())
		rows, err := l.deviceRows(c, identity(&l.every, to)[from:])
		if err == nil {
			err = l.device.Losses(dst[from:to], any(l.theta).([]float32), c, rows, l.textNoise(from, to))
		}
		if err != nil {
			return err
		}
	}
	return l.fitting(c)
}

// textNoise is the noise on the vectors of texts' words, drawn as an engine draws it; nil:
// there is none.
func (l *networkLearner[F]) textNoise(from, to int) []float32 {
	n := l.engine.noise
	if n == nil {
		return nil
	}
	vectors := l.engine.network.chain.vectors()
	each := vectors.words * vectors.units
	if len(l.noise) < blockSize*each {
		l.noise = make([]float32, blockSize*each)
	}
	l.engine.runner.Each(to-from, func(_, i int) {
		own := l.noise[i*each : (i+1)*each]
		clear(own)
		addNoise(n.source, n.deviation, own, from+i)
	})
	return l.noise[:(to-from)*each]
}
