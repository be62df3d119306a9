package model

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// stoppables are one of each kind of model, with a client that is large enough to be
// stopped at: rows of two or three classes, or pictures.
func stoppables(t *testing.T) map[string]func() (Model, *data.Client) {
	t.Helper()
	made := func(kind, loss string, classes int, layers ...config.Layer) func() (Model, *data.Client) {
		return func() (Model, *data.Client) {
			run := config.Run{Model: config.Model{Kind: kind, Layers: layers, Intercept: true, InitSD: 0.1}}
			run.Algorithm.Local = config.Local{Loss: loss, Step: 0.01, Epochs: 40, Optimiser: "sgd"}
			c, shape := &data.Client{Rows: data.Rows{Features: 30}}, data.Shape{Features: 30, Classes: classes}
			for i := range 1000 {
				for j := range 30 {
					c.X = append(c.X, math.Sin(float64(i*30+j)))
				}
				c.Y = append(c.Y, float64(i%max(2, classes)))
			}
			m, err := Of(run, shape)
			if err != nil {
				t.Fatal(err)
			}
			return m, c
		}
	}
	return map[string]func() (Model, *data.Client){
		"linear":   made("linear", "squared-error", 0),
		"logistic": made("linear", "cross-entropy", 2),
		"softmax":  made("linear", "cross-entropy", 3),
		"network":  made("network", "cross-entropy", 2, config.Layer{Kind: "linear", Units: 4}, config.Layer{Kind: "tanh"}, config.Layer{Kind: "linear", Units: 1}),
		"pictures": func() (Model, *data.Client) {
			set := &data.Images{Height: 6, Width: 6}
			c := &data.Client{Pictures: data.Pictures{Images: set}}
			for i := range 1000 {
				for j := range 36 {
					set.Pixels = append(set.Pixels, byte(i*j))
				}
				set.Labels, c.Index = append(set.Labels, i%3), append(c.Index, i)
			}
			run := config.Run{Model: config.Model{Kind: "network", Layers: []config.Layer{{Kind: "flatten"}, {Kind: "linear", Units: 3}}}}
			run.Algorithm.Local = config.Local{Loss: "cross-entropy", Step: 0.01, Epochs: 40, Optimiser: "sgd"}
			m, err := Of(run, data.Shape{Height: 6, Width: 6, Classes: 3})
			if err != nil {
				t.Fatal(err)
			}
			return m, c
		},
	}
}

// TestLearnersStop: whatever a learner is at, it gives up once it is asked to, and until
// then it computes what it would have computed. It is not asked at every example.
func TestLearnersStop(t *testing.T) {
	for name, make := range stoppables(t) {
		plain, c := make()
		n := plain.Parameters()
		train := func(l Learner, theta []float64, single bool) error {
			pass, err := NewPass(config.Local{Epochs: 40, Step: 0.01, Optimiser: "sgd"}, 1)
			if err != nil {
				t.Fatal(err)
			}
			pass.Single = single
			return l.Train(theta, c, &pass)
		}
		work := map[string]func(l Learner, theta []float64) error{
			"train":        func(l Learner, theta []float64) error { return train(l, theta, false) },
			"train single": func(l Learner, theta []float64) error { return train(l, theta, true) },
			"loss":         func(l Learner, theta []float64) error { _, err := l.Loss(theta, c); return err },
			"judge":        func(l Learner, theta []float64) error { _, _, err := l.Judge(theta, c); return err },
			"losses":       func(l Learner, theta []float64) error { return l.Losses(zeros(c.Len()), theta, c) },
			"outputs":      func(l Learner, theta []float64) error { _, _, err := l.Outputs(nil, theta, c); return err },
		}
		for what, do := range work {
			asked, at := 0, math.MaxInt
			m := Stoppable(plain, func() bool { asked++; return asked >= at })
			l, err := m.Learner()
			if err != nil {
				t.Fatal(name, err)
			}
			theta := zeros(n)
			times := 40 // until more was read than a learner reads between two looks
			if strings.HasPrefix(what, "train") {
				times = 1 // of 40 epochs
			}
			repeat := func() (err error) {
				for i := 0; i < times && err == nil; i++ {
					err = do(l, theta)
				}
				return err
			}
			if err := repeat(); err != nil || asked == 0 {
				t.Fatalf("%s, %s: asked %d times: %v", name, what, asked, err)
			}
			if examples := 40 * c.Len(); asked > examples/16 {
				t.Errorf("%s, %s: asked %d times for %d examples", name, what, asked, examples)
			}
			whole, err := plain.Learner()
			if err != nil {
				t.Fatal(err)
			}
			same := zeros(n)
			for range times {
				if err := do(whole, same); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(same, theta) {
				t.Errorf("%s, %s: a model that can be stopped computes something else", name, what)
			}
			asked, at = 0, 1
			if err := repeat(); !errors.Is(err, ErrStopped) || asked > lanes {
				t.Errorf("%s, %s: stopped at once: %v after %d looks", name, what, err, asked)
			}
		}
	}
}

func zeros(n int) []float64 { return make([]float64, n) }
