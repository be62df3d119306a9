// Package fltest is what tests of methods and protections share: small silos of drawn rows, a purse that writes down, and whole runs in memory.
package fltest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// Features is how many the rows of Silos have.
const Features = 4

// Purse writes down what it is asked for, and says Err.
type Purse struct {
	Err   error
	Asked []event.Release
}

// Reserve is fl.Purse's.
func (p *Purse) Reserve(_ int, r event.Release) error {
	p.Asked = append(p.Asked, r)
	return p.Err
}

// Silos draws silos of rows whose intercepts differ by tau and whose slopes are the
// same.
func Silos(silos, rows, features int, tau float64) (train, test []data.Client) {
	family := rng.NewFamily(9, "test silos")
	for k := range silos {
		s := family.Stream(0, k)
		shift := tau * s.Normal()
		for _, part := range []*[]data.Client{&train, &test} {
			r := data.Rows{Features: features}
			for range rows {
				y := shift + 0.1*s.Normal()
				for j := range features {
					x := s.Normal()
					r.X = append(r.X, x)
					y += 0.2 * x / float64(j+1)
				}
				r.Y = append(r.Y, y)
			}
			*part = append(*part, data.Client{Rows: r})
		}
	}
	return train, test
}

// Run is a short run on Silos: example-level privacy, but for Algorithm 1.
func Run(kind string) config.Run {
	run := config.Default("school", kind, "paper")
	run.Algorithm.Rounds, run.Algorithm.Local.Step, run.Algorithm.Local.Batch = 12, 0.05, 10
	return run
}

// ClientRun is FedAvg on Silos that protects whole participants.
func ClientRun() config.Run {
	run := Run("fedavg")
	run.Privacy.Protects, run.Algorithm.Weights = "client", "equal"
	return run
}

// Unprotected is the same run without privacy.
func Unprotected(run config.Run) config.Run {
	run.Privacy.Protects, run.Privacy.Epsilon, run.Privacy.NoiseMultiplier = "nothing", 0, 0
	return run
}

// PersonalMethods are those whose silos each have a target of their own in paper 002.
var PersonalMethods = []string{"local", "fedavg", "finetune", "ditto", "mocha", "ifca", "mr-mtl"}

// Variants are PersonalMethods with what they need, their variants, and FedAvg that
// protects whole participants.
func Variants() map[string]config.Run {
	out := map[string]config.Run{"client": ClientRun()}
	for _, kind := range PersonalMethods {
		run := Run(kind)
		if kind == "mocha" {
			run.Algorithm.Lambda = "0.01"
		}
		out[kind] = run
	}
	for _, kind := range []string{"mr-mtl", "local", "fedavg", "finetune"} {
		run := Run(kind)
		run.Algorithm.WarmStart, run.Algorithm.Hypotheses = 0.3, 2
		out["warm "+kind] = run
	}
	split := Run("ifca")
	split.Algorithm.Hypotheses, split.Algorithm.Empty, split.Algorithm.Selection.Share = 3, "split", 0.5
	out["ifca split"] = split
	for _, prox := range []string{"inside", "server"} {
		run := Run("mr-mtl")
		run.Algorithm.Prox = prox
		out["mr-mtl "+prox] = run
	}
	for _, rule := range []string{"quantile", "online", "adam-wosm"} {
		run := Run("mr-mtl")
		run.Privacy.Clipping.Rule, run.Privacy.Clipping.GradientNoise = rule, 1.05
		run.Algorithm.Local.StepDecay = 0.01
		out["mr-mtl "+rule] = run
	}
	auto := Run("mr-mtl")
	auto.Algorithm.Lambda = config.LambdaAuto
	out["mr-mtl auto"] = auto
	return out
}

// Linear is the model that fits Silos.
var Linear = model.Linear{Features: Features, Intercept: true, Loss: model.HalfSquaredError}

// New builds a run's algorithm: on silos with Linear, otherwise with the run's own model.
func New(t testing.TB, run config.Run, participants int) *fl.Algorithm {
	t.Helper()
	var m model.Model = Linear
	if kind, err := data.KindOf(run.Data); err == nil && !kind.OwnTest {
		shape, _ := data.ShapeOf(run.Data)
		var err error
		if m, err = model.Of(run, shape); err != nil {
			t.Fatal(err)
		}
	}
	a, err := fl.New(run, m, participants)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Prepared is a participant that is ready for its first round.
func Prepared(t testing.TB, a *fl.Algorithm, p fl.Participant) *fl.Participant {
	t.Helper()
	if err := a.Prepare(&p); err != nil {
		t.Fatal(err)
	}
	return &p
}

// Broadcast is what a state has participants told.
func Broadcast(t testing.TB, a *fl.Algorithm, st *fl.State) fl.Broadcast {
	t.Helper()
	b, err := a.Broadcast(st)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Respond has one participant answer the broadcast of a state.
func Respond(t testing.TB, a *fl.Algorithm, st *fl.State, p *fl.Participant) (out []float64, released bool) {
	t.Helper()
	out = make([]float64, a.ReleaseLength())
	released, err := a.Respond(new(fl.Worker), Broadcast(t, a, st), p, out)
	if err != nil {
		t.Fatal(err)
	}
	return out, released
}

// TwoHypotheses is a state near the synthetic federation's two groups.
func TwoHypotheses() *fl.State {
	return &fl.State{Hypotheses: []float64{4, 5, 3, -3}, Idle: make([]int, 2)}
}

// Federate makes a whole run and returns every silo's model, the participants and the
// server's state.
func Federate(t testing.TB, run config.Run, clients []data.Client) ([][]float64, []fl.Participant, *fl.State) {
	t.Helper()
	a := New(t, run, len(clients))
	ps := make([]fl.Participant, len(clients))
	ids := make([]int, len(clients))
	for i := range ps {
		ids[i] = i
		ps[i] = *Prepared(t, a, fl.Participant{ID: i, Name: fmt.Sprint("silo ", i), Data: &clients[i]})
	}
	st, w := a.Start(), new(fl.Worker)
	var r fl.Round
	for range run.Algorithm.Rounds {
		b := Broadcast(t, a, st)
		if err := r.Open(st.Round, ids, a.ReleaseLength()); err != nil {
			t.Fatal(err)
		}
		for i := range ps {
			released, err := a.Respond(w, b, &ps[i], r.Slot(i))
			if err != nil || !released {
				t.Fatalf("%s: released %v, %v", run.Algorithm.Kind, released, err)
			}
			if err := r.Released(i); err != nil {
				t.Fatal(err)
			}
		}
		releases, err := r.Close()
		if err != nil {
			t.Fatal(err)
		}
		if out := a.Aggregate(st, releases); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
	b := Broadcast(t, a, st)
	models := make([][]float64, len(ps))
	for i := range ps {
		before := slices.Clone(ps[i].Personal)
		models[i] = make([]float64, a.Model().Parameters())
		a.Adopt(models[i], b, &ps[i], nil)
		if !slices.Equal(before, ps[i].Personal) {
			t.Errorf("%s: Adopt changed what silo %d keeps", run.Algorithm.Kind, i)
		}
	}
	return models, ps, st
}

// Error is the mean squared error of every silo's model on its held-out rows.
func Error(t testing.TB, models [][]float64, test []data.Client) float64 {
	t.Helper()
	l, err := Linear.Learner()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i := range test {
		loss, _, err := l.Judge(models[i], &test[i])
		if err != nil {
			t.Fatal(err)
		}
		sum += loss
	}
	return sum / float64(len(test))
}
