package fairness

import (
	"fmt"
	"maps"
	"math"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fair"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// cell is the fairness of one trained run to its held-out clients; what cannot be
// computed is nil. Runs on pictures fill all of it.
type cell struct {
	Parity, Opportunity, Odds *float64
	Perfect                   *float64 // parity difference if every class were right
	Accuracy                  float64
	Wrong                     []int     // picture by picture: 1 if its class is wrong
	Missed                    []float64 `json:",omitempty"` // of loans: the share of wrong labels, by group
}

// metric is one figure of a cell.
type metric struct {
	name, unit string
	of         func(cell) *float64
}

// differences are the papers' metrics, as figures 7 and 8 have them from a to c.
var differences = []metric{
	{"equal opportunity difference", "difference", func(c cell) *float64 { return c.Opportunity }},
	{"equalized odds difference", "difference", func(c cell) *float64 { return c.Odds }},
	{"demographic parity difference", "difference", func(c cell) *float64 { return c.Parity }},
}

// measure fills a cell's differences.
func (c *cell) measure(rows fair.Rows) error {
	r, err := fair.Measure(rows)
	if err != nil {
		return err
	}
	m := r.Metrics
	c.Parity, c.Opportunity, c.Odds = m.DemographicParityDifference.Value, m.EqualOpportunityDifference.Value, m.EqualizedOddsDifference.Value
	return nil
}

// spread is the metric over seeds; cells in which it cannot be computed are left out.
func (m metric) spread(cells []cell) lab.Spread {
	var out []float64
	for _, c := range cells {
		if v := m.of(c); v != nil {
			out = append(out, *v)
		}
	}
	return lab.MeanAndDeviation(out)
}

// compare adds a chart of one model and of two over the noise, and rows like one. Where
// the metric is undefined there is neither, and whole is false.
func compare(s *study.Study, c study.Chart, like study.Row, noise []float64, at func(k int, nu float64) lab.Spread) (whole bool) {
	whole = true
	for _, k := range []int{1, 2} {
		series := study.Series{Name: models(k)}
		for _, nu := range noise {
			q := at(k, nu)
			if math.IsNaN(q.Middle) {
				whole = false
				continue
			}
			series.Points = append(series.Points, q.At(nu))
			row := like
			row.Label, row.Verdict, row.Note = fmt.Sprintf("%s, nu %v", models(k), nu), study.NoNumber, "the text lacks the figure"
			row.Settings = maps.Clone(like.Settings)
			row.Settings["k"], row.Settings["nu"] = k, nu
			s.Rows = append(s.Rows, lab.Measured(row, q))
		}
		c.Series = append(c.Series, series)
	}
	s.Charts = append(s.Charts, c)
	return whole
}

func models(k int) string { return prose.Counted(k, "model", "models") }

// paired is the metric of some cells less that of others, seed by seed, where both have it.
func (m metric) paired(cells, others []cell) (out []float64) {
	for i := range min(len(cells), len(others)) {
		if a, b := m.of(cells[i]), m.of(others[i]); a != nil && b != nil {
			out = append(out, *a-*b)
		}
	}
	return out
}

// claimRows are the papers' claims about a metric, as effects over seeds that could be
// absent; at gives the cells with k models at a noise, and personalWhy is what we believe
// where two models are not fairer than one.
func (m metric) claimRows(setting, personalWhy string, noise []float64, at func(k int, nu float64) []cell) []study.Row {
	row := func(section, label, sentence, why string) study.Row {
		return study.Row{
			Section: section, Label: fmt.Sprintf("%s: %s, %s", setting, m.name, label), Metric: m.name,
			Settings: map[string]any{"setting": setting}, Unit: "difference", Sentence: sentence, Why: why,
		}
	}
	const personal, noisy = "What the papers claim", "What the papers claim of noise"
	gained := func(nu float64) []float64 { return m.paired(at(1, nu), at(2, nu)) }
	least, most := noise[0], noise[len(noise)-1]
	for _, nu := range noise {
		if lab.Interval(gained(nu)).Middle < lab.Interval(gained(least)).Middle {
			least = nu
		}
	}
	rows := []study.Row{
		lab.Effect(row(personal, fmt.Sprintf("1 model less 2, at nu %v, where it is least", least), "paper 003, section 5.2: personalised models are fairer under all metrics and levels of privacy", personalWhy), gained(least), 0),
		lab.Effect(row(personal, fmt.Sprintf("1 model without noise less 2 at nu %v", most), "paper 003, section 5.2: fairer under the highest level of privacy than models without personalisation and privacy", personalWhy), m.paired(at(1, 0), at(2, most)), 0),
	}
	traded := lab.Differences(gained(0), m.paired(at(2, most), at(2, 0)), func(v float64) float64 { return v })
	for i, g := range gained(0)[:len(traded)] {
		traded[i] -= g / 2
	}
	rows = append(rows, lab.Effect(row(noisy, fmt.Sprintf("half of what 2 models gain without noise, less what nu %v takes of it", most), "paper 003, section 1: a relatively small trade-off between privacy and fairness", tradeWhy), traded, 0))
	for _, k := range []int{1, 2} {
		rows = append(rows, lab.Effect(row(noisy, fmt.Sprintf("%s, nu %v less nu 0", models(k), most), "thesis 001, section 2.5.2: fairness deteriorates as the noise multiplier increases", deteriorationWhy), m.paired(at(k, most), at(k, 0)), 0))
	}
	return rows
}

// whoGains compares, on one seed of setting A at nu 1, what users lose alone, with
// everybody, and with their group. Every user chooses or fits on its first half of
// rows and is judged on the second.
func whoGains(l *lab.Lab) ([]study.Row, error) {
	var losses fair.Losses
	local, global, personal := fair.ModelLoss{Name: "local"}, fair.ModelLoss{Name: "global"}, fair.ModelLoss{Name: "personalised"}
	trained := map[int]*trainedLoan{}
	for _, k := range []int{1, 2} {
		run, err := l.Resolve(loanKey{loanSettings[0], k, 1}.run())
		if err != nil {
			return nil, err
		}
		run.Seed, run.Run.Workers = 1, 1
		s, err := l.Finish(run)
		if err != nil {
			return nil, err
		}
		trained[k] = &trainedLoan{append([]float64{}, s.Returned()...), s.Federation()}
		s.Close()
	}
	m := model.Linear{Features: 2, Intercept: true}
	n := m.Parameters()
	learner, err := m.Learner()
	if err != nil {
		return nil, err
	}
	alone := &model.Pass{StepSize: 0.1, Epochs: 300}
	for u := range trained[1].federation.Validation {
		c := &trained[1].federation.Validation[u]
		half := c.Rows.Len() / 2
		first := &data.Client{Rows: data.Rows{X: c.X[:half*2], Y: c.Y[:half], Features: 2}}
		own := make([]float64, n)
		if err := learner.Train(own, first, alone); err != nil {
			return nil, err
		}
		_, best, err := model.Best(learner, n, trained[2].hypotheses, first)
		if err != nil {
			return nil, err
		}
		for i := half; i < c.Rows.Len(); i++ {
			square := func(theta []float64) float64 { r := m.Predict(theta, c.Rows, i) - c.Y[i]; return r * r }
			local.Loss = append(local.Loss, square(own))
			global.Loss = append(global.Loss, square(trained[1].hypotheses))
			personal.Loss = append(personal.Loss, square(trained[2].hypotheses[best*n:(best+1)*n]))
			losses.Group, losses.Cluster = append(losses.Group, loanGroup(c.Group)), append(losses.Cluster, u)
		}
	}
	losses.Models = []fair.ModelLoss{local, global, personal}
	return gainRows("Who gains, who loses: mean squared error by group (setting A, nu 1, one seed, 95 % intervals)", "mean squared error", "y squared", losses)
}

// gainRows is the panel "who gains, who loses": every model's mean loss in every
// group, and for how many of its clients it is the best.
func gainRows(section, metric, unit string, losses fair.Losses) ([]study.Row, error) {
	cmp, err := fair.Compare(losses, fair.Bootstrap{Seed: 1})
	if err != nil {
		return nil, err
	}
	var rows []study.Row
	for _, p := range append(cmp.Groups, cmp.Overall) {
		group := p.Group
		if group == cmp.Overall.Group {
			group = "everybody"
		}
		for _, mm := range p.Models {
			rows = append(rows, study.Row{
				Section: section, Label: fmt.Sprintf("%s, %s model", group, mm.Name), Metric: metric, Settings: map[string]any{"group": group, "model": mm.Name},
				Measured: lab.Number(*mm.MeanLoss.Value), Low: optional(mm.MeanLoss.Low), High: optional(mm.MeanLoss.High), Unit: unit, Verdict: study.NoNumber,
				Note: fmt.Sprintf("best for %.0f %% of its clients", 100**mm.Best.Value),
			})
		}
	}
	return rows, nil
}

// optional is the end of an interval, where there is one.
func optional(x *float64) *event.Number {
	if x == nil {
		return nil
	}
	return lab.Number(*x)
}

type trainedLoan struct {
	hypotheses []float64
	federation *data.Federation
}
