package groupprivacy

import (
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

var hospital = lab.Experiment{
	ID: "hospital", Title: "Hospital charges: models, noise and budgets",
	Paper: "paper 000, figures 3 and 4, table 1, appendix B.2; paper 003, section 5.1.2; thesis 001, section 2.5.1",
	Needs: []string{"hospital", "zip"}, Quick: "30 s", Full: "60 s",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 4, lab.Full: 10},
	Launch: runHospital,
}

var (
	hospitalModels = []int{1, 3, 5, 7}
	hospitalNoise  = []float64{0, 0.1, 1, 2, 3, 5}
)

// hospitalKey is what one cell of figure 4 is about.
type hospitalKey struct {
	nu float64
	k  int
}

// run is a cell's: docs/decisions/0005 says what the paper leaves open.
func (h hospitalKey) run() config.Run {
	r := config.Default("synthetic", "group-private", "paper")
	r.Name = "hospital"
	r.Data.Kind = "hospital"
	r.Model = config.Model{Kind: "network", Name: "hospital"}
	r.Algorithm.Hypotheses, r.Algorithm.Rounds, r.Algorithm.ClientsPerRound = h.k, 5000, 100
	r.Algorithm.Local.Loss = "rmse"
	r.Algorithm.Stop.Patience, r.Algorithm.Stop.ValidationClients = 30, 200
	lab.WithNoise(&r, h.nu)
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
	var keys []hospitalKey
	for _, nu := range noise {
		for _, k := range models {
			keys = append(keys, hospitalKey{nu, k})
		}
	}
	cells, err := lab.Table(l, keys, hospitalKey.run, simulate)
	if err != nil {
		return study.Study{}, err
	}
	// The same with empty clusters kept, as they may be in the papers' program.
	var most []hospitalKey
	for _, key := range keys {
		if key.k > 1 && (key.nu == 0 || key.nu == noise[len(noise)-1]) {
			most = append(most, key)
		}
	}
	kept, err := lab.Table(l, most, func(h hospitalKey) config.Run { r := h.run(); r.Algorithm.Empty = "keep"; return r }, simulate)
	if err != nil {
		return study.Study{}, err
	}
	run, err := l.Resolve(keys[0].run())
	if err != nil {
		return study.Study{}, err
	}
	f, err := l.Folder.Load(run.Data, 1)
	if err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			"Every provider is a client with up to four rows: condition, longitude, latitude, and what the stay cost. 70 % of the clients train, the others validate; a network of 11 parameters predicts the cost.",
			"The texts claim: more models lower the error, the step from 1 to 3 most of all, and 5 and 7 are best; noise raises it and its spread, less with more models; table 1 gives the budgets.",
			"Errors are means over validation clients, in dollars, with one standard deviation over seeds.",
		},
		Caveats: []string{
			"The paper used fiscal year 2011 (2947 clients); here it is 2016 (2801): dollar levels cannot be compared.",
			"Budgets are the papers' sum of n/nu over a client's releases (unit: neighbourhood, relation: metric, claim: heuristic): the radius is each update's own length, which is private.",
			"A client picks its model on the rows it is scored on. The honest score picks on its other rows.",
			"Validation clients are asked in every round for raw losses that nobody pays for.",
		},
	}
	of := hospitalFigure{models, noise, cells}
	for _, nu := range noise {
		s.Rows = append(s.Rows, of.order(nu)...)
	}
	s.Rows = slices.Concat(s.Rows, of.choices(), of.noiseRows(), of.kept(kept), of.sizes(f))
	for _, key := range keys {
		s.Rows = append(s.Rows, hospitalBudgets(key, cells[key], paper.Budgets)...)
	}
	for _, key := range keys {
		s.Rows = append(s.Rows, hospitalErrors(key, cells[key])...)
	}
	s.Charts = append(s.Charts, hospitalChart(models, noise, cells))
	if of, ok := cells[hospitalKey{3, 5}]; ok {
		s.Charts = append(s.Charts, budgetHistogram(of[min(2, len(of)-1)]))
	}
	return s, nil
}

// row is one of a cell's figures.
func (h hospitalKey) row(section, metric, unit, note string) study.Row {
	return study.Row{
		Section: section, Label: fmt.Sprintf("nu %v, %s", h.nu, prose.Counted(h.k, "model", "models")), Metric: metric, Settings: map[string]any{"k": h.k, "nu": h.nu},
		Unit: unit, Verdict: study.NoNumber, Note: note,
	}
}

func dollars(cells []cell, f func(cell) float64) lab.Spread {
	return lab.MeanAndDeviation(lab.Pick(cells, func(c cell) float64 { return data.HospitalDollars * f(c) }))
}

func hospitalErrors(h hospitalKey, cells []cell) []study.Row {
	const section = "Figure 4: error on validation clients"
	return []study.Row{
		lab.Measured(h.row(section, "RMSE", "dollars", "the text lacks the figure; other year"), dollars(cells, validation)),
		lab.Measured(h.row(section, "RMSE, honest choice", "dollars", "chosen on a client's other rows"),
			dollars(cells, func(c cell) float64 { return float64(*c.Honest) })),
	}
}

func hospitalBudgets(h hospitalKey, cells []cell, paper []hospitalBudget) []study.Row {
	if h.nu == 0 {
		return nil
	}
	at := slices.IndexFunc(paper, func(b hospitalBudget) bool { return b.Nu == h.nu && b.K == float64(h.k) })
	row := func(metric string, f func(cell) float64, figure func(hospitalBudget) float64) study.Row {
		r := lab.Measured(h.row("Table 1: budgets of the clients", metric, "epsilon at the radius, heuristic", ""), lab.MeanAndDeviation(lab.Pick(cells, f)))
		if at >= 0 {
			theirs := figure(paper[at])
			r.Paper, r.Note = lab.Number(theirs), "agrees: where the mean of as many runs of ours would lie in 95 of 100 studies; budgets follow the round at which patience ends"
			r.Why = budgetWhy
			again := lab.Again(lab.Pick(cells, f))
			if r = lab.Judged(r, again.Low, again.High, theirs); len(cells) < 2 {
				r.Verdict, r.Note, r.Why = study.Incomparable, "one seed has no interval", ""
			}
		}
		return r
	}
	return []study.Row{
		row("median budget", median, func(b hospitalBudget) float64 { return b.Median }),
		row("maximum budget", largest, func(b hospitalBudget) float64 { return b.Max }),
	}
}

func hospitalChart(models []int, noise []float64, cells map[hospitalKey][]cell) study.Chart {
	c := study.Chart{Title: "Figure 4: error by noise and number of models", XTitle: "noise multiplier nu", YTitle: "RMSE in dollars", LogX: true, Note: "mean and one standard deviation over seeds"}
	for _, k := range models {
		at := func(i int) lab.Spread { return dollars(cells[hospitalKey{noise[i], k}], validation) }
		c.Series = append(c.Series, lab.Curve(prose.Counted(k, "model", "models"), noise, at))
	}
	return c
}

// budgetHistogram is figure 3: 5 models, nu 3, the third seed if there is one.
func budgetHistogram(one cell) study.Chart {
	c := study.Chart{
		Title: "Figure 3: budgets over the clients", XTitle: "a client's total, epsilon at the radius (heuristic)", YTitle: "clients", Bars: true,
		Note: "nu 3, 5 models, one seed", Series: []study.Series{{Name: "clients"}},
	}
	for _, b := range one.Budgets {
		c.Series[0].Points = append(c.Series[0].Points, lab.Exactly(float64(b.Clients)).At(float64(b.Epsilon)))
	}
	return c
}
