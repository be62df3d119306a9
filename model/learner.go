package model

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/pool"
)

// Model is what clients train on their own data, its parameters in one vector.
type Model interface {
	Parameters() int
	// Initialise draws the parameters that training starts from.
	Initialise(theta []float64, src rand.Source)
	// Learner is the model with one worker's memory.
	Learner() Learner
}

// Learner trains and judges on one client's data. It is not safe for concurrent
// use. Errors are of data that do not fit the model, and of trainers that fail; values
// that leave the finite numbers are none.
type Learner interface {
	// Loss is what clients compare hypotheses by: the root mean squared error of
	// rows, the mean loss of pictures.
	Loss(theta []float64, c *data.Client) (float64, error)
	// Train moves theta downhill, in place. Batches are drawn by shuffle; a batch
	// of all examples needs none. After an error theta is anywhere.
	Train(d Descent, theta []float64, c *data.Client, shuffle Shuffler) error
}

// Of builds the run file's model for data of a shape: simulations, federations, audits
// and sweeps all have it from here, so that one run file trains one model.
func Of(run config.Run, s data.Shape) (Model, error) {
	switch {
	case run.Data.OfSilos():
		return newSilo(run.Model, run.Algorithm.Local.Loss, s)
	case s.Pictures():
		return newPictures(run.Model, s)
	}
	return newRows(run.Model, s.Features)
}

// newRows builds a model for rows with so many features.
func newRows(m config.Model, features int) (Model, error) {
	if m.Kind != "network" {
		return Linear{Features: features, Intercept: m.Intercept, InitSD: m.InitSD}, nil
	}
	layers := m.Layers
	if m.Name != "" {
		n, err := NamedNetwork(m.Name)
		if err != nil {
			return nil, err
		}
		if n.Input.Len() != features {
			return nil, fmt.Errorf("network %s takes %d values, the data have %d", m.Name, n.Input.Len(), features)
		}
		layers = n.Layers
	}
	net, err := Build[float64](Shape{1, 1, features}, layers)
	if err != nil {
		return nil, err
	}
	if net.Output().Len() != 1 {
		return nil, fmt.Errorf("the network ends with %d values, the target is one", net.Output().Len())
	}
	if net.Parameters() == 0 {
		return nil, fmt.Errorf("the network has no parameters to train")
	}
	return networkRegression{net, layers}, nil
}

// Check lists what is wrong with the model block.
func Check(run config.Run) config.Faults {
	if run.Data.OfSilos() {
		return checkSilo(run)
	}
	var c config.Checker
	m := run.Model
	if m.Kind == "network" {
		c.Require(m.Name == "" || len(m.Layers) == 0, "model.layers", "stand beside the name %q; give one of them", m.Name)
		c.Require(m.Name != "" || len(m.Layers) > 0, "model.layers", "are missing; give layers or a name")
		if s, _ := data.ShapeOf(run.Data); len(c.Faults()) == 0 && s.Features > 0 {
			_, err := newRows(m, s.Features)
			c.Require(err == nil, "model", "%v", err)
		}
	} else {
		s, _ := data.ShapeOf(run.Data)
		c.Require(!s.Pictures(), "model.kind", "is %q, but pictures need a network; allowed: network", m.Kind)
		c.Require(m.Name == "" && len(m.Layers) == 0, "model.kind", "is %q, but a name or layers are given; allowed: network", m.Kind)
	}
	return c.Faults()
}

type networkRegression struct {
	*Network[float64]
	layers []Layer
}

// Learner has a network of its own: layers keep what they derive from the
// parameters, and workers train different ones at the same time.
func (n networkRegression) Learner() Learner {
	net, err := Build[float64](n.Input(), n.layers)
	if err != nil {
		panic("model: a network that was built before: " + err.Error())
	}
	// Clients are what is spread over workers; within one there is nothing to share.
	e, err := NewEngine(net, Objective[float64](squaredError[float64]{}), pool.New(1))
	if err != nil {
		panic("model: squared error refuses a network: " + err.Error())
	}
	return &networkLearner{engine: e}
}

type networkLearner struct {
	engine  *Engine[float64]
	scratch Scratch
	all     []int
}

func (n *networkLearner) rows(count int, order []int) []int {
	if order != nil {
		return order
	}
	for i := len(n.all); i < count; i++ {
		n.all = append(n.all, i)
	}
	return n.all[:count]
}

func (n *networkLearner) Loss(theta []float64, c *data.Client) (float64, error) {
	n.engine.objective = squaredError[float64]{}
	ex := Examples[float64]{X: c.X, Targets: c.Y}
	if err := n.engine.each(theta, ex, n.rows(c.Rows.Len(), nil), func(*workspace[float64], int, []int) error { return nil }); err != nil {
		return 0, err
	}
	return math.Sqrt(mean(n.engine.losses)), nil
}

// RowErrors sets dst to every row's squared error.
func (n *networkLearner) RowErrors(dst, theta []float64, c *data.Client) error {
	_, err := n.Loss(theta, c)
	copy(dst, n.engine.losses)
	return err
}

func (n *networkLearner) Train(d Descent, theta []float64, c *data.Client, shuffle Shuffler) error {
	return d.train(n, theta, c.Rows, shuffle, &n.scratch)
}

func (n *networkLearner) gradient(grad, theta []float64, rows data.Rows, order []int, loss Loss) error {
	n.engine.objective = squaredError[float64]{}
	if loss == RMSE {
		n.engine.objective = rootSquaredError[float64]{}
	}
	ex := Examples[float64]{X: rows.X, Targets: rows.Y}
	_, err := n.engine.Gradient(grad, theta, ex, n.rows(rows.Len(), order))
	return err
}
