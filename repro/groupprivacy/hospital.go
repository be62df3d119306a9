package groupprivacy

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

var hospital = lab.Experiment{
	ID: "hospital", Title: "Hospital charges: models, noise and budgets",
	Paper: "paper 000, figures 3 and 4, table 1, appendix B.2",
	Needs: []string{"hospital", "zip"}, Quick: "30 s", Full: "60 s",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 4, lab.Full: 10},
	Launch: runHospital,
}

var (
	hospitalModels = []int{1, 3, 5, 7}
	hospitalNoise  = []float64{0, 0.1, 1, 2, 3, 5}
)

// hospitalRun is one cell of figure 4: docs/decisions/0005 says what the paper
// leaves open.
func hospitalRun(k int, nu float64) config.Run {
	r := config.Default("synthetic", "group-private", "paper")
	r.Name = "hospital"
	r.Data.Kind = "hospital"
	r.Model = config.Model{Kind: "network", Name: "hospital"}
	r.Algorithm.Hypotheses, r.Algorithm.Rounds, r.Algorithm.ClientsPerRound = k, 5000, 100
	r.Algorithm.Local.Loss = "rmse"
	r.Algorithm.Stop.Patience, r.Algorithm.Stop.ValidationClients = 30, 200
	lab.WithNoise(&r, nu)
	return r
}

type hospitalBudget struct{ Nu, K, Median, Max float64 }

func runHospital(l *lab.Lab) (study.Study, error) {
	var paper struct {
		Source  string
		Budgets []hospitalBudget
	}
	if err := lab.Expected("hospital.json", &paper); err != nil {
		return study.Study{}, err
	}
	models, noise := hospitalModels, hospitalNoise
	if l.Scale == lab.Smoke {
		models, noise = []int{1, 3}, []float64{0, 5}
	}
	var runs []config.Run
	for _, nu := range noise {
		for _, k := range models {
			runs = append(runs, hospitalRun(k, nu))
		}
	}
	cells, err := lab.Grid(l, runs, simulate)
	if err != nil {
		return study.Study{}, err
	}
	at := func(i, j int) []cell { return cells[i*len(models)+j] } // noise i, models j

	s := study.Study{
		Intro: []string{
			"Every provider is a client with up to four rows: condition, longitude, latitude, and what the stay cost. 70 % of the clients train, the others validate; a network of 11 parameters predicts the cost.",
			"The paper's claims: more models lower the error, the step from 1 to 3 most of all; noise raises it and its spread; table 1 gives the budgets.",
			"Errors are means over validation clients, in dollars, with one standard deviation over seeds.",
		},
		Caveats: []string{
			"The paper used fiscal year 2011 (2947 clients); here it is 2016 (2801): dollar levels cannot be compared.",
			"Budgets are the papers' sum of n/nu over a client's releases (unit: neighbourhood, relation: metric, claim: heuristic): the radius is each update's own length, which is private.",
			"A client picks its model on the rows it is scored on. The honest score picks on its other rows.",
			"Validation clients are asked in every round for raw losses that nobody pays for.",
		},
	}
	for i, nu := range noise {
		for j, k := range models {
			s.Rows = append(s.Rows, hospitalErrors(nu, k, at(i, j))...)
		}
		s.Rows = append(s.Rows, hospitalOrder(nu, models, func(j int) []cell { return at(i, j) })...)
	}
	for i, nu := range noise {
		for j, k := range models {
			s.Rows = append(s.Rows, hospitalBudgets(nu, k, at(i, j), paper.Budgets)...)
		}
	}
	s.Charts = append(s.Charts, hospitalChart(models, noise, at))
	if chart, ok := budgetHistogram(models, noise, at); ok {
		s.Charts = append(s.Charts, chart)
	}
	return s, nil
}

func hospitalSettings(nu float64, k int) map[string]any { return map[string]any{"k": k, "nu": nu} }

func dollars(cells []cell, f func(cell) float64) lab.Spread {
	return lab.MeanAndDeviation(lab.Pick(cells, func(c cell) float64 { return data.HospitalDollars * f(c) }))
}

func hospitalErrors(nu float64, k int, cells []cell) []study.Row {
	row := func(metric string) study.Row {
		return study.Row{
			Section: "Figure 4: error on validation clients", Label: fmt.Sprintf("nu %v, %d models", nu, k), Metric: metric,
			Settings: hospitalSettings(nu, k), Unit: "dollars", Verdict: study.NoFigure, Note: "the text lacks the figure; other year",
		}
	}
	honest := lab.Measured(row("RMSE, honest choice"), dollars(cells, func(c cell) float64 { return float64(*c.Honest) }))
	honest.Note = "chosen on a client's other rows"
	return []study.Row{lab.Measured(row("RMSE"), dollars(cells, validation)), honest}
}

// hospitalOrder states the prose of section 4 as rows that can be false.
func hospitalOrder(nu float64, models []int, at func(j int) []cell) []study.Row {
	var means []float64
	for j := range models {
		means = append(means, data.HospitalDollars*lab.MeanAndDeviation(lab.Pick(at(j), validation)).Middle)
	}
	row := func(label string, value float64, ok bool, note string) study.Row {
		return lab.Claim(study.Row{
			Section: "Figure 4: what the text claims", Label: fmt.Sprintf("nu %v: %s", nu, label), Metric: label,
			Settings: map[string]any{"nu": nu}, Note: note,
		}, lab.Exactly(value), ok)
	}
	ratio := means[0] / means[1]
	ordered, biggest := true, true
	for j := 1; j < len(means); j++ {
		ordered = ordered && means[j] < means[j-1]
		biggest = biggest && means[0]-means[1] >= means[j-1]-means[j]
	}
	return []study.Row{
		row("error of 1 model over that of 3", ratio, ratio > 1.4 && biggest, "more than 1.4, and the step from 1 to 3 the largest"),
		row("error falls with every step", means[len(means)-1], ordered, "dollars at the largest number of models"),
	}
}

func hospitalBudgets(nu float64, k int, cells []cell, paper []hospitalBudget) []study.Row {
	if nu == 0 {
		return nil
	}
	var theirs *hospitalBudget
	for i := range paper {
		if paper[i].Nu == nu && paper[i].K == float64(k) {
			theirs = &paper[i]
		}
	}
	row := func(metric string, f func(cell) float64, figure func(hospitalBudget) float64) study.Row {
		r := lab.Measured(study.Row{
			Section: "Table 1: budgets of the clients", Label: fmt.Sprintf("nu %v, %d models", nu, k), Metric: metric,
			Settings: hospitalSettings(nu, k), Unit: "epsilon at the radius, heuristic", Verdict: study.NoFigure,
		}, lab.MeanAndDeviation(lab.Pick(cells, f)))
		if theirs != nil {
			r.Paper = lab.Number(figure(*theirs))
			r = lab.Judged(r, figure(*theirs)/1.25, figure(*theirs)*1.25)
			r.Note = "agrees: within 25 %; budgets follow the round at which patience ends"
		}
		return r
	}
	return []study.Row{
		row("median budget", median, func(b hospitalBudget) float64 { return b.Median }),
		row("maximum budget", largest, func(b hospitalBudget) float64 { return b.Max }),
	}
}

func hospitalChart(models []int, noise []float64, at func(i, j int) []cell) study.Chart {
	c := study.Chart{Title: "Figure 4: error by noise and number of models", XTitle: "noise multiplier nu", YTitle: "RMSE in dollars", LogX: true, Note: "mean and one standard deviation over seeds"}
	for j, k := range models {
		series := study.Series{Name: fmt.Sprintf("%d models", k)}
		for i, nu := range noise {
			series.Points = append(series.Points, dollars(at(i, j), validation).At(nu))
		}
		c.Series = append(c.Series, series)
	}
	return c
}

// budgetHistogram is figure 3: 5 models, nu 3, the third seed if there is one.
func budgetHistogram(models []int, noise []float64, at func(i, j int) []cell) (study.Chart, bool) {
	for i, nu := range noise {
		for j, k := range models {
			if nu != 3 || k != 5 {
				continue
			}
			cells := at(i, j)
			one := cells[min(2, len(cells)-1)]
			c := study.Chart{
				Title: "Figure 3: budgets over the clients", XTitle: "a client's total, epsilon at the radius (heuristic)", YTitle: "clients", Bars: true,
				Note: "nu 3, 5 models, one seed", Series: []study.Series{{Name: "clients"}},
			}
			for _, b := range one.Budgets {
				c.Series[0].Points = append(c.Series[0].Points, lab.Exactly(float64(b.Clients)).At(float64(b.Epsilon)))
			}
			return c, true
		}
	}
	return study.Chart{}, false
}
