package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
)

// Emphasis says which examples of classes weigh more in training, for rare outcomes. All
// of it is public, and works on an example's loss and gradient before that is clipped, so
// that no sensitivity changes. Models are judged without it.
type Emphasis struct {
	Weights []float64 // of the classes; nil: all 1
	Alpha   float64   // focal: weight of class 1 among two; class 0 has the rest to 1
	Gamma   float64   // focal: power of the probability of being wrong
}

// The defaults of the focal loss: class 1 is taken for the rare one.
const (
	focalAlpha = 0.75
	focalGamma = 2
)

// newEmphasis reads the run file's keys.
func newEmphasis(l config.Local, loss Loss, classes int) (Emphasis, error) {
	var c config.Checker
	checkEmphasis(&c, l, loss, classes)
	if faults := c.Faults(); len(faults) > 0 {
		return Emphasis{}, faults
	}
	e := Emphasis{Weights: l.ClassWeights}
	if loss == Focal {
		e.Alpha, e.Gamma = l.FocalAlpha, l.FocalGamma
		if e.Alpha == 0 {
			e.Alpha = focalAlpha
		}
		if e.Gamma == 0 {
			e.Gamma = focalGamma
		}
	}
	return e, nil
}

// checkEmphasis lists what is wrong with the keys.
func checkEmphasis(c *config.Checker, l config.Local, loss Loss, classes int) {
	const path = "algorithm.local."
	if l.ClassWeights != nil {
		c.Require(loss.OfClasses(), path+"class_weights", "are given, but the loss is %s; allowed: only with cross-entropy, focal, hinge", loss)
		c.Require(!loss.OfClasses() || len(l.ClassWeights) == classes, path+"class_weights", "are %d numbers for %d classes; allowed: %d", len(l.ClassWeights), classes, classes)
	}
	for i, w := range l.ClassWeights {
		c.Require(w > 0 && w <= 1e6, fmt.Sprintf("%sclass_weights.%d", path, i), "is %v; allowed: above 0, at most 1000000", w)
	}
	c.Require(loss == Focal || l.FocalAlpha == 0, path+"focal_alpha", "is given, but the loss is %s; allowed: only with focal", loss)
	c.Require(loss == Focal || l.FocalGamma == 0, path+"focal_gamma", "is given, but the loss is %s; allowed: only with focal", loss)
	c.Require(loss != Focal || classes == 2 || l.FocalAlpha == 0, path+"focal_alpha", "weighs class 1 against class 0, but there are %d classes; allowed: class_weights", classes)
}

// times is an example's slope or loss, times its class's weight.
func (e *Emphasis) times(v, label float64) float64 {
	if e.Weights == nil {
		return v
	}
	if at := int(label); at >= 0 && at < len(e.Weights) {
		return v * e.Weights[at]
	}
	return v
}

// focal is the loss (Lin et al. 2017) of an example whose right class has the logit z
// against all others, and its derivative with respect to z. With p = 1/(1+exp(-z)) and
// q = 1-p it is -a*q^gamma*log p; a is alpha or 1-alpha among two classes, 1 among more.
func (e *Emphasis) focal(z float64, classes, label int) (loss, slope float64) {
	a := 1.0
	if classes == 2 {
		if a = e.Alpha; label != 1 {
			a = 1 - e.Alpha
		}
	}
	log := -softplus(-z) // of p
	q := math.Exp(-softplus(z))
	power := a * math.Exp(-e.Gamma*softplus(z)) // a*q^gamma, without a root of 0
	loss = -power * log
	// d/dz = -a*q^gamma * (q - gamma*p*log p), since dp/dz = p*q.
	return loss, -power * (q - e.Gamma*math.Exp(log)*log)
}

// weighted is an objective of classes, times the class's weight.
type weighted[F Float] struct {
	Objective[F]
	by Emphasis
}

func (w weighted[F]) loss(out []F, label int, target, d []F) float64 {
	loss := w.Objective.loss(out, label, target, d)
	by := w.by.Weights[label]
	for i, v := range d {
		d[i] = F(by * float64(v))
	}
	return by * loss
}

// focal is the focal loss, on one logit or on one score a class as the cross entropy is.
type focal[F Float] struct {
	Objective[F] // that cross entropy
	by           Emphasis
}

func (f focal[F]) loss(out []F, label int, _, d []F) float64 {
	if len(out) == 1 {
		sign := float64(2*label - 1)
		loss, slope := f.by.focal(sign*float64(out[0]), 2, label)
		d[0] = F(sign * slope)
		return loss
	}
	// The right class's logit against the others together.
	top, rest := math.Inf(-1), 0.0
	for i, y := range out {
		if i != label {
			top = math.Max(top, float64(y))
		}
	}
	for i, y := range out {
		if i != label {
			rest += math.Exp(float64(y) - top)
		}
	}
	loss, slope := f.by.focal(float64(out[label])-top-math.Log(rest), len(out), label)
	// The others share the opposite slope in proportion to their probabilities.
	for i, y := range out {
		if i != label {
			d[i] = F(-slope * math.Exp(float64(y)-top) / rest)
		}
	}
	d[label] = F(slope)
	return loss
}
