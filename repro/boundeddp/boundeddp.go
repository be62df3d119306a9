// Package boundeddp reproduces chapter 5 of paper 001: bounded differential privacy, the alignment of federated updates, and its conjecture as an experiment.
package boundeddp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// Experiments are those of the chapter.
var Experiments = []lab.Experiment{{
	ID: "bounded-dp", Title: "Bounded DP: do updates point in one direction, and does a sector pay?",
	Paper: "paper 001, chapter 5, figure 5.4 and the conjecture of section 5.3",
	Needs: []string{"mnist", "mnist-by-writer"}, Quick: "2 min", Full: "2 h",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 3, lab.Full: 3},
	Device: true,
	Launch: launch,
}}

// runFile is what all trainings have in common: five local steps in every round.
const runFile = `
name: bounded-dp
data: {kind: writers, set: mnist, ink: light, rotated: 0, train_share: 0.85}
model: MODEL
algorithm:
  kind: fedavg
  mode: sound
  rounds: 12
  clients_per_round: 0
  weights: equal
  local: {steps: 5, batch: 2, step: 0.1, loss: cross-entropy}
  stop: {every: 12, return: last, patience: 0}
privacy: {protects: client, epsilon: 3, delta: 1.0e-5, relation: replace-one, update_clip: 1}
`

// network is what is trained.
type network string

// The small network of this repository's other studies, and the paper's for MNIST.
const (
	small network = "11,738 parameters"
	large network = "551,322 parameters"
)

var blocks = map[network]string{
	small: "{kind: network, layers: [{kind: conv, channels: 8, kernel: 5, stride: 2}, {kind: relu}, {kind: linear, units: 10}]}",
	large: "{kind: network, name: mnist}",
}

// scale is what is run.
type scale struct {
	networks []network // of figure 5.4
	aligned  int       // its clients
	steps    int       // its rounds
	clients  int       // of the conjecture
	rounds   int
	targets  []target
	clips    []float64
	few      bool // one of each kind of arm
}

// target is what a contest is at.
type target struct {
	how     partition
	epsilon float64
}

// Full scale has little noise, epsilon 20, in the conjecture's best case alone: clients that are
// alike.
func scaleOf(name string) scale {
	switch name {
	case lab.Smoke:
		return scale{networks: []network{small}, aligned: 5, steps: 3, clients: 20, rounds: 2, targets: []target{{byChance, 50}}, clips: []float64{1}, few: true}
	case lab.Quick:
		return scale{networks: []network{small}, aligned: 20, steps: 40, clients: 400, rounds: 12, targets: []target{{byChance, 3}}, clips: []float64{0.1, 0.3, 1}}
	}
	return scale{networks: []network{small, large}, aligned: 20, steps: 200, clients: 1000, rounds: 30, targets: []target{{byChance, 3}, {byChance, 20}, {byWriter, 3}, {byLabel, 3}}, clips: []float64{0.1, 0.3, 1, 3}}
}

func (s scale) arms() []arm {
	if !s.few {
		return arms
	}
	return slices.Concat(arms[:1], sectors[1:2], momenta[:1], recentred, arms[len(arms)-1:])
}

// base is the run file, resolved without --set, which every cell applies.
func base(of network) (config.Run, error) {
	return config.Resolve([]byte(strings.Replace(runFile, "MODEL", blocks[of], 1)), nil)
}

func launch(l *lab.Lab) (study.Study, error) {
	s := scaleOf(l.Scale)
	run, err := base(small)
	if err != nil {
		return study.Study{}, err
	}
	data, err := l.Resolve(run)
	if err != nil {
		return study.Study{}, err
	}
	pool := make([]pictures, l.Seeds)
	for seed := range pool {
		if pool[seed], err = load(l, data, uint64(seed+1)); err != nil {
			return study.Study{}, err
		}
	}
	figures, jobs, err := figures54(l, s, pool)
	if err != nil {
		return study.Study{}, err
	}
	run.Algorithm.Rounds = s.rounds
	var contests []*contest
	for _, at := range s.targets {
		c := &contest{how: at.how, epsilon: at.epsilon, clips: s.clips}
		more, err := c.run(l, s, run, pool)
		if err != nil {
			return study.Study{}, err
		}
		contests, jobs = append(contests, c), append(jobs, more...)
	}
	if err := l.All(jobs); err != nil {
		return study.Study{}, err
	}
	out := study.Study{Intro: intro, Caveats: caveats(s)}
	if out.Rows, err = relationRows(); err != nil {
		return study.Study{}, err
	}
	for _, f := range figures {
		out.Rows, out.Charts = append(out.Rows, f.rows()...), append(out.Charts, f.charts()...)
	}
	for _, c := range contests {
		out.Rows, out.Charts = append(out.Rows, c.rows()...), append(out.Charts, c.chart())
	}
	return out, nil
}

var intro = []string{
	"Bounded differential privacy compares data sets in which one participant has another's place (replace-one). The noise on a sum of updates then goes by the largest distance between two updates, 2C for a ball of radius C, and by less if updates are made to lie in a sector around a public direction, with lengths from c to C: docs/proofs/lower-and-angular-clipping.md.",
	"Figure 5.4: updates of federated clients point in one direction, the paper says, much more than gradients of single examples, and less so as training goes on.",
	"The conjecture: a sector around what was released last needs less noise and so trains better. It is tried here as the server of client-level privacy has it (privacy.sector), beside what a sector may be without being one: momentum, and a ball around the last released mean (privacy.recentre). Every arm keeps one epsilon; its clip C is the best of a few. Nobody has published a test of it.",
}

func caveats(s scale) []string {
	return []string{
		fmt.Sprintf("Unit: client, claim: proved for the mechanism, trust: server; noise is simulated. Relation replace-one, and add-remove in a table of its own: at the same number it has half the noise, and promises about half as much for somebody in another's place. Delta 1e-5, %d clients, all asked in every round, %d rounds, 5 local steps of 2 pictures.", s.clients, s.rounds),
		"tuning: not charged. Each arm's C is the one with the best test accuracy of the same few; sectors are several, so that the best of them has an advantage over the ball.",
		"The paper gives neither batch nor step nor rounds of figure 5.4, and no network but “a simple CNN”: here batches of 32, step 0.1. Single examples' gradients are taken at the federated model of the same round, not in a training of their own. Cosines are of all pairs.",
		"MNIST by writer: random, every client has pictures of all hands; by writer, those of one hand, or of few where clients are large; by label, two classes, mostly. Test pictures are of writers that nobody trains on.",
	}
}
