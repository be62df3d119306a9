package model

import (
	"fmt"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/pool"
)

// siloNetwork is a network for a silo's pictures, in single precision.
type siloNetwork struct {
	input    Shape
	layers   []Layer
	net      *Network[float32]
	labelled bool
}

// newSiloNetwork builds the run file's network for pictures: of classes, or of
// values if there are none.
func newSiloNetwork(m config.Model, s data.Shape) (*siloNetwork, error) {
	input, layers, classes := Shape{s.Height, s.Width, s.Depth()}, m.Layers, s.Classes
	if m.Name != "" {
		n, err := NamedNetwork(m.Name)
		if err != nil {
			return nil, err
		}
		if n.Input != input {
			return nil, fmt.Errorf("network %s takes %v, the pictures are %v", m.Name, n.Input, input)
		}
		layers = n.Layers
	}
	net, err := Build[float32](input, layers)
	if err != nil {
		return nil, err
	}
	switch out := net.Output().Len(); {
	case classes > 0 && (classes == 1 || out != classes):
		return nil, fmt.Errorf("the network ends with %d values for %d classes", out, classes)
	case classes == 0 && out != 1:
		return nil, fmt.Errorf("the network ends with %d values, the target is one", out)
	case net.Parameters() == 0:
		return nil, fmt.Errorf("the network has no parameters to train")
	}
	return &siloNetwork{input: input, layers: layers, net: net, labelled: classes > 0}, nil
}

func (m *siloNetwork) Parameters() int { return m.net.Parameters() }

func (m *siloNetwork) Initialise(theta []float64, src rand.Source) {
	single := make([]float32, len(theta))
	m.net.Initialise(single, src)
	toDouble(theta, single)
}

// Learner has a network of its own: layers keep what they derive from the
// parameters, and every worker trains other ones.
func (m *siloNetwork) Learner() Learner {
	net, err := Build[float32](m.input, m.layers)
	if err != nil {
		panic("model: a network that was built before: " + err.Error())
	}
	var objective Objective[float32] = crossEntropy[float32]{}
	if !m.labelled {
		objective = halfSquaredError[float32]{}
	}
	// Silos are what is spread over workers; within one there is nothing to share.
	e, err := NewEngine(net, objective, pool.New(1))
	if err != nil {
		panic("model: an objective refuses a network: " + err.Error())
	}
	for values := net.values(); e.chunk > 4 && e.chunk*values > siloChunkValues; {
		e.chunk /= 2
	}
	l := &siloPictures{siloNetwork: m, engine: e}
	for i := range l.grey {
		l.grey[i] = float32(i) / 255
	}
	return l
}

// siloChunkValues is how many activations a chunk of a silo's pictures may have.
// Networks of silos are small: with their pictures' own gradients, which are kept
// until they are clipped, a quarter of what an engine allows fills a core's cache.
const siloChunkValues = chunkValues / 4

// halfSquaredError trains on half the squared error and reports the squared error,
// as SiloLinear does.
type halfSquaredError[F Float] struct{ squaredError[F] }

func (h halfSquaredError[F]) loss(out []F, label int, target, d []F) float64 {
	loss := h.squaredError.loss(out, label, target, d)
	for i := range d {
		d[i] /= 2
	}
	return loss
}

// toDouble copies single precision into double.
func toDouble(dst []float64, src []float32) {
	for i, v := range src {
		dst[i] = float64(v)
	}
}
