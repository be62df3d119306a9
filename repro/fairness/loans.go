// Package fairness reproduces the studies of how fair one model and several are to groups.
package fairness

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fair"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// Experiments are listed in this order.
var Experiments = []lab.Experiment{loans, handwriting}

var loans = lab.Experiment{
	ID: "fairness", Title: "Group fairness of one model and of two: the synthetic loan study",
	Paper: "paper 003, section 5.2.1, figure 7; thesis 001, section 2.5.2",
	Quick: "30 s", Full: "1 min",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 40, lab.Full: 100},
	Launch: runLoans,
}

var noiseLevels = []float64{0, 0.1, 1, 2, 4}

// loanSetting is a reading of what the paper leaves open.
type loanSetting struct {
	name, note string
	sd         float64
	loss       string
}

var loanSettings = []loanSetting{
	{"A", "x ~ N(0, 1), squared error", 1, "squared-error"},
	{"B", "x ~ N(0, 9), RMSE", 3, "rmse"},
}

// loanRun: 800 and 200 users, the second group shifted by 15, an intercept.
func loanRun(s loanSetting, k int, nu float64) config.Run {
	r := config.Default("synthetic", "group-private", "paper")
	r.Name = "loan-study"
	r.Data.Users, r.Data.ValidationUsers = 1000, 500
	r.Data.Shares, r.Data.Shift = []float64{0.8, 0.2}, []float64{0, fair.LoanShift}
	r.Data.X = config.Distribution{Kind: "normal", SD: s.sd}
	r.Model.Intercept = true
	r.Algorithm.Hypotheses, r.Algorithm.ClientsPerRound = k, 70
	r.Algorithm.Local.Loss = s.loss
	lab.WithNoise(&r, nu)
	return r
}

// loanCell is the fairness of one trained run on its held-out users.
type loanCell struct {
	Parity, Opportunity, Odds *float64
}

var loanMetrics = []struct {
	name string
	of   func(loanCell) *float64
}{
	{"demographic parity difference", func(c loanCell) *float64 { return c.Parity }},
	{"equal opportunity difference", func(c loanCell) *float64 { return c.Opportunity }},
	{"equalized odds difference", func(c loanCell) *float64 { return c.Odds }},
}

func runLoans(l *lab.Lab) (study.Study, error) {
	noise := noiseLevels
	if l.Scale == lab.Smoke {
		noise = []float64{0, 4}
	}
	cells := map[string][]loanCell{} // by setting, models and noise
	var jobs []func() error
	for _, set := range loanSettings {
		for _, k := range []int{1, 2} {
			for _, nu := range noise {
				of, more, err := lab.Seeded(l, loanRun(set, k, nu), loan)
				if err != nil {
					return study.Study{}, err
				}
				cells[loanKey(set, k, nu)], jobs = of, append(jobs, more...)
			}
		}
	}
	if err := l.All(jobs); err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			"800 users of a privileged and 200 of an unprivileged group hold rows of two linear laws, the second shifted by 15. A loan is approved by a rule on y that differs between the groups. One model serves the majority; two models can serve both.",
			"The papers claim that personalised models are fairer by all three metrics at every noise, and that two models at the largest noise are fairer than one without noise.",
			"Figures are means over seeds with one standard deviation, on 500 held-out users, each under its best model. Lower is fairer.",
		},
		Caveats: []string{
			"The papers do not say how x is drawn. An intercept is needed; settings A and B are readings under which the claim holds. With x uniform on [-1, 1] equal opportunity gets worse with two models.",
			"A user picks the model that fits its own rows, true values included: at prediction time that choice would have to be made on earlier rows.",
			"A perfect predictor has a parity difference of about 0.057 (A) and 0.02 (B): the groups' base rates differ.",
			"Leakage is the papers' heuristic number; validators are unprotected.",
		},
	}
	for _, set := range loanSettings {
		for _, m := range loanMetrics {
			chart := study.Chart{Title: fmt.Sprintf("Setting %s: %s", set.name, m.name), XTitle: "noise multiplier nu", YTitle: "difference between the groups", Note: set.note + "; mean and one standard deviation", LogX: true}
			at := func(k int, nu float64) lab.Spread {
				return lab.MeanAndDeviation(defined(cells[loanKey(set, k, nu)], m.of))
			}
			compare(&s, chart, noise, at, func(k int, nu float64, q lab.Spread) study.Row { return loanRow(set, k, nu, m.name, q) })
			s.Rows = append(s.Rows, claimRows(set.name, m.name, noise, at)...)
		}
	}
	panel, err := whoGains(l)
	if err != nil {
		return study.Study{}, err
	}
	s.Rows = append(s.Rows, panel...)
	return s, nil
}

func models(k int) string {
	if k == 1 {
		return "1 model"
	}
	return fmt.Sprintf("%d models", k)
}

func loanKey(s loanSetting, k int, nu float64) string { return fmt.Sprint(s.name, k, nu) }

// defined leaves out cells in which a metric cannot be computed; a report counts
// what it has.
func defined[C any](cells []C, of func(C) *float64) []float64 {
	var out []float64
	for _, c := range cells {
		if v := of(c); v != nil {
			out = append(out, *v)
		}
	}
	return out
}

func loanRow(set loanSetting, k int, nu float64, metric string, q lab.Spread) study.Row {
	return lab.Measured(study.Row{
		Section: fmt.Sprintf("Setting %s: %s", set.name, set.note), Label: fmt.Sprintf("%s, nu %v", models(k), nu), Metric: metric,
		Settings: map[string]any{"setting": set.name, "k": k, "nu": nu}, Unit: "difference", Verdict: study.NoFigure, Note: "the text lacks the figure",
	}, q)
}

// loan trains one run and measures its fairness on the held-out users.
func loan(l *lab.Lab, run config.Run) (loanCell, error) {
	s, err := l.Finish(run)
	if err != nil {
		return loanCell{}, err
	}
	defer s.Close()
	var rows fair.Rows
	hypotheses := s.Returned()
	m := model.Linear{Features: s.Federation().Features, Intercept: true}
	n := m.Parameters()
	learner, err := m.Learner()
	if err != nil {
		return loanCell{}, err
	}
	for u := range s.Federation().Validation {
		c := &s.Federation().Validation[u]
		_, best, err := model.Best(learner, n, hypotheses, c)
		if err != nil {
			return loanCell{}, err
		}
		for i, y := range c.Y {
			truth, err := fair.LoanLabel(c.Group, y)
			if err != nil {
				return loanCell{}, err
			}
			guess, err := fair.LoanLabel(c.Group, m.Predict(hypotheses[best*n:(best+1)*n], c.Rows, i))
			if err != nil {
				return loanCell{}, err
			}
			rows.Truth, rows.Predicted = append(rows.Truth, truth), append(rows.Predicted, guess)
			rows.Group, rows.Cluster = append(rows.Group, loanGroup(c.Group)), append(rows.Cluster, u)
		}
	}
	r, err := fair.Measure(rows)
	if err != nil {
		return loanCell{}, err
	}
	return loanCell{
		Parity: r.Metrics.DemographicParityDifference.Value, Opportunity: r.Metrics.EqualOpportunityDifference.Value,
		Odds: r.Metrics.EqualizedOddsDifference.Value,
	}, nil
}

func loanGroup(g int) string {
	if g == fair.LoanPrivileged {
		return "privileged"
	}
	return "unprivileged"
}
