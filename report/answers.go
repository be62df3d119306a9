package report

import (
	"fmt"
	"html/template"
	"slices"

	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/prose"
)

// answerCurve is one of the pictures that answers to 2 classes have.
type answerCurve struct {
	id, name, x, y string
	of             func(c *metrics.Curves) []chart.Point
	marked         bool // few points, each of them a measurement
	// rises says that a line from corner to corner is where chance (or perfection) lies.
	rises bool
}

var answerCurves = []answerCurve{
	{id: "roc", name: "ROC", x: "share of class 0 above the score", y: "share of class 1 above the score",
		of: func(c *metrics.Curves) []chart.Point { return pairs(c.ROC) }, rises: true},
	{id: "pr", name: "Precision and recall", x: "recall: share of class 1 above the score", y: "precision: share of class 1 among those",
		of: func(c *metrics.Curves) []chart.Point { return pairs(c.PR) }},
	{id: "reliability", name: "Calibration", x: "probability of class 1, mean of a tenth", y: "share that is of class 1",
		of: func(c *metrics.Curves) (out []chart.Point) {
			for _, b := range c.Reliability {
				out = append(out, chart.Point{X: b.Predicted, Y: b.Observed})
			}
			return out
		}, marked: true, rises: true},
}

func pairs(points [][2]float64) []chart.Point {
	out := make([]chart.Point, len(points))
	for i, p := range points {
		out[i] = chart.Point{X: p[0], Y: p[1]}
	}
	return out
}

// newAnswerFigure draws the curves of all runs that have some into common frames: one
// colour a method.
func newAnswerFigure(runs []run) panelFigure {
	var f panelFigure
	for _, c := range answerCurves {
		if p, ok := c.panel(runs); ok {
			f.Panels = append(f.Panels, p)
		}
	}
	if len(f.Panels) == 0 {
		return f
	}
	f.Caption = "All judged examples together. ROC: the higher the line, the better the order of the answers; the broken diagonal is chance. "
	if len(f.Panels) == len(answerCurves) {
		f.Caption += "Calibration: on the broken diagonal probabilities mean what they say; below it they are too high. Every mark is a tenth of the probability that has examples."
	} else {
		f.Caption += "Class 1 are the people who fall ill. Precision is drawn from a recall of 2 % on: of the first few it is chance."
	}
	for i, r := range runs {
		if r.History.Curves != nil {
			f.Legend = append(f.Legend, chart.Entry(r.label, func(c *chart.Canvas) {
				c.Path("curve "+chart.ColourClass(i)+" "+chart.DashClass(i), "M1 9H29")
				c.Marks("mark "+chart.ColourClass(i), i, 4, chart.Point{X: 15, Y: 9})
			}))
		} else if len(runs) > 1 {
			f.miss(r.label, "no curve: they are drawn for 2 classes, where examples of both are held out.")
		}
	}
	return f
}

func (a answerCurve) panel(runs []run) (panel, bool) {
	whole := chart.Domain{Lo: 0, Hi: 1}
	high := a.highest(runs)
	if high == 0 {
		return panel{}, false
	}
	ax := chart.NewAxis(whole, chart.Real, chart.PlotLeft, chart.PlotRight, 5)
	ay := chart.NewAxis(chart.Domain{Lo: 0, Hi: high}, chart.Real, chart.PlotBottom, chart.PlotTop, 5)
	var out chart.Canvas
	out.Frame(ax, ay, a.x, a.y)
	if a.rises {
		out.Line("chance", ax.At(0), ay.At(0), ax.At(1), ay.At(1))
	}
	words, drawn := "", 0
	for i, r := range runs {
		if r.History.Curves == nil {
			continue
		}
		var points []chart.Point
		for _, p := range a.of(r.History.Curves) {
			if a.id == "pr" && high < 1 && p.X < soonRecalled {
				continue
			}
			if p.X >= 0 && p.X <= 1 && p.Y >= 0 && p.Y <= high {
				points = append(points, p)
			}
		}
		if len(points) == 0 {
			continue
		}
		drawn++
		out.Path("curve "+chart.ColourClass(i)+" "+chart.DashClass(i), chart.Polyline(points, ax, ay))
		marks := points
		if !a.marked {
			marks = chart.Staggered(points, i, len(runs))
		}
		places := make([]chart.Point, len(marks))
		for k, p := range marks {
			places[k] = chart.Place(p, ax, ay)
		}
		out.Marks("mark "+chart.ColourClass(i), i, 3.4, places...)
		words += a.describe(r)
	}
	if drawn == 0 {
		return panel{}, false
	}
	return panel{Name: a.name, Chart: template.HTML(out.SVG("answers-"+a.id, a.name, words))}, true
}

// soonRecalled is the share of people that precision is drawn from on: of the first few it
// is 1 or 0 by chance.
const soonRecalled = 0.02

// highest is the end of the upright axis: 1, but of people, few of whom fall ill, the
// precision that is reached; 0: there is nothing to see.
func (a answerCurve) highest(runs []run) float64 {
	if slices.ContainsFunc(runs, func(r run) bool { return !ranked(r.Summary) }) || a.id == "roc" {
		return 1
	}
	high := 0.0
	for _, r := range runs {
		if c := r.History.Curves; c != nil && a.id == "pr" {
			for _, p := range c.PR {
				if p[0] >= soonRecalled {
					high = max(high, p[1])
				}
			}
		}
	}
	return min(1, 1.1*high)
}

// describe is the figure that the curve stands for, in words.
func (a answerCurve) describe(r run) string {
	m := r.Metrics
	switch {
	case a.id == "roc" && m.AUC != nil:
		return fmt.Sprintf("%s: AUC %s. ", r.label, rounded(m.AUC.Value))
	case a.id == "pr" && m.AveragePrecision != nil:
		return fmt.Sprintf("%s: average precision %s. ", r.label, rounded(m.AveragePrecision.Value))
	case a.id == "reliability" && m.CalibrationSlope != nil && m.CalibrationIntercept != nil:
		return fmt.Sprintf("%s: calibration slope %s, intercept %s. ", r.label, rounded(m.CalibrationSlope.Value), prose.Rounded(float64(m.CalibrationIntercept.Value)))
	}
	return r.label + ". "
}
