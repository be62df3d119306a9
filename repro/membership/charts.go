package membership

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/audit/membership"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// shown are the attacks that curves are drawn of.
func (f *figures) shown() (names []string, attacks []membership.Attack) {
	take := func(name string, c cell, attack string) {
		if a, ok := c.attack(attack); ok {
			names, attacks = append(names, name), append(attacks, a)
		}
	}
	most := f.size.references[len(f.size.references)-1]
	take("loss", f.sigmas[0], membership.Loss)
	take("noisy neighbours", f.sigmas[f.usual()], membership.Noisy)
	take("shadows", f.last(), membership.Shadows)
	take(fmt.Sprintf("%d references", most), f.last(), membership.References)
	return names, attacks
}

func (f *figures) charts() []study.Chart {
	noisy := lab.Curve("noisy neighbours", f.size.sigmas, func(i int) lab.Spread {
		auc, _ := f.sigmas[i].auc(membership.Noisy)
		return auc
	})
	curves := study.Chart{
		Title: "Members found against others taken for members (figure 4.3)", XTitle: "share of others", YTitle: "share of members", LogX: true, LogY: true,
		Note: "a line through (x, x) would be guessing",
	}
	epsilons := study.Chart{
		Title: "Empirical epsilon (figure 4.4)", XTitle: "share of others taken for members", YTitle: "ln(share of members / share of others)", LogX: true,
		Note: "unit example, no claim, no relation: points as the thesis has them, without bounds. Below a hundred others they are mostly chance",
	}
	names, attacks := f.shown()
	for i, a := range attacks {
		roc, eps := study.Series{Name: names[i]}, study.Series{Name: names[i]}
		for _, p := range thinned(a.ROC) {
			x, y := float64(p.FalsePositive), float64(p.TruePositive)
			if x > 0 && y > 0 {
				roc.Points = append(roc.Points, lab.Exactly(y).At(x))
				eps.Points = append(eps.Points, lab.Exactly(math.Log(y/x)).At(x))
			}
		}
		curves.Series, epsilons.Series = append(curves.Series, roc), append(epsilons.Series, eps)
	}
	return []study.Chart{
		{Title: "Noisy neighbours by their noise (figure 4.2)", XTitle: "sigma over the words' RMS", YTitle: "AUC", LogX: true, Note: "with DeLong's 95 % interval", Series: []study.Series{noisy}},
		curves, epsilons,
	}
}

// mostPlaces is how many places of a curve are drawn.
const mostPlaces = 200

// thinned are places of a curve, evenly on a log scale of the others' share.
func thinned(roc []membership.Place) []membership.Place {
	if len(roc) <= mostPlaces {
		return roc
	}
	var out []membership.Place
	next := 0.0
	for _, p := range roc {
		x := math.Log10(max(float64(p.FalsePositive), 1e-9))
		if len(out) == 0 || x >= next {
			out = append(out, p)
			next = x + 5.0/mostPlaces
		}
	}
	return out
}
