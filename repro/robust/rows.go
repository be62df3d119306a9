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
	// What the docs say of it, as rows that could fail.
	mean := func(rule string, lie int, share float64) float64 {
		return lab.MeanAndDeviation(found[key{rule, lie, share, eps}]).Middle
	}
	claim := func(sentence string, drop float64, holds bool) {
		rows = append(rows, lab.Claim(study.Row{
			Section: "Ours to hold", Label: section, Metric: "accuracy lost", Unit: "share", Sentence: sentence,
			Note: "not of a paper: what docs/robust.md says",
		}, lab.Exactly(drop), holds))
	}
	honest := mean("", -1, 0)
	lost := honest - mean("", 1, most)
	claim(fmt.Sprintf("%.0f %% of clients with updates turned round ten times cost the mean 20 points or more", 100*most), lost, lost >= 0.2)
	worst := 0.0
	for _, rule := range rules[1:] {
		worst = max(worst, honest-mean(rule, 1, most))
	}
	claim("against the same liars no robust rule loses more than 10 points", worst, worst <= 0.1)
	return rows
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
