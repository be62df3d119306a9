package groupprivacy

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/report/prose"
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
	for _, nu := range noise {
		var byModels [][]cell
		for _, k := range models {
			of := cells[hospitalKey{nu, k}]
			s.Rows = append(s.Rows, hospitalErrors(hospitalKey{nu, k}, of)...)
			byModels = append(byModels, of)
		}
		s.Rows = append(s.Rows, hospitalOrder(nu, models, byModels)...)
	}
	s.Rows = append(s.Rows, hospitalNoiseRows(models, noise, cells)...)
	for _, key := range keys {
		s.Rows = append(s.Rows, hospitalBudgets(key, cells[key], paper.Budgets)...)
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

// hospitalOrder are section 4's sentence on the number of models, by the cells of each.
func hospitalOrder(nu float64, models []int, cells [][]cell) []study.Row {
	row := func(label, why string) study.Row {
		return study.Row{
			Section: "Figure 4: what the text claims", Label: fmt.Sprintf("nu %v: %s", nu, label), Metric: "RMSE saved", Unit: "dollars", Settings: map[string]any{"nu": nu}, Why: why,
			Sentence: "paper 003, section 5.1.2: several hypotheses significantly reduce the RMSE, particularly from one to three",
		}
	}
	step := func(i int) []float64 { // saved by the next number of models
		return lab.Differences(cells[i], cells[i+1], func(c cell) float64 { return data.HospitalDollars * validation(c) })
	}
	rows := []study.Row{lab.Effect(row(fmt.Sprintf("%d model less %d", models[0], models[1]), "No reason is known."), step(0), 0)}
	if len(models) < 3 {
		return rows
	}
	further := step(0)
	for seed := range further {
		most := math.Inf(-1)
		for i := 1; i+1 < len(models); i++ {
			most = max(most, step(i)[seed])
		}
		further[seed] -= most
	}
	return append(rows, lab.Effect(row("the first step less the largest further one", "No reason is known beside too few seeds."), further, 0))
}

// hospitalNoiseRows are what figure 4 shows of noise: it raises the error and its spread,
// less with more models.
func hospitalNoiseRows(models []int, noise []float64, cells map[hospitalKey][]cell) (rows []study.Row) {
	most := noise[len(noise)-1]
	row := func(label, metric, unit, sentence, why string) study.Row {
		return study.Row{Section: "Figure 4: what noise does", Label: label, Metric: metric, Unit: unit, Sentence: sentence, Why: why, Settings: map[string]any{"nu": most}}
	}
	price := func(k int) []float64 {
		return lab.Differences(cells[hospitalKey{most, k}], cells[hospitalKey{0, k}], func(c cell) float64 { return data.HospitalDollars * validation(c) })
	}
	const slight = "We believe that the increase is there, as slight as the text says, and below what so many seeds can tell for one number of models. Tested by the row of all numbers of models together."
	all := make([]float64, len(price(models[0]))) // seed by seed
	for _, k := range models {
		for i, p := range price(k) {
			all[i] += p / float64(len(models))
		}
		rows = append(rows, lab.Effect(row(fmt.Sprintf("%s: nu %v less nu 0", prose.Counted(k, "model", "models"), most), "RMSE gained", "dollars",
			"paper 003, section 5.1.2: formal guarantees come with a slight increase of the cost function", slight), price(k), 0))
		r := row(fmt.Sprintf("%s: deviation at nu %v over that at nu 0", prose.Counted(k, "model", "models"), most), "ratio of deviations over seeds", "ratio",
			"paper 000, figure 4: error bars grow with the noise", "No reason is known. Empty clusters were suspected and are not it: with algorithm.empty keep, ten seeds, the deviation at nu 5 is 0.8 to 1.3 of that at nu 0, too.")
		noisy, quiet := lab.Pick(cells[hospitalKey{most, k}], validation), lab.Pick(cells[hospitalKey{0, k}], validation)
		rows = append(rows, lab.Wider(r, noisy, quiet))
	}
	rows = append(rows, lab.Effect(row(fmt.Sprintf("all numbers of models together: nu %v less nu 0", most), "RMSE gained", "dollars",
		"paper 003, section 5.1.2: formal guarantees come with a slight increase of the cost function", "No reason is known beside too few seeds."), all, 0))
	few, many := price(models[0]), price(models[len(models)-1])
	for i := range few {
		few[i] -= many[i]
	}
	return append(rows, lab.Effect(row(fmt.Sprintf("what noise costs %d model less what it costs %d", models[0], models[len(models)-1]), "RMSE gained", "dollars",
		"paper 003, section 5.1.2: more hypotheses mitigate the impact of the noise, even at high levels", "We believe that there is too little to mitigate: noise costs 1 model no more than 7, within what the seeds tell. Tested by the rows above."), few, 0))
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
			r.Why = "We believe that patience ends elsewhere, for the data are another year's (2801 clients instead of 2947). Not tested: 2011 is not among the stored data."
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
