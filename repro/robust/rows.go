package robust

import (
	"fmt"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

func (s size) rows(found map[key][]float64, eps float64) (rows []study.Row) {
	section := "Accuracy, without noise"
	if eps > 0 {
		section = fmt.Sprintf("Accuracy, noise at the clients (epsilon %v, example, add-remove, proved)", eps)
	}
	most := s.shares[len(s.shares)-1]
	for _, rule := range rules {
		add := func(label string, k key) {
			rows = append(rows, lab.Measured(study.Row{
				Section: section, Label: nameOf(rule) + ", " + label, Metric: "accuracy", Unit: "share",
				Settings: map[string]any{"share": k.Share}, Verdict: study.NoNumber,
			}, lab.MeanAndDeviation(found[k])))
		}
		add("nobody lies", key{rule, -1, 0, eps})
		for i, lie := range lies {
			for _, share := range s.shares {
				add(fmt.Sprintf("%.0f %%: %s", 100*share, lie.name), key{rule, i, share, eps})
			}
		}
	}
	mean := func(rule string, lie int) float64 {
		return lab.MeanAndDeviation(found[key{rule, lie, most, eps}]).Middle
	}
	best := 0.0
	for _, rule := range rules[1:] {
		best = max(best, mean(rule, 0)-mean("", 0))
	}
	return append(rows, lab.Measured(study.Row{
		Section: section, Label: "what the best robust rule gains over the mean", Metric: "accuracy gained", Unit: "share", Verdict: study.NoNumber,
		Note: fmt.Sprintf("%.0f %%: %s; under noise such updates look like anybody's", 100*most, lies[0].name),
	}, lab.Exactly(best)))
}

func (s size) charts(found map[key][]float64, eps float64) (charts []study.Chart) {
	for i, lie := range lies {
		title := "Accuracy against liars: " + lie.name
		if eps > 0 {
			title += ", with noise at the clients"
		}
		c := study.Chart{Title: title, XTitle: "share of clients that lie", YTitle: "accuracy"}
		for _, rule := range rules {
			xs := append([]float64{0}, s.shares...)
			c.Series = append(c.Series, lab.Curve(nameOf(rule), xs, func(at int) lab.Spread {
				if at == 0 {
					return lab.MeanAndDeviation(found[key{rule, -1, 0, eps}])
				}
				return lab.MeanAndDeviation(found[key{rule, i, xs[at], eps}])
			}))
		}
		charts = append(charts, c)
	}
	return charts
}
