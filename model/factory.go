package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// Of builds the run file's model for data of a shape, from the model block, the loss
// and the shape alone: simulations, federations, audits and sweeps all have it from
// here, so that one run file trains one model.
func Of(run config.Run, s data.Shape) (Model, error) {
	if err := fitsPeople(run, s); err != nil {
		return nil, err
	}
	if run.Model.Kind == "projection" {
		return NewProjection(s, run.Algorithm.Components)
	}
	loss, err := ParseLoss(run.Algorithm.Local.Loss)
	if err != nil {
		return nil, fmt.Errorf("algorithm.local.loss: %w", err)
	}
	if err := fits(loss, s); err != nil {
		return nil, fmt.Errorf("algorithm.local.loss %w", err)
	}
	e, err := newEmphasis(run.Algorithm.Local, loss, s.Classes)
	if err != nil {
		return nil, err
	}
	var m Model
	switch block := run.Model; {
	case s.Vocabulary > 0 && block.Kind != "network" && block.Kind != "transformer":
		return nil, fmt.Errorf("model.kind %q, but words need a network; allowed: transformer, network", block.Kind)
	case block.Kind == "transformer":
		if block.Name, block.Layers, err = "", nil, nil; s.Vocabulary == 0 {
			return nil, fmt.Errorf("model.kind transformer, but the data are no words; allowed: network, linear")
		}
		if block.Layers, err = TransformerLayers(block, s.Vocabulary); err == nil {
			m, err = newNetwork[float32](block, loss, e, s)
		}
	case block.Kind != "network" && s.Pictures():
		return nil, fmt.Errorf("model.kind %q, but pictures need a network; allowed: network", block.Kind)
	case block.Kind != "network":
		return newLinear(block, loss, e, s)
	case s.Pictures() || s.Vocabulary > 0 || s.Windows > 0:
		m, err = newNetwork[float32](block, loss, e, s)
	default:
		m, err = newNetwork[float64](block, loss, e, s)
	}
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return m, nil
}

func newLinear(m config.Model, loss Loss, e Emphasis, s data.Shape) (Model, error) {
	one := Linear{Features: s.Features, Intercept: m.Intercept, InitSD: m.InitSD, Loss: loss, Classes: s.Classes, Emphasis: e}
	switch {
	case s.Windows > 0 && s.Classes != 2:
		return nil, fmt.Errorf("model.kind %q of people who fall ill or do not, but there are %d classes; allowed: 2", m.Kind, s.Classes)
	case s.Windows > 0:
		one.Intercept = false // the constant is an input
		return Risk{Linear: one, Windows: s.Windows, Start: m.Bias}, nil
	case s.Reconstruct:
		return nil, fmt.Errorf("model.kind %q has one output and cannot give its inputs back; allowed: network", m.Kind)
	case s.Classes > 2 && loss == RMSE:
		return nil, fmt.Errorf("algorithm.local.loss is rmse, a root over all outputs of a batch, which model.kind %q of %d classes does not have; allowed: cross-entropy, focal, squared-error, half-squared-error", m.Kind, s.Classes)
	case s.Classes > 2:
		return Softmax{one}, nil
	}
	return one, nil
}

// newNetwork builds a network: of pictures in single precision, of rows in double.
func newNetwork[F Float](m config.Model, loss Loss, e Emphasis, s data.Shape) (Model, error) {
	input, layers := Shape{1, 1, s.Features}, m.Layers
	if s.Pictures() {
		input = Shape{s.Height, s.Width, s.Depth()}
	}
	if s.Windows > 0 {
		input = Shape{1, 1, s.Features - 1} // without the constant: layers have their own
	}
	if m.Name != "" {
		n, err := NamedNetwork(m.Name)
		switch {
		case err != nil:
			return nil, err
		case s.Pictures() && n.Input != input:
			return nil, fmt.Errorf("network %s takes %v, the pictures are %v", m.Name, n.Input, input)
		case n.Input.Len() != input.Len():
			return nil, fmt.Errorf("network %s takes %d values, the data have %d", m.Name, n.Input.Len(), s.Features)
		}
		layers = n.Layers
	}
	net, err := Build[F](input, layers)
	if err != nil {
		return nil, err
	}
	if err := ends(net.Output().Len(), input.Len(), loss, s); err != nil {
		return nil, err
	}
	if net.Parameters() == 0 {
		return nil, fmt.Errorf("the network has no parameters to train")
	}
	return &network[F]{Network: net, layers: layers, loss: loss, emphasis: e, classes: s.Classes, reconstructs: s.Reconstruct, vocabulary: s.Vocabulary, pictures: s.Pictures(), people: s.Windows > 0}, nil
}

// ends says why a network with so many inputs does not end with as many values as the
// targets need.
func ends(out, in int, loss Loss, s data.Shape) error {
	one := s.Classes == 0 || s.Classes == 2 // a value, or the score of class 1
	switch {
	case s.Vocabulary > 0 && out != in*s.Vocabulary:
		return fmt.Errorf("the network ends with %d values; allowed: %d, a score for each of %d words at each of %d places", out, in*s.Vocabulary, s.Vocabulary, in)
	case s.Vocabulary > 0:
		return nil
	case s.Reconstruct && s.Classes != 0:
		return fmt.Errorf("the data have %d classes, but are to be their own targets; allowed: one of both", s.Classes)
	case s.Reconstruct && out != in:
		return fmt.Errorf("the network ends with %d values, but is to give its %d inputs back", out, in)
	case s.Reconstruct:
		return nil
	case loss == Hinge && out != 1:
		return fmt.Errorf("the network ends with %d values, the hinge loss takes one", out)
	case s.Classes == 0 && out != 1:
		return fmt.Errorf("the network ends with %d values, the target is one", out)
	case !(one && out == 1) && out != s.Classes || s.Classes == 1:
		return fmt.Errorf("the network ends with %d values for %d classes", out, s.Classes)
	}
	return nil
}

// fits says why a loss does not go with the targets, and which ones do.
func fits(loss Loss, s data.Shape) error {
	allowed, targets := []Loss{SquaredError, HalfSquaredError, RMSE}, "the targets are values"
	switch {
	case s.Vocabulary > 0:
		allowed, targets = []Loss{NextWord}, "the targets are words"
	case s.Reconstruct:
		targets = "the targets are the examples themselves"
	case s.Classes == 2:
		allowed, targets = append(allowed, CrossEntropy, Hinge, Focal), "the targets are 2 classes"
	case s.Classes > 0:
		allowed, targets = append(allowed, CrossEntropy, Focal), fmt.Sprintf("the targets are %d classes", s.Classes)
	}
	if slices.Contains(allowed, loss) {
		return nil
	}
	var names []string
	for _, l := range allowed {
		names = append(names, l.String())
	}
	return fmt.Errorf("is %q, but %s; allowed: %s", loss, targets, strings.Join(names, ", "))
}

// Check lists what is wrong with the model block, and with the loss and the optimiser
// that it is trained by.
func Check(run config.Run) config.Faults {
	var c config.Checker
	m, l := run.Model, run.Algorithm.Local
	s, whole := data.ShapeOf(run.Data)
	if m.Kind == "projection" {
		c.Require(m.Name == "" && len(m.Layers) == 0, "model.kind", "is projection, but a name or layers are given; allowed: network")
		if whole {
			_, err := NewProjection(s, run.Algorithm.Components)
			c.Require(err == nil, "algorithm.components", "asks for %v", err)
		}
		return c.Faults()
	}
	if m.Kind == "transformer" {
		c.Require(m.Name == "" && len(m.Layers) == 0, "model.kind", "is transformer, but a name or layers are given; allowed: network")
	} else if m.Kind == "network" {
		c.Require(m.Name == "" || len(m.Layers) == 0, "model.layers", "stand beside the name %q; give one of them", m.Name)
		c.Require(m.Name != "" || len(m.Layers) > 0, "model.layers", "are missing; give layers or a name")
	} else {
		c.Require(!s.Pictures(), "model.kind", "is %q, but pictures need a network; allowed: network", m.Kind)
		c.Require(m.Name == "" && len(m.Layers) == 0, "model.kind", "is %q, but a name or layers are given; allowed: network", m.Kind)
	}
	c.Require(m.Start == "" || m.Kind == "transformer" || m.Kind == "network", "model.start", "is given, but model.kind is %q; allowed: only with network, transformer", m.Kind)
	c.Require(m.Start == "" || run.Algorithm.Hypotheses <= 1, "model.start", "is given, but algorithm.hypotheses is %d: models that start alike cannot be told apart; set algorithm.hypotheses 1, or leave model.start out", run.Algorithm.Hypotheses)
	if loss, err := ParseLoss(l.Loss); err == nil && (whole || !s.Pictures()) {
		if err := fits(loss, s); err != nil {
			c.Require(false, "algorithm.local.loss", "%v", err)
		}
		checkEmphasis(&c, l, loss, s.Classes)
	}
	if len(c.Faults()) == 0 && (whole || s.Features > 0) {
		_, err := Of(run, s)
		c.Require(err == nil, "model", "%v", err)
	}
	c.Require(l.Limit == 0 || !whole || s.Pictures(), "algorithm.local.limit", "is %d, but of rows all are taken; allowed: 0 (or pictures)", l.Limit)
	standard := config.Default(run.Data.Kind, run.Algorithm.Kind, run.Algorithm.Mode).Algorithm.Local
	unread := func(ok bool, key, needs string) {
		c.Require(ok, "algorithm.local."+key, "is given, but algorithm.local.optimiser is %q; allowed: only with %s", l.Optimiser, needs)
	}
	unread(l.Momentum == standard.Momentum || l.Optimiser == "momentum", "momentum", "momentum")
	moments := l.Optimiser == "adam" || l.Optimiser == "adamw"
	unread(l.Beta1 == standard.Beta1 || moments, "beta1", "adam, adamw")
	unread(l.Beta2 == standard.Beta2 || moments, "beta2", "adam, adamw")
	unread(l.WeightDecay == standard.WeightDecay || l.Optimiser == "adamw", "weight_decay", "adamw")
	return c.Faults()
}
