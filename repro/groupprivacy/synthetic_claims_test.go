package groupprivacy

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/sim"
)

// trained is a seed of group-private training: its losses by round, how far releases are from
// an optimum at first and at last, who chooses its own group's model, and one leakage a round.
func trained(seed int, losses []event.Number, early, late, parted float64, leakage ...event.Number) (cell, course) {
	at := func(x float64) []sim.Release { return []sim.Release{{At: [2]float64{x + 0.01*float64(seed), 0}}} }
	c := course{Loss: losses, Early: at(early), Late: at(late), Truth: [][]float64{{0, 0}, {100, 0}}, Parted: parted + 0.001*float64(seed)}
	for _, e := range leakage {
		c.Leakage = append(c.Leakage, []event.Number{e})
	}
	return cell{Validation: losses[len(losses)-1] + event.Number(0.01*float64(seed)), Budgets: []budget{{0, 5}, {leakage[0], 3}}}, c
}

// TestPrivateClaimsCanFail: every sentence on group-private training can agree, and can not.
func TestPrivateClaimsCanFail(t *testing.T) {
	verdicts := func(losses []event.Number, early, late, parted float64, leakage ...event.Number) (out []study.Verdict) {
		var cells []cell
		var courses []course
		for seed := range 5 {
			c, way := trained(seed, losses, early, late, parted, leakage...)
			cells, courses = append(cells, c), append(courses, way)
		}
		for _, r := range privateRows(cells, courses) {
			out = append(out, r.Verdict)
		}
		return out
	}
	for i, v := range verdicts([]event.Number{3, 2, 1}, 6, 1, 0.98, 0.4, 0.4, 0.8) {
		if v != study.Agrees {
			t.Errorf("as the texts have it, row %d: %s", i, v)
		}
	}
	slow := make([]event.Number, 60)
	for i := range slow {
		slow[i] = event.Number(3 - 0.01*float64(i))
	}
	for i, v := range verdicts(slow, 1, 1.5, 0.6, 0.2, 0.4, 0.8) {
		if v != study.Differs {
			t.Errorf("otherwise, row %d: %s", i, v)
		}
	}
}

// TestNoiseLawCanFail: noise twice as long is seen.
func TestNoiseLawCanFail(t *testing.T) {
	twice := func(dst, base []float64, c mech.Clipped, src rand.Source) (event.MetricLaplace, error) {
		e, err := mech.Laplace{Multiplier: 5}.Simulate(dst, base, c, src)
		for i := range dst {
			dst[i] *= 2
		}
		return e, err
	}
	lengths, squares, err := laplaceFigures(2, twice)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{2, 4} {
		r := lab.Within(lawRow(2, "", "a sentence"), [][]float64{lengths, squares}[i], 0.99, 1.01)
		if m := float64(*r.Measured); r.Verdict != study.Differs || m < 0.97*want || m > 1.03*want {
			t.Errorf("%v times what it should be: %s", m, r.Verdict)
		}
	}
	rows, err := laplaceRows()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Verdict != study.Agrees {
			t.Errorf("%s: %v", r.Label, *r.Measured)
		}
	}
}

// TestFigure1IsLaidOutAsInThePapers: three charts a method, with the same axes.
func TestFigure1IsLaidOutAsInThePapers(t *testing.T) {
	var all [][]course
	for i := range 3 {
		_, c := trained(i, []event.Number{3, 2}, 5, 1, 1, 0.4, 0.4)
		c.Start, c.End = [][]float64{{0, 0}}, [][]float64{{1, 1}}
		all = append(all, []course{c})
	}
	all[0][0].Loss = all[0][0].Loss[:1] // it ends early, and keeps its loss
	charts := courseCharts(variants[:3], all)
	if len(charts) != 10 {
		t.Fatalf("%d charts", len(charts))
	}
	if p := charts[2].Series[0].Points; len(p) != 2 || p[1].Y != 3 {
		t.Errorf("the loss of a run that has ended: %v", p)
	}
	for i, c := range charts[:9] {
		if !strings.HasPrefix(c.Title, "Figure 1 "+string("abcdefghi"[i])+": "+variants[i/3].label) {
			t.Errorf("chart %d is %q", i, c.Title)
		}
		if same := charts[i%3]; len(c.Reach) != 2 || c.Reach[1] != same.Reach[1] {
			t.Errorf("%q reaches %v, and %q %v", c.Title, c.Reach, same.Title, same.Reach)
		}
	}
}
