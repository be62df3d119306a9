package onnx

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// answer is what a model's outputs stand for.
type answer int

const (
	number   answer = iota // one output is the value
	logistic               // one output is the log-odds of class 1
	margin                 // one output is beyond 0 for class 1
	share                  // one output is near 1 for class 1, near 0 for class 0
	softmax                // an output a class
	nextWord               // an output a word, at every place
)

// answerOf is decided by the loss and by how many outputs there are for how many classes,
// or for how many words at how many places.
func answerOf(name string, s data.Shape, outputs int) (answer, error) {
	loss, err := model.ParseLoss(name)
	if err != nil {
		return 0, err
	}
	squares := loss == model.SquaredError || loss == model.HalfSquaredError || loss == model.RMSE
	entropy := loss == model.CrossEntropy || loss == model.Focal // which trains the same scores
	classes := s.Classes
	switch one := outputs == 1; {
	case s.Vocabulary > 0 && outputs == s.Features*s.Vocabulary && loss == model.NextWord:
		return nextWord, nil
	case classes == 0 && one && squares:
		return number, nil
	case classes == 2 && one && squares:
		return share, nil
	case classes == 2 && one && entropy:
		return logistic, nil
	case classes == 2 && one && loss == model.Hinge:
		return margin, nil
	case classes > 1 && outputs == classes && (squares || entropy):
		return softmax, nil
	}
	return 0, fmt.Errorf("the loss %s on %d outputs for %d classes has no answer that the ONNX export knows", name, outputs, classes)
}

// answers adds the graph's outputs. Refused rows have none.
func (g *graph) answers(a answer, out, refused string, of Graph) {
	if a == number {
		if e := of.Encoding; e != nil {
			low, high := e.TargetRange[0], e.TargetRange[1]
			out = g.node("Mul", []string{out, g.scalar(high - low)})
			out = g.node("Add", []string{out, g.scalar(low)})
		}
		g.output("value", g.unless(refused, out), floats, []int{1}, "the predicted value, in the target's unit")
		return
	}
	if a == nextWord {
		places, words := of.Shape.Features, of.Shape.Vocabulary
		apart := g.node("Reshape", []string{out, g.integers("shape", 0, places, words)})
		g.output("probabilities", g.node("Softmax", []string{apart}, integerAttribute("axis", 2)), floats, []int{places, words}, "of the word that comes next, at every place")
		return
	}
	var probabilities, class string
	if a == softmax {
		probabilities = g.node("Softmax", []string{out}, integerAttribute("axis", 1))
		class = g.node("ArgMax", []string{out}, integerAttribute("axis", 1), integerAttribute("keepdims", 0))
	} else {
		probabilities, class = g.two(a, out)
	}
	g.output("probabilities", g.unless(refused, probabilities), floats, []int{of.Shape.Classes}, "of the classes, in their order")
	if a == margin {
		g.output("score", g.unless(refused, out), floats, []int{1}, "the model's output: above 0 for the second class; no probability")
	}
	g.labels(class, refused, of)
}

// two is the probabilities of two classes from one output, and the class it speaks for.
func (g *graph) two(a answer, out string) (probabilities, class string) {
	middle := 0.0
	if a == share {
		middle = 0.5
	}
	above := g.node("Greater", []string{out, g.scalar(middle)})
	var second string
	switch a {
	case logistic:
		second = g.node("Sigmoid", []string{out})
	case margin:
		second = g.asFloats(above)
	default:
		second = g.node("Clip", []string{out, g.scalar(0), g.scalar(1)})
	}
	first := g.node("Sub", []string{g.scalar(1), second})
	place := g.node("Cast", []string{above}, integerAttribute("to", integers))
	return g.node("Concat", []string{first, second}, integerAttribute("axis", 1)), g.rows(place)
}

// rows makes [N] of [N, 1].
func (g *graph) rows(value string) string {
	return g.node("Squeeze", []string{value, g.integers("axes", 1)})
}

// unless is a value, or NaN in refused rows.
func (g *graph) unless(refused, value string) string {
	if refused == "" {
		return value
	}
	return g.node("Where", []string{refused, g.scalar(math.NaN()), value})
}

// labels adds the class by its name, or by its place where it has none.
func (g *graph) labels(class, refused string, of Graph) {
	if of.Encoding == nil {
		g.output("label", class, integers, nil, "the place of the most probable class")
		return
	}
	names := of.Encoding.Classes
	label := g.node("Gather", []string{g.texts("classes", []int{len(names)}, names), class})
	if refused != "" {
		label = g.node("Where", []string{g.rows(refused), g.texts("no label", []int{1}, []string{""}), label})
	}
	g.output("label", label, texts, nil, "the most probable class")
}
