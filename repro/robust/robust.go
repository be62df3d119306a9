// Package robust asks what is left of a common model when some clients lie: attacks
// against rules that take the mean's place, with and without noise at the clients. It is
// of no paper.
package robust

import (
	"errors"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/sim"
)

// Experiments are listed in this order.
var Experiments = []lab.Experiment{{
	ID: "robust", Title: "When clients lie: what robust aggregation leaves of accuracy, with and without noise",
	Paper: "none of the papers: what a server must know before it trusts strangers",
	Needs: []string{"mnist"},
	Quick: "3 min", Full: "1 h",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 1, lab.Full: 3},
	Launch: launch,
}}

// size is how much a scale trains.
type size struct {
	clients, each, test, rounds int
	shares                      []float64
}

var sizes = map[string]size{
	lab.Smoke: {10, 20, 100, 2, []float64{0.3}},
	lab.Quick: {50, 200, 2000, 20, []float64{0.1, 0.2, 0.3}},
	lab.Full:  {100, 500, 10000, 40, []float64{0.1, 0.2, 0.3}},
}

// lie is an attack with its factor.
type lie struct {
	name, attack string
	factor       float64
}

var lies = []lie{
	{"updates turned round", "sign-flip", 1},
	{"updates turned round, 10 times", "sign-flip", 10},
	{"updates 10 times as long", "scale", 10},
	{"turned labels", "label-flip", 0},
}

// key is a cell: a rule (empty: the mean) against a lie that a share of clients tells.
type key struct {
	Rule    string
	Lie     int // in lies; -1: nobody lies
	Share   float64
	Epsilon float64 // of every example, sound, add-remove; 0: no noise
}

// epsilon is what clients pay in the half of the table with noise.
const epsilon = 8

var rules = []string{"", "median", "trimmed-mean", "krum", "geometric-median"}

func nameOf(rule string) string {
	if rule == "" {
		return "mean"
	}
	return rule
}

func launch(l *lab.Lab) (study.Study, error) {
	s := sizes[l.Scale]
	var keys []key
	for _, eps := range []float64{0, epsilon} {
		for _, rule := range rules {
			keys = append(keys, key{rule, -1, 0, eps})
			for i := range lies {
				for _, share := range s.shares {
					keys = append(keys, key{rule, i, share, eps})
				}
			}
		}
	}
	found, err := lab.Table(l, keys, s.runOf, s.accuracy)
	if err != nil {
		return study.Study{}, err
	}
	out := study.Study{
		Intro: []string{
			fmt.Sprintf("%d clients with %d of MNIST's pictures each, dealt at random, train a network of one hidden layer of 32 by federated averaging for %d rounds. Some of them lie: their update is turned round, or ten times as long, or they train on labels that are turned (9 for 0). The server finds a centre of what it gets: the mean, or one of four rules that some forged releases cannot carry away. Trimmed mean and Krum count on 30 %% of liars.", s.clients, s.each, s.rounds),
			"In the second half every honest client protects its examples by noise in every step, before anything is sent. Robust rules read releases only, so that they cost no privacy. Noise that the server adds to a mean is another matter: the mean's sensitivity does not hold for these rules, and such runs are refused.",
		},
		Caveats: []string{
			fmt.Sprintf("With noise: unit example, relation add-remove, claim proved but for the simulated draws, epsilon %d, delta 1e-5.", epsilon),
			"Liars can drive a model out of the finite numbers: its accuracy is 0 then.",
			"Pictures are dealt at random. Where clients differ, a robust rule takes who is different for a liar: medians then cost accuracy that nobody stole. Liars here do not know the rule; one who does can do more harm within what the rule lets pass.",
		},
	}
	for _, eps := range []float64{0, epsilon} {
		out.Rows = append(out.Rows, s.rows(found, eps)...)
		out.Charts = append(out.Charts, s.charts(found, eps)...)
	}
	return out, nil
}

// runOf is a cell's run.
func (s size) runOf(k key) config.Run {
	run := config.Default("mnist", "fedavg", "sound")
	run.Name = "robust"
	a := &run.Algorithm
	run.Model.Name, run.Model.Layers = "", []config.Layer{{Kind: "linear", Units: 32}, {Kind: "relu"}, {Kind: "linear", Units: 10}}
	a.Rounds, a.ClientsPerRound, a.Weights, a.Stop = s.rounds, 0, "equal", config.Stop{Return: "last", Every: s.rounds}
	a.Local.Epochs, a.Local.Batch, a.Local.Step, a.Local.Loss, a.Local.Optimiser = 1, 20, 0.1, "cross-entropy", "sgd"
	a.Robust, run.Judge.By = k.Rule, "test"
	if k.Rule == "trimmed-mean" || k.Rule == "krum" {
		a.RobustShare = 0.3
	}
	if k.Lie >= 0 {
		run.Judge.Hostile = config.Hostile{Attack: lies[k.Lie].attack, Share: k.Share, Factor: lies[k.Lie].factor}
	}
	lab.Unprotected(&run)
	if p := &run.Privacy; k.Epsilon > 0 {
		p.Protects, p.Epsilon, p.Delta, p.Clip, p.PublicSize = "example", k.Epsilon, 1e-5, 1, s.each
		a.Local.Step = 0.3
	}
	return run
}

// accuracy trains a cell and judges it by MNIST's test pictures. A model that liars drove out
// of the finite numbers answers nothing.
func (s size) accuracy(l *lab.Lab, run config.Run) (float64, error) {
	f, err := l.Folder.Load(run.Data, run.Seed)
	if err != nil {
		return 0, err
	}
	simulation, err := sim.NewOn(run, s.dealt(f, run.Seed), nil)
	if err != nil {
		return 0, err
	}
	defer simulation.Close()
	simulation.Until(l.Context)
	for more := true; more; {
		more, err = simulation.Step()
		if errors.Is(err, fl.ErrNotFinite) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
	}
	result, err := simulation.Result()
	if err != nil {
		return 0, err
	}
	return float64(result.Metrics.Accuracy.Value), nil
}

// dealt shares the pictures among clients.
func (s size) dealt(f *data.Federation, seed uint64) *data.Federation {
	out := *f
	all := f.Train[0]
	order := slices.Clone(all.Index)
	family := rng.NewFamily(seed, "robust: partition")
	family.Stream(0, 0).Shuffle(order)
	test := *all.Held
	test.Index = test.Index[:min(s.test, len(test.Index))]
	nothing := data.Client{Pictures: data.Pictures{Images: test.Images}}
	out.Train = nil
	for i := range s.clients {
		c := data.Client{Name: fmt.Sprintf("client %d", i), Held: &nothing, Pictures: data.Pictures{Images: all.Images, Index: order[i*s.each : (i+1)*s.each]}}
		if i == 0 {
			c.Held = &test
		}
		out.Train = append(out.Train, c)
	}
	return &out
}
