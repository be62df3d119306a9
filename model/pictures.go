package model

import (
	"fmt"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/pool"
)

// pictureModel classifies grey pictures with a network in single precision.
type pictureModel struct {
	net    *Network[float32]
	layers []Layer
	pixels int
}

// newPictures builds a network for pictures of classes.
func newPictures(m config.Model, s data.Shape) (Model, error) {
	input, layers := Shape{s.Height, s.Width, 1}, m.Layers
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
	if net.Output().Len() != s.Classes {
		return nil, fmt.Errorf("the network ends with %d values for %d classes", net.Output().Len(), s.Classes)
	}
	return &pictureModel{net: net, layers: layers, pixels: input.Len()}, nil
}

func (p *pictureModel) Parameters() int { return p.net.Parameters() }

func (p *pictureModel) Initialise(theta []float64, src rand.Source) {
	single := make([]float32, len(theta))
	p.net.Initialise(single, src)
	for i, v := range single {
		theta[i] = float64(v)
	}
}

// Learner has a network of its own: layers keep what they derive from the
// parameters, and workers train different ones at the same time.
func (p *pictureModel) Learner() Learner {
	net, err := Build[float32](p.net.Input(), p.layers)
	if err != nil {
		panic("model: a network that was built before: " + err.Error())
	}
	e, err := NewEngine(net, Objective[float32](squaredError[float32]{}), pool.New(1))
	if err != nil {
		panic("model: squared error refuses a network: " + err.Error())
	}
	return &PictureLearner{pictureModel: p, engine: e}
}

// PictureLearner trains and judges on one client's pictures.
type PictureLearner struct {
	*pictureModel
	engine  *Engine[float32]
	theta   []float32
	ex      Examples[float32]
	order   []int
	outputs []float32
	classes []int
}

// load lays the client's pictures and targets out for an objective.
func (l *PictureLearner) load(theta []float64, c *data.Client, loss Loss) error {
	if c.Images == nil {
		return fmt.Errorf("the network needs pictures, the client has rows")
	}
	l.theta = l.theta[:0]
	for _, v := range theta {
		l.theta = append(l.theta, float32(v))
	}
	l.ex.X, l.ex.Labels, l.ex.Targets, l.order = l.ex.X[:0], l.ex.Labels[:0], l.ex.Targets[:0], l.order[:0]
	classes := l.net.Output().Len()
	l.engine.objective = crossEntropy[float32]{}
	if loss != CrossEntropy {
		l.engine.objective = squaredError[float32]{}
		if loss == RMSE {
			l.engine.objective = rootSquaredError[float32]{}
		}
	}
	for k, i := range c.Index {
		for _, b := range c.Images.Pixels[i*l.pixels : (i+1)*l.pixels] {
			l.ex.X = append(l.ex.X, float32(b)/255)
		}
		l.order = append(l.order, k)
		if loss == CrossEntropy {
			l.ex.Labels = append(l.ex.Labels, c.Images.Labels[i])
			continue
		}
		for j := range classes {
			var hot float32
			if j == c.Images.Labels[i] {
				hot = 1
			}
			l.ex.Targets = append(l.ex.Targets, hot)
		}
	}
	return nil
}

// Loss is the mean cross entropy, by which clients choose whatever they train on.
func (l *PictureLearner) Loss(theta []float64, c *data.Client) (float64, error) {
	if err := l.load(theta, c, CrossEntropy); err != nil {
		return 0, err
	}
	if err := l.engine.each(l.theta, l.ex, l.order, func(*workspace[float32], int, []int) error { return nil }); err != nil {
		return 0, err
	}
	return mean(l.engine.losses), nil
}

// Right is how many of the client's pictures are classified right.
func (l *PictureLearner) Right(theta []float64, c *data.Client) (right int, err error) {
	classes, err := l.Classify(theta, c)
	for k, class := range classes {
		if class == l.ex.Labels[k] {
			right++
		}
	}
	return right, err
}

// Classify gives every picture of the client its class. The result is valid until
// the next call.
func (l *PictureLearner) Classify(theta []float64, c *data.Client) ([]int, error) {
	if err := l.load(theta, c, CrossEntropy); err != nil {
		return nil, err
	}
	classes := l.net.Output().Len()
	if n := len(l.order) * classes; cap(l.outputs) < n {
		l.outputs = make([]float32, n)
	}
	out := l.outputs[:len(l.order)*classes]
	if err := l.engine.Outputs(out, l.theta, l.ex, l.order); err != nil {
		return nil, err
	}
	l.classes = l.classes[:0]
	for k := range l.order {
		best, row := 0, out[k*classes:(k+1)*classes]
		for j, v := range row {
			if v > row[best] {
				best = j
			}
		}
		l.classes = append(l.classes, best)
	}
	return l.classes, nil
}

// Train is plain descent in single precision.
func (l *PictureLearner) Train(d Descent, theta []float64, c *data.Client, shuffle Shuffler) error {
	if err := l.load(theta, c, d.Loss); err != nil {
		return err
	}
	size := d.Batch
	if size == 0 || size > len(l.order) {
		size = len(l.order)
	}
	for range d.Epochs {
		if size < len(l.order) {
			shuffle.Shuffle(l.order)
		}
		for rest := l.order; len(rest) > 0; {
			batch := rest[:min(size, len(rest))]
			rest = rest[len(batch):]
			if _, err := l.engine.Descend(l.theta, l.ex, batch, d.Step); err != nil {
				return err
			}
		}
	}
	toDouble(theta, l.theta)
	return nil
}
