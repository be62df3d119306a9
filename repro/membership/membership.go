// Package membership reproduces chapter 4 of paper 001: what a small language model
// remembers of the text that it was trained on, and what noise leaves of it.
package membership

import (
	"fmt"
	"path/filepath"

	"github.com/coterie-fl/coterie/audit/membership"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/sim"
)

// Experiments are listed in this order.
var Experiments = []lab.Experiment{plain, private}

// size is how large models and attacks of a scale are.
type size struct {
	samples, vocabulary, context int
	blocks, width, heads         int
	epochs                       int
	references                   []int // numbers of models that are shown, the last the largest
	shadows, neighbours          int
	sigmas                       []float64 // in units of the words' root mean square
	// Of training with noise:
	noisySamples, batch, steps, alike int // alike: references trained like it
}

// sizes: full is that of a numerical study that found chapter 4's figures with it
// (docs/membership.md), quick what five minutes on two cores bear; smoke is a moment.
var sizes = map[string]size{
	lab.Smoke: {120, 300, 8, 1, 8, 2, 1, []int{1, 2}, 2, 1, []float64{1, 2}, 120, 20, 2, 1},
	lab.Quick: {4000, 2048, 64, 2, 128, 4, 4, []int{1, 2, 4}, 10, 6, []float64{0.7, 1.8, 4}, 2000, 200, 80, 1},
	lab.Full:  {13521, 2048, 64, 2, 128, 4, 6, []int{1, 2, 5, 10}, 10, 10, []float64{0.1, 0.35, 0.7, 1.4, 1.8, 2.3, 4, 10}, 13521, 512, 400, 2},
}

// runOf is a target's: a transformer on WikiText-2, 60 % of whose rows are members.
func (s size) runOf(seed uint64) config.Run {
	run := config.Default("wikitext", "central", "sound")
	run.Name, run.Seed = "membership", seed
	d, l := &run.Data, &run.Algorithm.Local
	d.Samples, d.Vocabulary, d.Context = s.samples, s.vocabulary, s.context
	run.Model.Blocks, run.Model.Width, run.Model.Heads = s.blocks, s.width, s.heads
	run.Algorithm.Rounds, run.Algorithm.Stop.Every = s.epochs, s.epochs
	l.Epochs, l.Batch, l.Step = 1, 16, 0.002
	l.Optimiser, l.Beta2, l.WeightDecay, l.WarmUp, l.GradientNorm = "adamw", 0.99, 0.01, 50, 1
	lab.Unprotected(&run)
	return run
}

// targetOf is a run's model in the experiment's folder, with its run as it was resolved.
func targetOf(l *lab.Lab, name string, run config.Run) (membership.Target, error) {
	run, err := l.Resolve(run)
	if err != nil {
		return membership.Target{}, err
	}
	f, err := l.Folder.Load(run.Data, run.Seed)
	if err != nil {
		return membership.Target{}, err
	}
	m, err := membership.Trained(l.Context, folderOf(l, name), run, f, "the same command", func(sim.Moment) {})
	if err != nil {
		return membership.Target{}, fmt.Errorf("%s: %w", name, err)
	}
	return membership.Target{Run: run, Models: m}, nil
}

// folderOf is where a target lies.
func folderOf(l *lab.Lab, name string) string { return filepath.Join(l.Out, "models", name) }

// cell is what attacks on a target found.
type cell struct {
	Found   membership.Found `json:"found"`
	Members float64          `json:"members_loss"`
	Others  float64          `json:"others_loss"`
}

// measure attacks a target, or takes up what was found.
func measure(l *lab.Lab, name string, run config.Run, o membership.Options, into *cell) error {
	o.Unit, o.Level, o.Seed = membership.UnitExample, membership.Level{Delta: 1e-5, Confidence: 0.95}, run.Seed
	o.Folder, o.Continue = folderOf(l, name+"-others"), "the same command"
	o.Tick = func(string, sim.Moment) {}
	return l.Remember([]any{run, l.Set, o.References, o.Shadows, o.Neighbours, o.Sigma}, into, func(l *lab.Lab) (any, error) {
		t, err := targetOf(l, name, run)
		if err != nil {
			return nil, err
		}
		found, err := membership.Measure(l.Context, t, l.Folder, o)
		if err != nil {
			return nil, err
		}
		l.Note(found.Device)
		found.Device = nil // the cell's origin says it
		return cell{Found: found, Members: -mean(found.Attacks[0].Scores.Members), Others: -mean(found.Attacks[0].Scores.Others)}, nil
	})
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

// inOrder does jobs one after another, each on all cores: a model has to be there before it
// is attacked. Workers have folders of their own, and each trains what it attacks: a model
// that cells share is made once a worker, with the same bytes.
func inOrder(l *lab.Lab, jobs []func() error) error {
	if l.Runner != nil {
		return l.All(jobs)
	}
	workers := l.Workers
	l.Workers, l.Alone = 1, true
	defer func() { l.Workers, l.Alone = workers, false }()
	return l.All(jobs)
}

// auc is an attack's of a cell.
func (c cell) auc(attack string) (lab.Spread, bool) {
	for _, a := range c.Found.Attacks {
		if a.Attack == attack && a.AUC != nil {
			s := lab.Exactly(float64(a.AUC.Value))
			if a.AUC.Low != nil {
				s.Low, s.High = float64(*a.AUC.Low), float64(*a.AUC.High)
			}
			return s, true
		}
	}
	return lab.Spread{}, false
}

func (c cell) attack(name string) (membership.Attack, bool) {
	for _, a := range c.Found.Attacks {
		if a.Attack == name {
			return a, true
		}
	}
	return membership.Attack{}, false
}
