package audit

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
)

// TestFoundIsTheCurveOfTheScores: of scores that are known, and what a claim allows.
func TestFoundIsTheCurveOfTheScores(t *testing.T) {
	in, out := []float64{5, 1, 4, 2}, []float64{0, 3, 1.5, -1}
	charts := found(in, out, event.Statement{Epsilon: 1, Delta: 0.01})
	if len(charts) != 1 {
		t.Fatalf("%d charts", len(charts))
	}
	// One false positive allows the threshold 1.5, two allow 0, three -1.
	want := [][2]float64{{0.25, 0.75}, {0.5, 1}, {0.75, 1}, {1, 1}}
	for i, p := range charts[0].Series[0].Points {
		if p.X != want[i][0] || p.Y != want[i][1] {
			t.Errorf("place %d is (%v, %v), want %v", i, p.X, p.Y, want[i])
		}
	}
	if p := charts[0].Series[1].Points[0]; math.Abs(p.Y-(math.E*0.25+0.01)) > 1e-12 {
		t.Errorf("the claim allows %v at %v", p.Y, p.X)
	}
	if !slices.Equal(in, []float64{5, 1, 4, 2}) {
		t.Errorf("the scores were changed: %v", in)
	}
	if found(nil, out, event.Statement{}) != nil {
		t.Error("a curve of no canaries")
	}
}

// TestReachEndsAtTheCeiling: what all guesses right would prove is the curve's last place,
// and the audit's own lies on it.
func TestReachEndsAtTheCeiling(t *testing.T) {
	r := OneRun{Canaries: 300, Guesses: 250, Right: 187, Confidence: 0.95, Privacy: event.Statement{Epsilon: 8, Delta: 1e-4}}
	ceiling, err := OneRunCeiling(300, 250, 1e-4, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	least, err := OneRunBound(300, 250, 187, 1e-4, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	r.Ceiling, r.AtLeast = event.Number(ceiling), event.Number(least)
	points := r.reach()[0].Series[0].Points
	last := points[len(points)-1]
	if last.X != 250 || last.Y != ceiling {
		t.Errorf("the curve ends at (%v, %v), the ceiling is %v", last.X, last.Y, ceiling)
	}
	if !slices.ContainsFunc(points, func(p study.Point) bool { return p.X == 187 && p.Y == least }) {
		t.Errorf("187 right guesses, %v, are not on the curve", least)
	}
	for i := range points[1:] {
		if points[i+1].Y < points[i].Y {
			t.Errorf("%v right guesses prove less than %v", points[i+1].X, points[i].X)
		}
	}
}

// TestPagesShowTheRightSide: canaries that are in lie above those that are out, of every
// audit (by at least a tenth of a deviation in the mean: at these settings they differ by
// more than one), and every step's interval holds the noise that was charged; both fail by
// chance less than once in a thousand seeds, and these are fixed.
func TestPagesShowTheRightSide(t *testing.T) {
	run := gradientRun(3)
	g, err := PlayGradients(context.Background(), run, CanaryOptions{Runs: 200, Confidence: 0.999})
	if err != nil {
		t.Fatal(err)
	}
	one, err := PlayOneRun(context.Background(), run, nil, OneRunOptions{Canaries: 300, StepsOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err := PlayCanary(context.Background(), canaryRunOf(4, 4, 1, 3), CanaryOptions{Runs: 200})
	if err != nil {
		t.Fatal(err)
	}
	for name, sides := range map[string][2][]float64{"mechanism": {g.in, g.out}, "onerun": {one.in, one.out}, "canary": {c.in, c.out}} {
		mean, sd := stat.MeanStdDev(sides[1], nil)
		if in := stat.Mean(sides[0], nil); !(in > mean+sd/10) {
			t.Errorf("%s: those that are in score %v, those that are out %v", name, in, mean)
		}
	}
	if len(one.in) != one.In || len(one.in)+len(one.out) != 300 {
		t.Errorf("%d and %d canaries", len(one.in), len(one.out))
	}
	if len(g.steps) != g.AllSteps {
		t.Errorf("%d of %d steps", len(g.steps), g.AllSteps)
	}
	for i, n := range g.steps {
		if !(n.low < 1 && 1 < n.high && n.low < n.share && n.share < n.high) {
			t.Errorf("step %d has %v of its noise, in %v to %v", i+1, n.share, n.low, n.high)
		}
	}
}
