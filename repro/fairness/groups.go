package fairness

import (
	"fmt"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// missed is the share of wrong answers in each of two groups; nil where one has no cases.
func missed(wrong, group []int) []float64 {
	var hits, cases [2]float64
	for i, w := range wrong {
		hits[group[i]] += float64(w)
		cases[group[i]]++
	}
	if cases[0] == 0 || cases[1] == 0 {
		return nil
	}
	return []float64{hits[0] / cases[0], hits[1] / cases[1]}
}

// minorityRows are the papers' reasons for what they see, as effects that could be absent:
// one model is biased towards the majority, two are not, and noise takes influence from the
// minority. At gives, by seed, what both groups miss with k models at a noise.
func minorityRows(setting, majority, minority string, noise []float64, at func(k int, nu float64) [][]float64) []study.Row {
	row := func(label, metric, sentence, why string) study.Row {
		return study.Row{
			Section: "What the papers say of the minority", Label: setting + ": " + label, Metric: metric, Unit: "share", Sentence: sentence, Why: why,
			Settings: map[string]any{"setting": setting},
		}
	}
	behind := func(k int, nu float64) []float64 { // of the minority
		return lab.Pick(at(k, nu), func(m []float64) float64 { return m[1] - m[0] })
	}
	over := func(of func(nu float64) []float64) []float64 { // all noise, seed by seed
		out := make([]float64, len(of(noise[0])))
		for _, nu := range noise {
			for i, v := range of(nu) {
				out[i] += v / float64(len(noise))
			}
		}
		return out
	}
	most := noise[len(noise)-1]
	if len(at(1, most)) == 0 {
		return nil // no seed holds out anybody of the minority
	}
	return []study.Row{
		lab.Effect(row(fmt.Sprintf("1 model, all noise: %s less %s", minority, majority), "share of wrong answers",
			"paper 003, section 5.2.1: the model without personalisation is biased towards the majority group", "No reason is known."), over(func(nu float64) []float64 { return behind(1, nu) }), 0),
		lab.Effect(row(fmt.Sprintf("%s, all noise: 1 model less 2", minority), "share of wrong answers",
			"paper 003, section 5.2.1: personalised training optimises for each group without disregarding the minority", "No reason is known."), over(func(nu float64) []float64 {
			return lab.Differences(at(1, nu), at(2, nu), func(m []float64) float64 { return m[1] })
		}), 0),
		lab.Effect(row(fmt.Sprintf("2 models, %s less %s: nu %v less nu 0", minority, majority, most), "share of wrong answers",
			"paper 003, section 6: as the noise increases, the influence of the minority group decreases", minorityWhy),
			lab.Differences(behind(2, most), behind(2, 0), func(v float64) float64 { return v }), 0),
	}
}
