package fairness

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fair"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/groupprivacy"
	"github.com/coterie-fl/coterie/repro/lab"
)

var handwriting = lab.Experiment{
	ID: "fairness-handwriting", Title: "Group fairness on handwriting: a fifth of the writers rotated",
	Paper: "paper 003, section 5.2.2, figure 8; thesis 001, section 2.5.2",
	Needs: []string{"unipen-by-writer", "mnist", "mnist-by-writer"}, Quick: "4 min", Full: "2 h",
	Device: true,
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 3, lab.Full: 3},
	Launch: runHandwriting,
}

// pictureKey is what one cell of figure 8 is about.
type pictureKey struct {
	groupprivacy.HandwritingSet
	scale string
	k     int
	nu    float64
}

// run is a cell's.
func (s pictureKey) run() config.Run {
	r := s.Run(s.scale, "cross-entropy", s.nu)
	r.Name, r.Data.Rotated = "fairness-handwriting", 0.2
	a := &r.Algorithm
	a.Hypotheses, a.ClientsPerRound = s.k, 10 // two of the minority in a round, on average
	// The papers compare trained models at the same effort: no early stop.
	a.Stop = config.Stop{Every: 1 << 19, Return: "last", ValidationClients: 1}
	switch {
	case s.scale == lab.Smoke:
		r.Data.TrainShare, a.ClientsPerRound = 0.9, 4
	case s.Small:
		a.Rounds = 100
	case s.scale == lab.Quick:
		r.Data.TrainShare, a.Rounds = 0.9, 15
	default:
		a.Rounds = 60
	}
	return r
}

// pictureMetrics are the papers', and the accuracy.
var pictureMetrics = append(slices.Clone(differences), metric{"accuracy", "share", func(c cell) *float64 { return &c.Accuracy }})

func runHandwriting(l *lab.Lab) (study.Study, error) {
	sets := append(slices.Clone(groupprivacy.HandwritingSets), groupprivacy.SmallHandwriting)
	noiseOf := func(s groupprivacy.HandwritingSet) []float64 {
		if l.Scale == lab.Full || l.Scale == lab.Quick && s.Small {
			return noiseLevels
		}
		return []float64{0, 4}
	}
	switch l.Scale {
	case lab.Smoke:
		sets = sets[1:2]
	case lab.Quick:
		sets = sets[1:]
	}
	var keys []pictureKey
	alone := map[groupprivacy.HandwritingSet]*aloneCell{}
	var jobs []func() error
	for _, set := range sets {
		for _, k := range []int{1, 2} {
			for _, nu := range noiseOf(set) {
				keys = append(keys, pictureKey{set, l.Scale, k, nu})
			}
		}
		run, err := l.Resolve(pictureKey{set, l.Scale, 1, 0}.run())
		if err != nil {
			return study.Study{}, err
		}
		run.Seed = 1
		local := new(aloneCell)
		alone[set] = local
		jobs = append(jobs, func() error {
			return l.Remember([]any{"writers alone", run}, local, func(l *lab.Lab) (any, error) { return trainAlone(l, run) })
		})
	}
	cells, err := lab.Table(l, keys, pictureKey.run, judgePictures)
	if err == nil {
		err = l.All(jobs)
	}
	if err != nil {
		return study.Study{}, err
	}
	synthetic, err := syntheticRise(l)
	if err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			"A fifth of the writers' pictures are turned by 90 degrees: the unprivileged group. Label 1 is an even class for the others and an odd class for them, for the true and for the predicted class alike. One model serves the majority; two models can serve both.",
			"The papers claim that two models are fairer by all three metrics at every noise, and that two models at the largest noise are fairer than one without noise.",
			"Every held-out writer chooses its model on every second picture and is judged on the others. Means over seeds with one standard deviation; for differences lower is fairer.",
		},
		Caveats: []string{
			"n/nu is no protection in theory at 1.2 million parameters, nor at the small network's 11,738 (claim: heuristic).",
			"The paper's FEMNIST is replaced by other handwriting, and its figure 8 is a picture: only its claims can be compared.",
			"The label is the parity of the class: a confusion of 4 and 6 counts as right, and a perfect predictor has a parity difference of its own, that of the groups' base rates.",
		},
	}
	for _, set := range sets {
		noise := noiseOf(set)
		at := func(k int, nu float64) []cell { return cells[pictureKey{set, l.Scale, k, nu}] }
		like := study.Row{Section: "Figure 8: " + set.Name, Settings: map[string]any{"set": set.Name}}
		perfect := metric{"demographic parity difference", "difference", func(c cell) *float64 { return c.Perfect }}
		if q := perfect.spread(at(1, 0)); !math.IsNaN(q.Middle) {
			row := like
			row.Label, row.Metric, row.Unit = "a perfect predictor", perfect.name, perfect.unit
			row.Verdict, row.Note = study.NoNumber, "what is below it is not more accurate"
			s.Rows = append(s.Rows, lab.Measured(row, q))
		}
		most := noise[len(noise)-1]
		run, err := l.Resolve(pictureKey{set, l.Scale, 1, 0}.run()) // with what the caller sets
		if err != nil {
			return study.Study{}, err
		}
		a := run.Algorithm
		s.Caveats = append(s.Caveats, fmt.Sprintf("%s: %d clients a round, at most %d pictures of each, %d local epochs, %d rounds.",
			set.Name, a.ClientsPerRound, a.Local.Limit, a.Local.Epochs, a.Rounds))
		whole := true
		for i, m := range pictureMetrics {
			spread := func(k int, nu float64) lab.Spread { return m.spread(at(k, nu)) }
			like.Metric, like.Unit = m.name, m.unit
			chart := study.Chart{
				Title: fmt.Sprintf("Figure 8 %c, %s: %s", 'a'+i, set.Name, m.name), XTitle: "noise multiplier nu", YTitle: m.name, LogX: true,
				Note: "mean and one standard deviation over seeds",
			}
			if m.name == "accuracy" {
				chart.Title = "Not in the papers, " + set.Name + ": accuracy"
			}
			if !compare(&s, chart, like, noise, spread) {
				whole = false
				s.Caveats = append(s.Caveats, fmt.Sprintf("%s: the %s is undefined in some cells, because a group has no such pictures.", set.Name, m.name))
			} else if m.name != "accuracy" {
				why := picturesWhy
				if m.name == perfect.name {
					why = parityWhy
				}
				s.Rows = append(s.Rows, m.claimRows(set.Name, why, noise, at)...)
			}
		}
		groups, err := judgedGroups(l, run)
		if err != nil {
			return study.Study{}, err
		}
		s.Rows = append(s.Rows, minorityRows(set.Name, "upright", "rotated", noise, func(k int, nu float64) [][]float64 { return missedBy(at(k, nu), groups) })...)
		if whole {
			s.Rows = append(s.Rows, notableRows(set.Name, synthetic, riseOf(at, most))...)
		}
		rows, err := gainRows(fmt.Sprintf("Who gains, who loses: %s, share of pictures misread, by group (nu %v, one seed, 95 %% intervals over writers)", set.Name, most),
			"error rate", "share", alone[set].losses(at(1, most)[0], at(2, most)[0]))
		if err != nil {
			return study.Study{}, err
		}
		s.Rows = append(s.Rows, rows...)
	}
	return s, nil
}

// losses joins what writers alone, with everybody and with their group misread.
func (a *aloneCell) losses(global, personal cell) fair.Losses {
	var out fair.Losses
	column := func(name string, wrong []int) fair.ModelLoss {
		m := fair.ModelLoss{Name: name}
		for _, w := range wrong {
			m.Loss = append(m.Loss, float64(w))
		}
		return m
	}
	for writer, judged := range a.Judged {
		for range judged {
			out.Group = append(out.Group, pictureGroup(a.Group[writer]))
			out.Cluster = append(out.Cluster, writer)
		}
	}
	out.Models = []fair.ModelLoss{column("local", a.Wrong), column("global", global.Wrong), column("personalised", personal.Wrong)}
	return out
}
