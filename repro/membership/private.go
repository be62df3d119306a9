package membership

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/audit/membership"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

var private = lab.Experiment{
	ID: "membership-private", Title: "What noise leaves of membership: attacks against epsilon",
	Paper:  "beyond paper 001, chapter 4: its attacks on models of DP-SGD",
	Needs:  []string{"wikitext2", "gpt2-bpe"},
	Device: true,
	Quick:  "5 min", Full: "3 h",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 1, lab.Full: 3},
	Launch: launchPrivate,
}

// epsilons are what rows are protected by; infinite: they are clipped alone.
var epsilons = []float64{2, 8, math.Inf(1)}

// privately is a target's run with noise for an epsilon: unit example (a row), relation
// add-remove, claim proved, delta 1e-5.
func (s size) privately(seed uint64, epsilon float64) config.Run {
	run := config.Default("wikitext", "central", "sound")
	run.Name, run.Seed = "membership-private", seed
	d, l, p := &run.Data, &run.Algorithm.Local, &run.Privacy
	d.Samples, d.Vocabulary, d.Context = s.noisySamples, s.vocabulary, s.context
	run.Model.Blocks, run.Model.Width, run.Model.Heads = s.blocks, s.width, s.heads
	run.Algorithm.Rounds, run.Algorithm.Stop.Every = 2, 2
	l.Steps, l.Batch, l.Step = s.steps/2, s.batch, 0.003
	p.PublicSize = int(0.97 * (1 - d.TestShare) * float64(s.noisySamples))
	if p.Epsilon = epsilon; math.IsInf(epsilon, 1) {
		p.Epsilon, p.NoiseMultiplier = 0, clippedAlone
	}
	return run
}

// clippedAlone is a noise that does nothing: every step needs one.
const clippedAlone = 1e-6

func launchPrivate(l *lab.Lab) (study.Study, error) {
	s := sizes[l.Scale]
	out := study.Study{
		Intro: []string{
			fmt.Sprintf("The model of the study membership, trained on %d rows in %d Poisson batches of %d on average, each row's gradient clipped to 1 and noise added for epsilon 8 and 2 (unit example, relation add-remove, claim proved, delta 1e-5), or none. The same attacks; references are trained alike, with noise of their own.", s.noisySamples, s.steps, s.batch),
		},
		Caveats: []string{
			"What references trained alike keep above one half is real: it is what epsilon allows, and no fault.",
			membership.Descriptive + ".", "Not covered: " + membership.Uncovered + ".",
		},
	}
	type at struct {
		seed    int
		epsilon float64
	}
	cells := map[at]*cell{}
	var jobs []func() error
	for seed := range l.Seeds {
		for _, epsilon := range epsilons {
			c := new(cell)
			cells[at{seed, epsilon}] = c
			o := membership.Options{Neighbours: s.neighbours, Sigma: membership.WordsSigma}
			if !math.IsInf(epsilon, 1) {
				o.References = s.alike
			}
			name := fmt.Sprintf("epsilon-%v-%d", epsilon, seed+1)
			jobs = append(jobs, func() error { return measure(l, name, s.privately(uint64(seed+1), epsilon), o, c) })
		}
	}
	if err := inOrder(l, jobs); err != nil {
		return study.Study{}, err
	}
	chart := study.Chart{
		Title: "What an attacker finds, by epsilon", XTitle: "epsilon (example, add-remove)", YTitle: "AUC", LogX: true,
		Note: "Claim proved, delta 1e-5; models that were clipped alone are drawn at 100. One half is guessing; mean over targets, one standard deviation to both sides.",
	}
	for _, attack := range []string{membership.Loss, membership.Noisy, membership.References} {
		series := study.Series{Name: attack}
		for _, epsilon := range epsilons {
			var areas []float64
			var losses [2]float64
			for seed := range l.Seeds {
				c := cells[at{seed, epsilon}]
				if auc, ok := c.auc(attack); ok {
					areas = append(areas, auc.Middle)
				}
				losses[0], losses[1] = losses[0]+c.Members/float64(l.Seeds), losses[1]+c.Others/float64(l.Seeds)
			}
			if len(areas) == 0 {
				continue
			}
			spread := lab.MeanAndDeviation(areas)
			label := fmt.Sprintf("epsilon %v: %s", epsilon, attack)
			x := epsilon
			if math.IsInf(epsilon, 1) {
				label, x = "clipped alone: "+attack, 100
			}
			out.Rows = append(out.Rows, lab.Measured(study.Row{
				Section: "Area under the ROC curve", Label: label, Metric: "AUC", Verdict: study.NoNumber,
				Settings: map[string]any{"samples": s.noisySamples, "steps": s.steps, "batch": s.batch},
				Note:     fmt.Sprintf("perplexity of members %.4g, of others %.4g", math.Exp(losses[0]), math.Exp(losses[1])),
			}, spread))
			series.Points = append(series.Points, spread.At(x))
		}
		chart.Series = append(chart.Series, series)
	}
	out.Charts = []study.Chart{chart}
	return out, nil
}
