package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Loss is what training follows downhill.
type Loss int

// The losses of the papers.
const (
	SquaredError     Loss = iota // mean of squares: the synthetic study's nearest setting
	HalfSquaredError             // half of it: paper 002's regressions
	RMSE                         // the root of the mean: equation 14 of paper 000
	// Of classes:
	CrossEntropy // logistic regression, softmax
	Hinge        // of 2 classes: the linear SVM's
	Focal        // cross entropy, times a power of the probability of being wrong
	// Of words:
	NextWord // the mean over a row's places of the next word's cross entropy
)

var lossNames = []string{"squared-error", "half-squared-error", "rmse", "cross-entropy", "hinge", "focal", "next-word"}

// String is the run file's name.
func (l Loss) String() string { return lossNames[l] }

// ParseLoss reads a run file's name.
func ParseLoss(name string) (Loss, error) {
	if i := slices.Index(lossNames, name); i >= 0 {
		return Loss(i), nil
	}
	return 0, fmt.Errorf("loss %q is not known; allowed: %s", name, strings.Join(lossNames, ", "))
}

// OfClasses says that the loss has no meaning for values.
func (l Loss) OfClasses() bool { return l >= CrossEntropy && l < NextWord }

// Objective is a loss of one example: from the network's output and the target it
// gives the loss, and the gradient with respect to the output in d.
type Objective[F Float] interface {
	// check refuses an output length that the objective cannot be applied to.
	check(outputs int) error
	// loss reads label for classes, target for values.
	loss(out []F, label int, target []F, d []F) float64
	// labelled says that targets are classes.
	labelled() bool
}

// NewObjective builds a loss by its run file name.
func NewObjective[F Float](name string) (Objective[F], error) {
	switch name {
	case "squared-error":
		return squaredError[F]{}, nil
	case "half-squared-error":
		return halfSquaredError[F]{}, nil
	case "rmse":
		return rootSquaredError[F]{}, nil
	case "cross-entropy":
		return crossEntropy[F]{}, nil
	case "binary-cross-entropy":
		return binaryCrossEntropy[F]{}, nil
	case "hinge":
		return hinge[F]{}, nil
	}
	return nil, fmt.Errorf("loss %q is not known; allowed: squared-error, half-squared-error, rmse, cross-entropy, binary-cross-entropy, hinge", name)
}

// squaredError is the mean over the outputs of the squared differences.
type squaredError[F Float] struct{}

func (squaredError[F]) check(int) error { return nil }
func (squaredError[F]) labelled() bool  { return false }
func (squaredError[F]) loss(out []F, _ int, target, d []F) float64 {
	var sum float64
	scale := 2 / float64(len(out))
	for i, y := range out {
		r := float64(y) - float64(target[i])
		sum += r * r
		d[i] = F(scale * r)
	}
	return sum / float64(len(out))
}

// rootSquaredError is its root. At a perfect fit the gradient is taken as 0.
type rootSquaredError[F Float] struct{ squaredError[F] }

func (r rootSquaredError[F]) loss(out []F, label int, target, d []F) float64 {
	root := math.Sqrt(r.squaredError.loss(out, label, target, d))
	for i := range d {
		if root == 0 {
			d[i] = 0
		} else {
			d[i] = F(float64(d[i]) / (2 * root))
		}
	}
	return root
}

// halfSquaredError is trained on half the squared error and reports the squared error.
type halfSquaredError[F Float] struct{ squaredError[F] }

func (h halfSquaredError[F]) loss(out []F, label int, target, d []F) float64 {
	loss := h.squaredError.loss(out, label, target, d)
	for i := range d {
		d[i] /= 2
	}
	return loss
}

// crossEntropy is -log softmax(out)[label].
type crossEntropy[F Float] struct{}

func (crossEntropy[F]) labelled() bool { return true }
func (crossEntropy[F]) check(n int) error {
	if n < 2 {
		return fmt.Errorf("cross entropy needs 2 outputs or more, the network has %d; use binary-cross-entropy", n)
	}
	return nil
}
func (crossEntropy[F]) loss(out []F, label int, _ []F, d []F) float64 {
	top, sum := float64(slices.Max(out)), 0.0
	for i, y := range out {
		e := math.Exp(float64(y) - top)
		sum += e
		d[i] = F(e)
	}
	for i := range d {
		d[i] = F(float64(d[i]) / sum)
	}
	d[label]--
	return math.Log(sum) + top - float64(out[label])
}

// binaryCrossEntropy is -log of the probability of the right answer, on one logit.
type binaryCrossEntropy[F Float] struct{}

func (binaryCrossEntropy[F]) labelled() bool    { return true }
func (binaryCrossEntropy[F]) check(n int) error { return oneOutput("binary losses", n) }
func (binaryCrossEntropy[F]) loss(out []F, label int, _ []F, d []F) float64 {
	sign := float64(2*label - 1)
	z := sign * float64(out[0])
	d[0] = F(-sign * math.Exp(-softplus(z)))
	return softplus(-z)
}

// softplus is log(1+exp(x)) without overflow.
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// hinge is max(0, 1 - y*out), y being 1 for label 1 and -1 for label 0.
type hinge[F Float] struct{}

func (hinge[F]) labelled() bool    { return true }
func (hinge[F]) check(n int) error { return oneOutput("the hinge loss", n) }
func (hinge[F]) loss(out []F, label int, _ []F, d []F) float64 {
	y := float64(2*label - 1)
	margin := 1 - y*float64(out[0])
	d[0] = 0
	if margin > 0 {
		d[0] = F(-y)
	}
	return max(margin, 0)
}

func oneOutput(what string, n int) error {
	if n != 1 {
		return fmt.Errorf("%s needs 1 output, the network has %d", what, n)
	}
	return nil
}
