package model

import (
	"fmt"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
)

// Device computes one network of pictures outside this process: gradients and outputs of
// rows of pictures that it holds. What is private about a step stays here: the device gives
// norms and weighted sums, and package dp/mech makes weights, noise and charge of them. It
// may be used by several learners at a time.
type Device interface {
	// Gradients takes rows forwards and back under theta, in chunks, one after another. Of
	// every chunk use is given the norms of its rows' gradients, not below the true ones;
	// add then adds the gradients times factors to a sum, leaving out rows of factor 0. All
	// that was added is in the sums once Gradients returns. There are two sums at most.
	Gradients(theta []float32, pictures *data.Images, rows []int, use func(norms []float64, add func(sum, factors []float32) error) error) error
	// Outputs sets dst to the network's outputs of rows, one after another.
	Outputs(dst, theta []float32, pictures *data.Images, rows []int) error
	// Stay has parameters stay on the device for a pass's steps.
	Stay(start Start) (Resident, error)
}

// On is the model with learners that compute on a device, which was made for its Plan.
func On(m Model, d Device) Model {
	if n, ok := m.(*network[float32]); ok {
		own := *n
		own.device = d
		return &own
	}
	return m
}

// onDevice is the gradient of a step: its sum, and what that is to be multiplied by.
func (l *networkLearner[F]) onDevice(theta []float64, c *data.Client, batch []int, s *Step) (sum []F, factor float64, err error) {
	switch {
	case len(theta) != len(l.theta):
		return nil, 0, fmt.Errorf("%d parameters for a network of %d", len(theta), len(l.theta))
	case s.exact() || s.Shift != nil:
		return nil, 0, fmt.Errorf("a device makes no steps with exact noise, nor with a regulariser inside the clip; set run.device cpu")
	}
	rows, err := l.pictureRows(c, batch)
	if err != nil {
		return nil, 0, err
	}
	fromDouble(l.theta, theta)
	single := any(l.theta).([]float32)
	if s.bound() == 0 {
		sum = l.single()
		clear(sum)
		if len(rows) == 0 {
			return sum, 1, nil
		}
		share := float32(1 / float64(len(rows)))
		err = l.device.Gradients(single, c.Images, rows, func(norms []float64, add func(sum, factors []float32) error) error {
			factors := l.factors(len(norms))
			for i := range factors {
				factors[i] = share
			}
			return add(any(sum).([]float32), factors)
		})
		return sum, 1, err
	}
	clipped, err := l.sum.floats(len(l.theta), 1, s)
	if err != nil {
		return nil, 0, err
	}
	lane := any(clipped).(*mech.LaneSum[float32])
	err = l.device.Gradients(single, c.Images, rows, func(norms []float64, add func(sum, factors []float32) error) error {
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

// factors is room for the weights of a chunk's rows.
func (l *networkLearner[F]) factors(n int) []float32 {
	if cap(l.weights) < n {
		l.weights = make([]float32, n)
	}
	return l.weights[:n]
}

// pictureRows are where a client's examples are among its pictures.
func (l *networkLearner[F]) pictureRows(c *data.Client, batch []int) ([]int, error) {
	if err := l.fitting(c); err != nil {
		return nil, err
	}
	l.places = l.places[:0]
	for _, i := range batch {
		if i < 0 || i >= c.Len() {
			return nil, fmt.Errorf("example %d of %d", i, c.Len())
		}
		l.places = append(l.places, c.Index[i])
	}
	return l.places, nil
}

// outputsOf sets dst to the outputs of the examples that are laid out, or of the client's
// own on a device.
func (l *networkLearner[F]) outputsOf(dst []F, c *data.Client, batch []int) error {
	if l.device == nil || l.engine.noise != nil {
		return l.engine.Outputs(dst, l.theta, l.ex, l.rows)
	}
	if l.stopped != nil && l.stopped() {
		return ErrStopped
	}
	rows, err := l.pictureRows(c, batch)
	if err != nil {
		return err
	}
	return l.device.Outputs(any(dst).([]float32), any(l.theta).([]float32), c.Images, rows)
}

// Plan is a network as a device is told of it.
type Plan struct {
	Input      Shape
	Layers     []PlannedLayer
	Loss       string // cross-entropy, of classes; squared-error or half-squared-error, to the example itself
	Parameters int
	Chunk      int // examples at a time; 0: as many as pay
}

// PlannedLayer is a layer with parameters, or a pool, and the activation behind it.
type PlannedLayer struct {
	Name                    string // where it is in the run file, for messages
	Kind                    string // conv, transposed-conv, linear, max-pool
	In, Out                 Shape
	Kernel, Stride, Padding int
	Bias                    bool
	Start                   int    // of its parameters: weights, then biases
	Activation              string // relu, leaky-relu, sigmoid, tanh; empty: none
	Slope                   float64
}

// PlanOf describes a model to a device, or says what of it no device here computes.
func PlanOf(m Model) (Plan, error) {
	n, ok := m.(*network[float32])
	if !ok || !n.pictures {
		return Plan{}, fmt.Errorf("a device computes networks of pictures, and this model is none")
	}
	p := Plan{Input: n.Input(), Loss: n.loss.String(), Parameters: n.Parameters()}
	switch {
	case n.emphasis.Weights != nil || n.loss == Focal:
		return Plan{}, fmt.Errorf("a device has no kernel for classes of different weight or the focal loss")
	case n.loss == CrossEntropy && n.Output().Len() > 1:
	case n.reconstructs && (n.loss == SquaredError || n.loss == HalfSquaredError):
	default:
		return Plan{}, fmt.Errorf("a device has no kernel for the loss %s of a network that ends with %d values; it has cross-entropy of classes with an output each, and squared errors to the pictures themselves", n.loss, n.Output().Len())
	}
	for i, l := range n.chain.layers {
		name := n.chain.names[i]
		one := PlannedLayer{Name: name, In: n.chain.shapeInto(i), Out: l.output(), Start: n.chain.starts[i]}
		switch l := l.(type) {
		case *conv[float32]:
			one.Kind, one.Bias = "conv", l.bias
			if l.transposed {
				one.Kind = "transposed-conv"
			}
			one.Kernel, one.Stride, one.Padding = l.geometry.KernelH, l.geometry.StrideH, l.geometry.PadH
			one.relu(l.relu)
		case *dense[float32]:
			one.Kind, one.Bias = "linear", l.bias
			one.relu(l.relu)
		case *maxPool[float32]:
			one.Kind = "max-pool"
			one.Kernel, one.Stride, one.Padding = l.geometry.KernelH, l.geometry.StrideH, l.geometry.PadH
		case *activation[float32]:
			if len(p.Layers) == 0 || p.Layers[len(p.Layers)-1].Activation != "" {
				return Plan{}, fmt.Errorf("a device has no kernel for %s there: activations stand behind a linear layer, a convolution or a pool, one at a time", name)
			}
			last := &p.Layers[len(p.Layers)-1]
			last.Activation, last.Slope = l.kind, l.slope
			continue
		default:
			return Plan{}, fmt.Errorf("a device has no kernel for %s; it has linear, conv, transposed-conv, max-pool, relu, leaky-relu, sigmoid, tanh, flatten", name)
		}
		p.Layers = append(p.Layers, one)
	}
	return p, nil
}

func (l *PlannedLayer) relu(is bool) {
	if is {
		l.Activation = "relu"
	}
}

// shapeInto is what goes into layer i.
func (c *chain[F]) shapeInto(i int) Shape {
	if i == 0 {
		return c.input
	}
	return c.layers[i-1].output()
}
