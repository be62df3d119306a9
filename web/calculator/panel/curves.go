package panel

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
)

// Piece is a curve that is done, as a part of the page.
type Piece struct {
	Place string `json:"place,omitempty"` // "curve-1" and on; empty: a point was found, the curve is not done
	HTML  string `json:"html,omitempty"`
}

// curve is one value of an answer over one value of its question. The rest of the question
// stays as it is.
type curve struct {
	id, over, of, by string // of and by are the axes' titles
	terms            string // what the value depends on
	xs               []float64
	now              float64 // the answer's own x
	linear           bool
	at               func(x float64) []float64 // the value, and one that it is held against
	against          string                    // what that is

	points [][]chart.Point
}

// More finds the next point of the answer's curves, or hands over a curve that is done. It
// says false when nothing is left.
func (p *Panel) More() (Piece, bool) {
	if len(p.curves) == 0 {
		return Piece{}, false
	}
	c := p.curves[0]
	if len(c.xs) > 0 {
		for i, y := range c.at(c.xs[0]) {
			if len(c.points) <= i {
				c.points = append(c.points, nil)
			}
			if chart.Drawable(y) && y > 0 {
				c.points[i] = append(c.points[i], chart.Point{X: c.xs[0], Y: y})
			}
		}
		c.xs = c.xs[1:]
		return Piece{}, true
	}
	p.curves = p.curves[1:]
	return Piece{Place: c.id, HTML: string(c.panel())}, true
}

// spread are count values around one, as far as factor below and above it, and it itself.
func spread(now, factor float64, count int) []float64 {
	xs := make([]float64, 0, count)
	for i := range count {
		xs = append(xs, now*math.Pow(factor, float64(2*i-count+1)/float64(count-1)))
	}
	return xs
}

// within keeps values in a range; counts are whole, and none comes twice.
func within(xs []float64, low, high float64, whole bool) (out []float64) {
	for _, x := range xs {
		if whole {
			x = math.Round(x)
		}
		x = min(max(x, low), high)
		if len(out) == 0 || x > out[len(out)-1] {
			out = append(out, x)
		}
	}
	return out
}

// curvesOf are the curves of an answer, none of them begun.
func curvesOf(q Question, a found) (curves []*curve) {
	terms := layout.Claimed(a.Cost.Statement())
	add := func(c *curve) {
		c.id, c.terms = fmt.Sprintf("curve-%d", len(curves)+1), terms
		curves = append(curves, c)
	}
	// over is a curve of epsilon over a flag.
	over := func(q Question, name, title string, now, factor, low, high float64, whole bool) *curve {
		return &curve{over: "Epsilon by " + title, of: "epsilon", by: title, now: now, xs: within(spread(now, factor, 25), low, high, whole),
			at: func(x float64) []float64 { return epsilons(q.with(name, number(x))) }}
	}
	switch q.Command {
	case "dpsgd", "calibrate":
		noise, rate, steps := a.Own["noise"].(float64), a.Own["rate"].(float64), a.Own["steps"].(int64)
		if steps == 0 || rate == 0 {
			return nil
		}
		base := Question{Command: "dpsgd"}
		for _, f := range q.Flags {
			if f[0] != "epsilon" {
				base = base.with(f[0], f[1])
			}
		}
		base = base.with("noise", flagValue(noise)).with("rate", flagValue(rate)).with("steps", flagValue(steps))
		add(over(base, "noise", "noise S", noise, 3, 0, math.Inf(1), false))
		add(over(base, "steps", "steps", float64(steps), 16, 1, 1e15, true))
		add(over(base, "rate", "rate", rate, 16, 0, 1, false))
	case "metric":
		add(over(q, "noise-multiplier", "noise multiplier", a.Own["noise_multiplier"].(float64), 4, 0, math.Inf(1), false))
		if n := a.Own["releases"].(int64); n > 0 {
			add(over(q, "releases", "releases", float64(n), 8, 1, 1e15, true))
		}
		if a.Cost.Radius > 0 {
			add(distanceCurve(q, a))
		}
	case "tuning":
		for _, c := range tuningCurves(q, over) {
			c.against = "one run alone"
			add(c)
		}
	case "silo":
		for _, c := range siloCurves(q, a) {
			add(c)
		}
	}
	return curves
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// epsilons are a question's epsilon and, where it has one, that of one run alone.
func epsilons(q Question) []float64 {
	a, err := q.ask()
	if err != nil {
		return nil
	}
	if base, ok := a.Own["base_epsilon"].(event.Number); ok {
		return []float64{a.Cost.Epsilon, float64(base)}
	}
	return []float64{a.Cost.Epsilon}
}

func distanceCurve(q Question, a found) *curve {
	now, _ := a.Own["distance"].(float64)
	c := &curve{over: "Epsilon by distance", of: "epsilon", by: "distance between two points", now: now, linear: true, at: func(x float64) []float64 {
		a, err := q.with("distance", number(x)).ask()
		if err != nil {
			return nil
		}
		return []float64{float64(a.Own["epsilon_at_distance"].(event.Number))}
	}}
	most := 2 * max(a.Cost.Radius, now)
	for i := range 24 {
		c.xs = append(c.xs, most*float64(i+1)/24)
	}
	return c
}

func tuningCurves(q Question, over func(q Question, name, title string, now, factor, low, high float64, whole bool) *curve) []*curve {
	v := values{given: map[string]string{}}
	for _, f := range q.Flags {
		v.given[f[0]] = f[1]
	}
	noise, mean := v.number("noise", 1), v.number("mean-trials", 1)
	curves := []*curve{over(q, "noise", "noise S", noise, 3, 0, math.Inf(1), false)}
	if n := v.whole("trials", 0); n > 0 {
		return append(curves, over(q, "trials", "trials", float64(n), 8, 1, 1e6, true))
	}
	curves = append(curves, over(q, "mean-trials", "mean number of trials", mean, 8, 1, 1e6, false))
	if v.word("distribution", "") == event.PoissonTrials { // at a large epsilon a point takes a second
		curves[0].xs, curves[1].xs = spread(noise, 2, 9), within(spread(mean, 8, 9), 1, 1e6, false)
	}
	return curves
}

// siloCurves are the first silo's noise over its target and over its size.
func siloCurves(q Question, a found) []*curve {
	first := a.silos[0].Plan
	method := account.MethodBest
	for _, f := range q.Flags {
		if f[0] == "accountant" {
			method = account.Method(f[1])
		}
	}
	noise := func(title string, now, factor, low float64, whole bool, change func(p *account.SiloPlan, x float64)) *curve {
		return &curve{over: fmt.Sprintf("Noise of %s by %s", first.Name, title), of: "noise S", by: title, now: now,
			xs: within(spread(now, factor, 13), low, 1e15, whole), at: func(x float64) []float64 {
				p := first
				change(&p, x)
				silos, _, err := account.PlanSilos(method, p)
				if err != nil {
					return nil
				}
				return []float64{silos[0].Training.Noise}
			}}
	}
	return []*curve{
		noise("its target epsilon", first.Epsilon, 4, 0, false, func(p *account.SiloPlan, x float64) { p.Epsilon = x }),
		noise("its examples", float64(first.Examples), 8, float64(first.Batch), true, func(p *account.SiloPlan, x float64) { p.Examples = int64(x) }),
	}
}

// pictureTemplate is one curve with its terms and legend.
var pictureTemplate = layout.Parse(`{{template "panel" .}}{{template "legend" .Legend}}`)

// picture is what the template shows.
type picture struct {
	Name, Terms string
	Unseen      bool
	Chart       template.HTML
	Legend      []chart.LegendEntry
}

// panel draws the curve, or says that there is nothing to draw.
func (c *curve) panel() template.HTML {
	view := picture{Name: c.over, Terms: c.terms}
	x, y := chart.NoDomain(), chart.NoDomain()
	for _, line := range c.points {
		for _, p := range line {
			x, y = x.Include(p.X), y.Include(p.Y)
		}
	}
	if x.Empty() || !(x.Lo < x.Hi) {
		return template.HTML(`<p class="missing">` + template.HTMLEscapeString(c.over) + `: there is nothing to draw.</p>`)
	}
	view.Chart = c.draw(x, y)
	if c.against != "" && len(c.points) > 1 {
		view.Legend = []chart.LegendEntry{
			chart.Entry("with tuning", func(k *chart.Canvas) { k.Line("curve own", 1, 9, 29, 9) }),
			chart.Entry(c.against, func(k *chart.Canvas) { k.Line("curve other", 1, 9, 29, 9) }),
		}
	}
	var out strings.Builder
	if err := layout.Write(&out, pictureTemplate, view); err != nil {
		return template.HTML(`<p class="missing">` + template.HTMLEscapeString(err.Error()) + `</p>`)
	}
	return template.HTML(out.String())
}

func (c *curve) draw(x, y chart.Domain) template.HTML {
	var out chart.Canvas
	kind := chart.Log
	if c.linear {
		kind, x.Lo, y.Lo = chart.Real, 0, 0
	} else {
		y = chart.Domain{Lo: y.Lo / 1.15, Hi: y.Hi * 1.15}
	}
	ax := chart.NewAxis(x, kind, chart.PlotLeft, chart.PlotRight, 4)
	ay := chart.NewAxis(y, kind, chart.PlotBottom, chart.PlotTop, 5)
	out.Frame(ax, ay, c.by, c.of)
	for i := len(c.points) - 1; i > 0; i-- {
		out.Path("curve other", chart.Polyline(c.points[i], ax, ay))
	}
	out.Path("curve own", chart.Polyline(c.points[0], ax, ay))
	words := ""
	for _, p := range c.points[0] {
		if p.X == c.now {
			out.Circle("returned", ax.At(p.X), ay.At(p.Y), 5)
			words = fmt.Sprintf(" The answer is marked: %s at %s.", prose.Cost(p.Y), prose.Rounded(p.X))
		}
	}
	first, last := c.points[0][0], c.points[0][len(c.points[0])-1]
	return out.SVG(c.id, fmt.Sprintf("%s (%s)", c.over, c.terms),
		fmt.Sprintf("From %s at %s to %s at %s.%s", prose.Cost(first.Y), prose.Rounded(first.X), prose.Cost(last.Y), prose.Rounded(last.X), words))
}
