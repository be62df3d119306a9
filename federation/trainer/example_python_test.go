package trainer_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/trainer"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/tier"
	"github.com/coterie-fl/coterie/model"
)

type purse struct {
	paid int
	last event.Release
}

func (p *purse) Reserve(_ int, r event.Release) error {
	p.paid++
	p.last = r
	return nil
}

func python(t *testing.T, mode string) (trainer.Spec, *trainer.Trainer) {
	t.Helper()
	s := trainer.Spec{
		Command:     []string{tier.PythonProgram(t), "train.py", "ward.csv"},
		Environment: tier.Environment(), Directory: "../../examples/trainer",
		Mode: mode, Clip: 1, Noise: 1, Steps: 20, Rate: 0.25, Batch: 50, Step: 0.5,
	}
	tr, err := trainer.Start(context.Background(), s, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return s, tr
}

// TestPythonInPlaceOfTheModel: a method that is given the Python example does what it
// does with the linear model in Go on the same rows.
func TestPythonInPlaceOfTheModel(t *testing.T) {
	_, tr := python(t, trainer.ModeMethod)
	rows := ward(t)
	run := config.Default("synthetic", "ifca", "sound")
	run.Algorithm.Local.Epochs = 3
	linear := model.Linear{Features: 2}
	respond := func(m model.Model, c *data.Client) []float64 {
		g, err := fl.New(run, m, 1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := g.Broadcast(&fl.State{Hypotheses: []float64{-1, 2, 4, 4}, Idle: make([]int, 2)})
		if err != nil {
			t.Fatal(err)
		}
		out := make([]float64, 2)
		released, err := g.Respond(new(fl.Worker), b, &fl.Participant{Data: c, Purse: &purse{}}, out)
		if err != nil || !released {
			t.Fatalf("released %v, %v, trainer: %v", released, err, tr.Failure())
		}
		return out
	}
	want, got := respond(linear, rows), respond(tr.InPlaceOf(linear, run.Algorithm.Local.Loss), tr.Client())
	for i := range want {
		if math.Abs(want[i]-got[i]) > 1e-5 { // float32 on the way
			t.Errorf("Python trained %v, Go %v", got, want)
		}
	}
	if tr.Examples() != rows.Len() || tr.Failure() != nil {
		t.Errorf("%d examples of %d", tr.Examples(), rows.Len())
	}
}

// TestPythonProtected: both enforced modes learn something on the example's data.
func TestPythonProtected(t *testing.T) {
	rows := ward(t)
	linear := model.Linear{Features: 2}
	l, err := linear.Learner()
	if err != nil {
		t.Fatal(err)
	}
	before, err := l.Loss(make([]float64, 2), rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{trainer.ModeUpdate, trainer.ModePerExample} {
		_, tr := python(t, mode)
		h, err := trainer.NewHalf(tr, config.Local{Epochs: 1, Step: 0.1, Loss: "squared-error"})
		if err != nil {
			t.Fatal(err)
		}
		theta, p := make([]float64, 2), &purse{}
		for round := range 5 {
			if err := h.Respond(round, theta, p, theta); err != nil {
				t.Fatal(err)
			}
		}
		// One update is buried in noise of its own size, a batch of fifty is not.
		if after, err := l.Loss(theta, rows); err != nil || mode == trainer.ModePerExample && after > before/2 || p.paid != 5 {
			t.Errorf("%s: error %v, before %v; paid %d times", mode, after, before, p.paid)
		}
	}
}

// TestFailureReachesTheMethod: a trainer that fails makes the method release a fixed
// update, paid and noised, and the reason is kept.
func TestFailureReachesTheMethod(t *testing.T) {
	_, tr := python(t, trainer.ModeMethod)
	run := config.Default("synthetic", "group-private", "sound")
	run.Algorithm.Local.Loss = "rmse" // the example refuses it
	g, err := fl.New(run, tr.InPlaceOf(model.Linear{Features: 2}, run.Algorithm.Local.Loss), 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := g.Broadcast(g.Start())
	if err != nil {
		t.Fatal(err)
	}
	p, out := &purse{}, make([]float64, 2)
	released, err := g.Respond(new(fl.Worker), b, &fl.Participant{Data: tr.Client(), Purse: p}, out)
	if !released || err != nil || p.paid != 1 || out[0] == 0 {
		t.Errorf("released %v (%v), paid %d, %v", released, out, p.paid, err)
	}
	if f := tr.Failure(); f == nil || !strings.Contains(f.Error(), "follows squared-error, not rmse") {
		t.Errorf("the reason is %v", f)
	}
	if f := tr.Failure(); f != nil {
		t.Errorf("told twice: %v", f)
	}
}
