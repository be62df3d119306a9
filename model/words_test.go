package model

import (
	"fmt"
	"math"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// smallTransformer is a transformer that tests can afford to differentiate.
func smallTransformer(t testing.TB, vocabulary int) []Layer {
	t.Helper()
	layers, err := TransformerLayers(config.Model{Blocks: 2, Width: 8, Heads: 2}, vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	return layers
}

// TestGradientsOfNextWords: central differences of the whole language model.
func TestGradientsOfNextWords(t *testing.T) {
	in := Shape{1, 1, 6}
	e, theta := newEngine[float64](t, in, smallTransformer(t, 7), newNextWord[float64](in.Len(), 7), 1)
	for i, v := range normals[float64]("far from the start", len(theta), 0.3) {
		theta[i] += v
	}
	checkGradients(t, "transformer", e, theta)
}

// TestNextWordAgainstNaive: the loss, written out.
func TestNextWordAgainstNaive(t *testing.T) {
	const places, vocabulary = 3, 4
	scores := normals[float64]("scores", places*vocabulary, 2)
	row := []float64{2, 0, 3}
	var want float64
	for at := range places - 1 {
		var sum float64
		for word := range vocabulary {
			sum += math.Exp(scores[at*vocabulary+word])
		}
		want -= scores[at*vocabulary+int(row[at+1])] - math.Log(sum)
	}
	want /= places - 1
	d := make([]float64, len(scores))
	if got := newNextWord[float64](places, vocabulary).loss(scores, 0, row, d); math.Abs(got-want) > 1e-12 {
		t.Errorf("loss %v, written out %v", got, want)
	}
	for i := (places - 1) * vocabulary; i < len(d); i++ {
		if d[i] != 0 {
			t.Errorf("the last place has no next word, but slope %v", d[i])
		}
	}
}

// TestNoPlaceLooksAhead: what comes later changes no earlier score.
func TestNoPlaceLooksAhead(t *testing.T) {
	in, vocabulary := Shape{1, 1, 6}, 7
	e, theta := newEngine[float64](t, in, smallTransformer(t, vocabulary), newNextWord[float64](in.Len(), vocabulary), 1)
	for i, v := range normals[float64]("far from the start", len(theta), 0.3) {
		theta[i] += v
	}
	scores := func(row []float64) []float64 {
		out := make([]float64, in.Len()*vocabulary)
		if err := e.Outputs(out, theta, Examples[float64]{X: row, Targets: row}, []int{0}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	a, b := scores([]float64{1, 2, 3, 4, 5, 6}), scores([]float64{1, 2, 3, 4, 0, 6})
	for i := range a {
		if place := i / vocabulary; (a[i] == b[i]) != (place < 4) {
			t.Errorf("place %d, word %d: %v and %v, where only the fifth word differs", place, i%vocabulary, a[i], b[i])
		}
	}
}

// TestTransformerLearnsToCount: through the factory and the learner, as a run does.
func TestTransformerLearnsToCount(t *testing.T) {
	run := config.Run{Model: config.Model{Kind: "transformer", Blocks: 1, Width: 16, Heads: 2}}
	run.Algorithm.Local.Loss = "next-word"
	shape := data.Shape{Features: 8, Vocabulary: 5}
	m, err := Of(run, shape)
	if err != nil {
		t.Fatal(err)
	}
	l, err := m.Learner()
	if err != nil {
		t.Fatal(err)
	}
	var c data.Client
	for start := range 5 {
		for place := range shape.Features {
			c.X = append(c.X, float64((start+place)%5))
		}
		c.Y = append(c.Y, 0)
	}
	theta := make([]float64, m.Parameters())
	m.Initialise(theta, stream("theta"))
	before, err := l.Loss(theta, &c)
	if err != nil || math.Abs(before-math.Log(5)) > 0.1 {
		t.Fatalf("loss %v before training, want about ln 5; %v", before, err)
	}
	o, err := NewOptimiser(config.Local{Optimiser: "adam", Beta1: 0.9, Beta2: 0.99})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Train(theta, &c, &Pass{Epochs: 150, StepSize: 0.01, Optimiser: o}); err != nil {
		t.Fatal(err)
	}
	if after, err := l.Loss(theta, &c); err != nil || after > 0.2 {
		t.Errorf("loss %v after training; %v", after, err)
	}
	c.X[3] = 5
	if _, err := l.Loss(theta, &c); err == nil {
		t.Error("a word that there is not was taken")
	}
}

func TestTransformersThatCannotBe(t *testing.T) {
	for _, m := range []config.Model{{Width: 8, Heads: 2}, {Blocks: 1, Width: 9, Heads: 2}, {Blocks: 1, Width: 8}} {
		if _, err := TransformerLayers(m, 5); err == nil {
			t.Errorf("%+v was accepted", m)
		}
	}
	words := func(inner ...Layer) []Layer {
		return []Layer{{Kind: "words", Vocabulary: 5, Units: 6, Inner: inner}}
	}
	for name, layers := range map[string][]Layer{
		"a narrower end":      words(Layer{Kind: "linear", Units: 5, Each: true}),
		"something behind it": append(words(), Layer{Kind: "tanh"}),
		"words within":        words(words()...),
		"heads":               words(Layer{Kind: "attention", Heads: 4}),
	} {
		if _, err := Build[float32](Shape{1, 1, 4}, layers); err == nil {
			t.Errorf("%s was accepted", name)
		} else if fmt.Sprint(err) == "" {
			t.Errorf("%s: no words", name)
		}
	}
}
