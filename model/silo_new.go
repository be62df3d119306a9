package model

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// newSilo builds a model for silos; its learners are SiloLearners. The loss follows
// from the data: half the squared error of values, the cross entropy of pictures'
// classes; rows of two classes train a linear SVM, or a logistic regression if loss is
// "cross-entropy".
func newSilo(m config.Model, loss string, s data.Shape) (Model, error) {
	if s.Pictures() {
		if m.Kind != "network" {
			return nil, fmt.Errorf("model.kind %q, but pictures need a network; allowed: network", m.Kind)
		}
		net, err := newSiloNetwork(m, s)
		if err != nil {
			return nil, fmt.Errorf("model: %w", err)
		}
		return net, nil
	}
	if m.Kind != "linear" {
		return nil, fmt.Errorf("model.kind %q, but silos of rows train linear models; allowed: linear", m.Kind)
	}
	linear := SiloLinear{Linear: Linear{Features: s.Features, Intercept: m.Intercept, InitSD: m.InitSD}}
	switch {
	case s.Classes == 2 && loss == "cross-entropy":
		linear.Loss = Logistic
	case s.Classes == 2:
		linear.Loss = Hinge
	case s.Classes != 0:
		return nil, fmt.Errorf("model: rows of %d classes; linear models of silos know 2 classes, or values", s.Classes)
	case loss == "cross-entropy":
		return nil, fmt.Errorf("model: algorithm.local.loss cross-entropy is of classes, the silos' targets are values; allowed: squared-error")
	}
	return linear, nil
}

// checkSilo lists what is wrong with the model block for data of silos.
func checkSilo(run config.Run) config.Faults {
	var c config.Checker
	m := run.Model
	s, _ := data.ShapeOf(run.Data)
	if !s.Pictures() {
		c.Require(m.Kind == "linear", "model.kind", "is %q, but silos of rows train linear models; allowed: linear", m.Kind)
		c.Require(m.Name == "" && len(m.Layers) == 0, "model.kind", "is %q, but a name or layers are given; remove them", m.Kind)
		return c.Faults()
	}
	c.Require(m.Kind == "network", "model.kind", "is %q, but pictures need a network; allowed: network", m.Kind)
	c.Require(m.Name == "" || len(m.Layers) == 0, "model.layers", "stand beside the name %q; give one of them", m.Name)
	c.Require(m.Name != "" || len(m.Layers) > 0, "model.layers", "are missing; give layers or a name")
	if len(c.Faults()) == 0 {
		_, err := newSiloNetwork(m, s)
		c.Require(err == nil, "model", "%v", err)
	}
	return c.Faults()
}
