package silos

import (
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// considerably is by how much the noise of a method must grow that a text calls considerably
// dearer: a tenth.
const considerably = 1.1

// noiseClaims are what the texts say of overhead itself, by the noise that the same budget asks
// for: the median silo's, seed by seed.
func noiseClaims(section string, row func(name string) outcome) []study.Row {
	noise := func(name string) []float64 {
		return lab.Pick(row(name).cells, func(c cell) float64 { return float64(c.Noise) })
	}
	claim := func(label, sentence string) study.Row {
		return study.Row{Section: section, Label: "noise: " + label, Metric: "ratio of noise", Sentence: sentence, Why: fewSeeds}
	}
	same := func(r study.Row, of, as []float64) study.Row {
		ratios := make([]float64, len(of))
		for i := range ratios {
			ratios[i] = of[i] / as[i]
		}
		r.Note = "agrees: the same noise with every seed"
		return lab.Within(r, ratios, 1-1e-9, 1+1e-9)
	}
	local, some, always := noise("local"), noise("IFCA, choosing in 10 % of rounds"), noise("IFCA, choosing in every round")
	eats := claim("IFCA in every round over local", "B.3: the cost of private selection can grow quickly and considerably eat into the budget of training")
	eats.Note = "agrees: the whole 95 % interval over seeds above 1.1"
	return []study.Row{
		same(claim("FedAvg over local", "section 1.3: local training and FedAvg have identical privacy costs"), noise("FedAvg"), local),
		same(claim("MR-MTL over local", "section 1.5: MR-MTL has zero additional privacy cost compared to local training and FedAvg"), noise("MR-MTL"), local),
		lab.Times(claim("Ditto over MR-MTL", "section 1.5, figure 1.4: Ditto's extra iterations are a privacy overhead"), noise("Ditto"), noise("MR-MTL"), 1),
		lab.Times(claim("IFCA in 10 % of rounds over local", "section 1.5, figure 1.4: cluster selection is a privacy overhead"), some, local, 1),
		lab.Times(eats, always, local, considerably),
	}
}
