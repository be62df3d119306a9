package pandemic

import (
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

var losses = lab.Experiment{
	ID: "pandemic-losses", Title: "Who falls ill next week: losses for the rare",
	Paper: "paper 002, table 2.2",
	Quick: "3 min", Full: "30 min",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 3, lab.Full: 3},
	Launch: launchLosses,
}

// lossOf are the rows of table 2.2: precision and recall in per cent.
var lossOf = []struct {
	name              string
	set               []string
	precision, recall float64
}{
	{"cross entropy", []string{"algorithm.local.loss=cross-entropy"}, 3.096, 0.05},
	{"focal, alpha 0.25", []string{"algorithm.local.focal_alpha=0.25"}, 3.036, 0},
	{"focal, alpha 0.50", []string{"algorithm.local.focal_alpha=0.5"}, 3.165, 0.259},
	{"focal, alpha 0.75", []string{"algorithm.local.focal_alpha=0.75"}, 3.222, 1.940},
}

func launchLosses(l *lab.Lab) (study.Study, error) {
	of := sizes[l.Scale]
	sets := map[string][]string{}
	var names []string
	for _, loss := range lossOf {
		names, sets[loss.name] = append(names, loss.name), loss.set
	}
	cells, err := trials(l, of, names, func(name string) []string { return sets[name] })
	if err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			"Fewer than three in a thousand fall ill. The thesis trains its logistic model with the cross entropy and with the focal loss (gamma 2), which counts less what is right already; alpha is the weight of those who fall ill. Recall is the share of them whom the model gives a chance above one half.",
		},
		Caveats: caveats(of),
	}
	const section = "Table 2.2"
	for _, loss := range lossOf {
		s.Rows = append(s.Rows, shown(section, loss.name, loss.precision, of, cells[loss.name]))
	}
	for _, loss := range lossOf {
		recall := lab.Pick(cells[loss.name], func(c cell) float64 { return 100 * c.Recall })
		s.Rows = append(s.Rows, lab.Measured(study.Row{
			Section: section + ", recall", Label: loss.name, Metric: "recall at one half, in per cent", Unit: "%", Paper: lab.Number(loss.recall), Verdict: study.Incomparable,
		}, lab.MeanAndDeviation(recall)))
	}
	entropy, low, high := cells[lossOf[0].name], cells[lossOf[1].name], cells[lossOf[3].name]
	const orders = "Orders"
	s.Rows = append(s.Rows,
		order(orders, "focal 0.75 over cross entropy", "focal loss improves the average precision considerably over cross entropy", fewPopulations, high, entropy, 3.222/3.096),
		order(orders, "focal 0.75 over focal 0.25", "table 2.2: 3.222 with alpha 0.75, 3.036 with 0.25 (times 0.01)", fewPopulations, high, low, 3.222/3.036),
		recallOrder(orders, high, entropy),
		naive(orders, entropy),
	)
	return s, nil
}

// recallOrder is the claim about recall. Where nobody is given more than one half, there is
// none to compare.
func recallOrder(section string, one, other []cell) study.Row {
	gains := make([]float64, len(one))
	for i := range one {
		gains[i] = 100 * (one[i].Recall - other[i].Recall)
	}
	return lab.Effect(study.Row{
		Section: section, Label: "recall of focal 0.75 over cross entropy's", Metric: "percentage points", Unit: "points",
		Sentence: "focal loss improves recall considerably over cross entropy",
		Note:     "the thesis's figures: 1.89 points; agrees: the whole 95 % interval over seeds above 0",
		Why:      "We believe that models of so few persons give hardly anybody a chance above one half. Tested by the recalls of all losses, in the table above.",
	}, gains, 0)
}

// naive is the claim about training with the plain loss. Low is that less than one in a hundred
// of those who fall ill is found.
func naive(section string, entropy []cell) study.Row {
	return lab.AtMost(study.Row{
		Section: section, Label: "recall of cross entropy", Metric: "per cent", Unit: "%",
		Sentence: "section 2.5.2: training naively will suffer from low recall",
		Note:     "the thesis's figure: 0.05 %; agrees: the whole 95 % interval over seeds below 1 %",
		Why:      fewPopulations,
	}, lab.Pick(entropy, func(c cell) float64 { return 100 * c.Recall }), 1)
}
