package repro

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fair"
	"github.com/coterie-fl/coterie/report/study"
)

var fairnessHandwriting = Experiment{
	ID: "fairness-handwriting", Title: "Group fairness on handwriting: a fifth of the writers rotated",
	Paper: "paper 003, section 5.2.2, figure 8; thesis 001, section 2.5.2",
	Needs: []string{"unipen-by-writer", "mnist", "mnist-by-writer"}, Quick: "2 min", Full: "2 h",
	seeds:  map[string]int{Smoke: 1, Quick: 1, Full: 3},
	launch: runFairnessHandwriting,
}

// fairHandwritingRun is one cell of figure 8.
func (s handwritingSet) fairRun(scale string, k int, nu float64) config.Run {
	r := s.run(scale, "cross-entropy", nu)
	r.Name, r.Data.Rotated = "fairness-handwriting", 0.2
	a := &r.Algorithm
	a.Hypotheses, a.ClientsPerRound = k, 10 // two of the minority in a round, on average
	// The papers compare trained models at the same effort: no early stop.
	a.Stop = config.Stop{Every: 1 << 19, Return: "last", ValidationClients: 1}
	switch {
	case scale == Smoke:
		r.Data.TrainShare, a.ClientsPerRound = 0.9, 4
	case s.small:
		a.Rounds = 100
	case scale == Quick:
		r.Data.TrainShare, a.Rounds = 0.9, 15
	default:
		a.Rounds = 60
	}
	return r
}

// pictureCell is the fairness of one run on its held-out writers.
type pictureCell struct {
	Parity, Opportunity, Odds *float64
	Perfect                   *float64 // parity difference if every class were right
	Accuracy                  float64
	Wrong                     []int // picture by picture: 1 if its class is wrong
}

var pictureMetrics = []struct {
	name string
	of   func(pictureCell) *float64
}{
	{"demographic parity difference", func(c pictureCell) *float64 { return c.Parity }},
	{"equal opportunity difference", func(c pictureCell) *float64 { return c.Opportunity }},
	{"equalized odds difference", func(c pictureCell) *float64 { return c.Odds }},
	{"accuracy", func(c pictureCell) *float64 { return &c.Accuracy }},
}

func runFairnessHandwriting(l *lab) (study.Study, error) {
	sets := append(slices.Clone(handwritingSets), smallHandwriting)
	noiseOf := func(s handwritingSet) []float64 {
		if l.options.Scale == Full || l.options.Scale == Quick && s.small {
			return fairnessNoise
		}
		return []float64{0, 4}
	}
	switch l.options.Scale {
	case Smoke:
		sets = sets[1:2]
	case Quick:
		sets = sets[1:]
	}
	type key struct {
		set handwritingSet
		k   int
		nu  float64
	}
	cells, alone := map[key][]pictureCell{}, map[handwritingSet]*aloneCell{}
	var jobs []func() error
	for _, set := range sets {
		for _, k := range []int{1, 2} {
			for _, nu := range noiseOf(set) {
				run, err := l.resolve(set.fairRun(l.options.Scale, k, nu))
				if err != nil {
					return study.Study{}, err
				}
				of := make([]pictureCell, l.seeds)
				cells[key{set, k, nu}] = of
				for seed := range of {
					jobs = append(jobs, func() error {
						one := run
						one.Seed, one.Run.Workers = uint64(seed+1), 1
						return l.remember([]any{"fairness-handwriting", one}, &of[seed], func() (any, error) { return l.judgePictures(one) })
					})
				}
			}
		}
		run, err := l.resolve(set.fairRun(l.options.Scale, 1, 0))
		if err != nil {
			return study.Study{}, err
		}
		run.Seed = 1
		local := new(aloneCell)
		alone[set] = local
		jobs = append(jobs, func() error {
			return l.remember([]any{"writers alone", run}, local, func() (any, error) { return l.trainAlone(run) })
		})
	}
	if err := l.all(jobs); err != nil {
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
		perfect := definedPictures(cells[key{set, 1, 0}], func(c pictureCell) *float64 { return c.Perfect })
		if len(perfect) > 0 {
			row := pictureRow(set.name, 1, 0, "demographic parity difference", meanAndDeviation(perfect))
			row.Label, row.Note, row.Settings = "a perfect predictor", "what is below it is not more accurate", map[string]any{"set": set.name}
			s.Rows = append(s.Rows, row)
		}
		most := noise[len(noise)-1]
		run, err := l.resolve(set.fairRun(l.options.Scale, 1, 0)) // with what the caller sets
		if err != nil {
			return study.Study{}, err
		}
		a := run.Algorithm
		s.Caveats = append(s.Caveats, fmt.Sprintf("%s: %d clients a round, at most %d pictures of each, %d local epochs, %d rounds.",
			set.name, a.ClientsPerRound, a.Local.Limit, a.Local.Epochs, a.Rounds))
		for _, m := range pictureMetrics {
			at := func(k int, nu float64) spread {
				return meanAndDeviation(definedPictures(cells[key{set, k, nu}], m.of))
			}
			chart := study.Chart{
				Title: fmt.Sprintf("Figure 8, %s: %s", set.name, m.name), XTitle: "noise multiplier nu", YTitle: m.name, LogX: true,
				Note: "mean and one standard deviation over seeds",
			}
			undefined := false
			for _, k := range []int{1, 2} {
				series := study.Series{Name: models(k)}
				for _, nu := range noise {
					q := at(k, nu)
					if math.IsNaN(q.middle) {
						undefined = true
						continue
					}
					series.Points = append(series.Points, study.Point{X: nu, Y: q.middle, Low: q.low, High: q.high})
					s.Rows = append(s.Rows, pictureRow(set.name, k, nu, m.name, q))
				}
				chart.Series = append(chart.Series, series)
			}
			s.Charts = append(s.Charts, chart)
			if undefined {
				s.Caveats = append(s.Caveats, fmt.Sprintf("%s: the %s is undefined in some cells, because a group has no such pictures.", set.name, m.name))
			} else if m.name != "accuracy" {
				s.Rows = append(s.Rows, fairnessClaims(set.name, m.name, noise, func(k int, nu float64) float64 { return at(k, nu).middle })...)
			}
		}
		rows, err := gainRows(fmt.Sprintf("Who gains, who loses: %s, share of pictures misread, by group (nu %v, one seed, 95 %% intervals over writers)", set.name, most),
			"error rate", "share", alone[set].losses(cells[key{set, 1, most}][0], cells[key{set, 2, most}][0]))
		if err != nil {
			return study.Study{}, err
		}
		s.Rows = append(s.Rows, rows...)
	}
	return s, nil
}

func definedPictures(cells []pictureCell, of func(pictureCell) *float64) []float64 {
	var out []float64
	for _, c := range cells {
		if v := of(c); v != nil {
			out = append(out, *v)
		}
	}
	return out
}

func pictureRow(set string, k int, nu float64, metric string, q spread) study.Row {
	unit := "difference"
	if metric == "accuracy" {
		unit = "share"
	}
	return measured(study.Row{
		Section: "Figure 8: " + set, Label: fmt.Sprintf("%s, nu %v", models(k), nu), Metric: metric,
		Settings: map[string]any{"set": set, "k": k, "nu": nu}, Unit: unit, Verdict: study.NoFigure, Note: "the text lacks the figure",
	}, q)
}

// losses joins what writers alone, with everybody and with their group misread.
func (a *aloneCell) losses(global, personal pictureCell) fair.Losses {
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
