package report

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// Limits of what one panel can show.
const (
	mostVectors = 1500 // released vectors
	pathPoints  = 160  // of a hypothesis's way
)

// cloud is what one panel of figure 1 shows in the space of the parameters.
type cloud struct {
	releases   []sim.Release
	hypotheses []chart.Point
	ways       [][]chart.Point // of every hypothesis over the rounds
	truth      []chart.Point
	line       bool // one parameter: height has no meaning
}

// clouds are those of the first rounds, from where the hypotheses start, and of the last,
// with the models that are returned and the way to them.
func clouds(r run) [2]cloud {
	early, late := newCloud(r, r.History.Early, r.History.Start), newCloud(r, r.History.Late, r.History.Returned)
	late.ways = ways(r)
	return [2]cloud{early, late}
}

func newCloud(r run, releases []sim.Release, hypotheses [][]float64) cloud {
	c := cloud{line: r.Parameters == 1}
	for _, v := range releases {
		if chart.Drawable(v.At[0]) && chart.Drawable(v.At[1]) {
			c.releases = append(c.releases, v)
		}
	}
	c.hypotheses, c.truth = firstTwo(hypotheses), firstTwo(r.History.Truth)
	if c.line {
		c.flatten()
	}
	return c
}

// flatten puts hypotheses and truth on a line at height 0 and spreads the
// releases above it, by the golden ratio: even, and the same every time.
func (c *cloud) flatten() {
	for i := range c.hypotheses {
		c.hypotheses[i].Y = 0
	}
	for i := range c.truth {
		c.truth[i].Y = 0
	}
	for i := range c.releases {
		_, height := math.Modf(float64(i) * math.Phi)
		c.releases[i].At[1] = 0.2 + 0.7*height
	}
}

// firstTwo are the coordinates that are drawn. Points that have no place on an
// axis come back as NaN, so that the others keep their numbers.
func firstTwo(vectors [][]float64) []chart.Point {
	out := make([]chart.Point, len(vectors))
	for i, v := range vectors {
		var at [2]float64
		if copy(at[:], v); len(v) == 0 || !chart.Drawable(at[0]) || !chart.Drawable(at[1]) {
			at = [2]float64{math.NaN(), math.NaN()}
		}
		out[i] = chart.Point{X: at[0], Y: at[1]}
	}
	return out
}

func ways(r run) [][]chart.Point {
	if r.Parameters == 1 || len(r.History.Returned) > chart.MostNumbered {
		return nil
	}
	out := make([][]chart.Point, len(r.History.Start))
	for j, at := range firstTwo(r.History.Start) {
		if chart.Drawable(at.X) {
			out[j] = append(out[j], at)
		}
	}
	stride := len(r.History.Rounds)/pathPoints + 1
	for i, record := range r.History.Rounds {
		if i%stride != 0 && i != len(r.History.Rounds)-1 {
			continue
		}
		for j, at := range record.Hypotheses {
			if j < len(out) && chart.Drawable(at[0]) && chart.Drawable(at[1]) {
				out[j] = append(out[j], chart.Point{X: at[0], Y: at[1]})
			}
		}
	}
	return out
}

// domains are what the cloud needs of both axes.
func (c cloud) domains() (x, y chart.Domain) {
	x, y = extent(slices.Concat(slices.Concat(c.ways...), c.hypotheses, c.truth))
	for _, v := range c.releases {
		x, y = x.Include(v.At[0]), y.Include(v.At[1])
	}
	return x, y
}

// space is the frame of a panel: both axes in the same scale if that leaves
// room, because distances are what privacy is measured in.
func space(x, y chart.Domain, line bool) (ax, ay chart.Axis) {
	x, y = x.Wide().Padded(0.09), y.Wide().Padded(0.09)
	if line {
		y = chart.Domain{Lo: -0.25, Hi: 1}
	} else if ratio := (x.Span() / y.Span()) / ((chart.PlotRight - chart.PlotLeft) / float64(chart.PlotBottom-chart.PlotTop)); ratio > 1.0/6 && ratio < 6 {
		x, y = x.Padded(max(0, (1/ratio-1)/2)), y.Padded(max(0, (ratio-1)/2))
	}
	return chart.NewAxis(x, chart.Real, chart.PlotLeft, chart.PlotRight, 6), chart.NewAxis(y, chart.Real, chart.PlotBottom, chart.PlotTop, 6)
}

// draw makes one panel of figure 1.
func (c cloud) draw(id, title string, x, y chart.Domain) template.HTML {
	ax, ay := space(x, y, c.line)
	var out chart.Canvas
	if c.line {
		ay.Ticks = nil
		out.Frame(ax, ay, "the only parameter", "")
		out.Line("axis", chart.PlotLeft, ay.At(0), chart.PlotRight, ay.At(0))
	} else {
		out.Frame(ax, ay, "first parameter", "second parameter")
	}
	for j, way := range c.ways {
		out.Path("way "+chart.ColourClass(j), chart.Polyline(way, ax, ay))
	}
	c.drawReleases(&out, ax, ay)
	for _, at := range c.truth {
		if chart.Drawable(at.X) {
			out.TruthMark(ax.At(at.X), ay.At(at.Y))
		}
	}
	rings := make([]chart.Point, len(c.hypotheses))
	for j, at := range c.hypotheses {
		rings[j] = chart.Place(at, ax, ay)
	}
	out.HypothesisMarks(rings)
	return out.SVG(id, title, c.describe())
}

// drawReleases makes one path of every cluster's vectors.
func (c cloud) drawReleases(out *chart.Canvas, ax, ay chart.Axis) {
	places := make([]chart.Point, len(c.releases))
	for i, v := range c.releases {
		places[i] = chart.Point{X: v.At[0], Y: v.At[1]}
	}
	size := 3.2
	if len(places) > 400 {
		size = 2.4
	}
	marks := map[int][]chart.Point{}
	for _, i := range chart.ThinCloud(places, mostVectors) {
		cluster := c.releases[i].Cluster
		marks[cluster] = append(marks[cluster], chart.Place(places[i], ax, ay))
	}
	for _, j := range slices.Sorted(maps.Keys(marks)) {
		out.Marks("release "+chart.ColourClass(j), j, size, marks[j]...)
	}
}

func (c cloud) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", prose.Counted(len(c.releases), "released vector", "released vectors"))
	if len(c.releases) > mostVectors {
		fmt.Fprintf(&b, ", of which about %s are drawn", prose.Count(mostVectors))
	}
	b.WriteString(".")
	place := func(name string, at chart.Point) {
		switch {
		case !chart.Drawable(at.X):
			fmt.Fprintf(&b, " %s cannot be drawn.", name)
		case c.line:
			fmt.Fprintf(&b, " %s at %s.", name, prose.Rounded(at.X))
		default:
			fmt.Fprintf(&b, " %s at (%s, %s).", name, prose.Rounded(at.X), prose.Rounded(at.Y))
		}
	}
	for j, at := range c.hypotheses[:min(len(c.hypotheses), chart.MostNumbered)] {
		place(fmt.Sprintf("Hypothesis %d", j+1), at)
	}
	for g, at := range c.truth[:min(len(c.truth), chart.MostNumbered)] {
		place(fmt.Sprintf("True parameters of group %d", g+1), at)
	}
	return b.String()
}
