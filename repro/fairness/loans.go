// Package fairness reproduces the studies of how fair one model and several are to groups.
package fairness

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fair"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// Experiments are listed in this order.
var Experiments = []lab.Experiment{loans, handwriting}

var loans = lab.Experiment{
	ID: "fairness", Title: "Group fairness of one model and of two: the synthetic loan study",
	Paper: "paper 003, section 5.2.1, figures 6 and 7; thesis 001, section 2.5.2",
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

// loanKey is what one cell of figure 7 is about.
type loanKey struct {
	loanSetting
	k  int
	nu float64
}

// run: 800 and 200 users, the second group shifted by 15, an intercept.
func (s loanKey) run() config.Run {
	r := config.Default("synthetic", "group-private", "paper")
	r.Name = "loan-study"
	r.Data.Users, r.Data.ValidationUsers = 1000, 500
	r.Data.Shares, r.Data.Shift = []float64{0.8, 0.2}, []float64{0, fair.LoanShift}
	r.Data.X = config.Distribution{Kind: "normal", SD: s.sd}
	r.Model.Intercept = true
	r.Algorithm.Hypotheses, r.Algorithm.ClientsPerRound = s.k, 70
	r.Algorithm.Local.Loss = s.loss
	lab.WithNoise(&r, s.nu)
	return r
}

func runLoans(l *lab.Lab) (study.Study, error) {
	noise := noiseLevels
	if l.Scale == lab.Smoke {
		noise = []float64{0, 4}
	}
	var keys []loanKey
	for _, set := range loanSettings {
		for _, k := range []int{1, 2} {
			for _, nu := range noise {
				keys = append(keys, loanKey{set, k, nu})
			}
		}
	}
	cells, err := lab.Table(l, keys, loanKey.run, loan)
	if err != nil {
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
		for i, m := range differences {
			chart := study.Chart{Title: fmt.Sprintf("Figure 7 %c, setting %s: %s", 'a'+i, set.name, m.name), XTitle: "noise multiplier nu", YTitle: "difference between the groups", Note: set.note + "; mean and one standard deviation", LogX: true}
			row := study.Row{Section: fmt.Sprintf("Setting %s: %s", set.name, set.note), Metric: m.name, Unit: m.unit, Settings: map[string]any{"setting": set.name}}
			at := func(k int, nu float64) lab.Spread { return m.spread(cells[loanKey{set, k, nu}]) }
			compare(&s, chart, row, noise, at)
			s.Rows = append(s.Rows, m.claimRows(set.name, loansWhy, noise, func(k int, nu float64) []cell { return cells[loanKey{set, k, nu}] })...)
		}
		s.Rows = append(s.Rows, minorityRows(set.name, "privileged", "unprivileged", noise, func(k int, nu float64) (out [][]float64) {
			for _, c := range cells[loanKey{set, k, nu}] {
				out = append(out, c.Missed)
			}
			return out
		})...)
	}
	s.Charts = append(s.Charts, loanData()...)
	panel, err := whoGains(l)
	if err != nil {
		return study.Study{}, err
	}
	s.Rows = append(s.Rows, panel...)
	return s, nil
}

// loan trains one run and measures its fairness on the held-out users.
func loan(l *lab.Lab, run config.Run) (out cell, err error) {
	s, err := l.Finish(run)
	if err != nil {
		return out, err
	}
	defer s.Close()
	var rows fair.Rows
	hypotheses := s.Returned()
	m := model.Linear{Features: s.Federation().Features, Intercept: true}
	n := m.Parameters()
	learner, err := m.Learner()
	if err != nil {
		return out, err
	}
	var wrong, groups []int
	for u := range s.Federation().Validation {
		c := &s.Federation().Validation[u]
		_, best, err := model.Best(learner, n, hypotheses, c)
		if err != nil {
			return out, err
		}
		for i, y := range c.Y {
			truth, err := fair.LoanLabel(c.Group, y)
			if err != nil {
				return out, err
			}
			guess, err := fair.LoanLabel(c.Group, m.Predict(hypotheses[best*n:(best+1)*n], c.Rows, i))
			if err != nil {
				return out, err
			}
			rows.Truth, rows.Predicted = append(rows.Truth, truth), append(rows.Predicted, guess)
			wrong, groups = append(wrong, (truth+guess)%2), append(groups, c.Group)
			rows.Group, rows.Cluster = append(rows.Group, loanGroup(c.Group)), append(rows.Cluster, u)
		}
	}
	out.Missed = missed(wrong, groups)
	err = out.measure(rows)
	return out, err
}

// loanData is figure 6: users' values and what the rule of their group makes of them, of
// each group and of both.
func loanData() (charts []study.Chart) {
	for _, set := range loanSettings {
		f := data.Synthetic(loanKey{set, 1, 0}.run().Data, 1)
		var series []study.Series
		for _, label := range []string{"privileged, approved", "privileged, denied", "unprivileged, approved", "unprivileged, denied"} {
			series = append(series, study.Series{Name: label, Loose: true})
		}
		var reach []study.Point
		for i := 0; i < len(f.Train); i += 4 {
			u := &f.Train[i]
			at := 0
			if u.Group != fair.LoanPrivileged {
				at = 2
			}
			if approved, err := fair.LoanLabel(u.Group, u.Y[0]); err != nil || approved == 0 {
				at++
			}
			p := lab.Exactly(u.Y[0]).At(u.X[0])
			series[at].Points, reach = append(series[at].Points, p), append(reach, p)
		}
		for i, of := range [][]study.Series{series[:2], series[2:], series} {
			charts = append(charts, study.Chart{
				Title: fmt.Sprintf("Figure 6, setting %s: %s", set.name, []string{"the privileged", "the unprivileged", "both groups"}[i]), XTitle: "first feature", YTitle: "y",
				Note: set.note + "; one row of each of 250 users, seed 1", Series: of, Reach: reach,
			})
		}
	}
	return charts
}

func loanGroup(g int) string {
	if g == fair.LoanPrivileged {
		return "privileged"
	}
	return "unprivileged"
}
