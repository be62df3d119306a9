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
	hypotheses [][2]float64
	ways       [][]chart.Point // of every hypothesis over the rounds
	truth      [][2]float64
	line       bool // one parameter: height has no meaning
}

// early shows the first rounds: from where the hypotheses start.
func early(r run) cloud {
	return newCloud(r, r.History.Early, r.History.Start)
}

// late shows the last rounds, the models that are returned, and the way to them.
func late(r run) cloud {
	c := newCloud(r, r.History.Late, r.History.Returned)
	c.ways = ways(r)
	return c
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
		c.hypotheses[i][1] = 0
	}
	for i := range c.truth {
		c.truth[i][1] = 0
	}
	for i := range c.releases {
		_, height := math.Modf(float64(i) * math.Phi)
		c.releases[i].At[1] = 0.2 + 0.7*height
	}
}

// firstTwo are the coordinates that are drawn. Points that have no place on an
// axis come back as NaN, so that the others keep their numbers.
func firstTwo(vectors [][]float64) [][2]float64 {
	out := make([][2]float64, len(vectors))
	for i, v := range vectors {
		copy(out[i][:], v)
		if len(v) == 0 || !chart.Drawable(out[i][0]) || !chart.Drawable(out[i][1]) {
			out[i] = [2]float64{math.NaN(), math.NaN()}
		}
	}
	return out
}

func ways(r run) [][]chart.Point {
	if r.Parameters == 1 || len(r.History.Returned) > chart.MostNumbered {
		return nil
	}
	out := make([][]chart.Point, len(r.History.Start))
	for j, at := range firstTwo(r.History.Start) {
		if chart.Drawable(at[0]) {
			out[j] = append(out[j], chart.Point{X: at[0], Y: at[1]})
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
	x, y = chart.NoDomain(), chart.NoDomain()
	add := func(at [2]float64) { x, y = x.Include(at[0]), y.Include(at[1]) }
	for _, v := range c.releases {
		add(v.At)
	}
	for _, at := range c.hypotheses {
		add(at)
	}
	for _, at := range c.truth {
		add(at)
	}
	for _, way := range c.ways {
		for _, p := range way {
			add([2]float64{p.X, p.Y})
		}
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
		var d strings.Builder
		chart.Polyline(&d, way, ax, ay)
		out.Path("way "+chart.ColourClass(j), d.String())
	}
	c.drawReleases(&out, ax, ay)
	for _, at := range c.truth {
		if chart.Drawable(at[0]) {
			out.TruthMark(ax.At(at[0]), ay.At(at[1]))
		}
	}
	rings := make([]chart.Point, len(c.hypotheses))
	for j, at := range c.hypotheses {
		rings[j] = chart.Point{X: ax.At(at[0]), Y: ay.At(at[1])}
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
	paths := make(map[int]*strings.Builder)
	for _, i := range chart.ThinCloud(places, mostVectors) {
		cluster := c.releases[i].Cluster
		if paths[cluster] == nil {
			paths[cluster] = new(strings.Builder)
		}
		chart.MarkPath(paths[cluster], cluster, ax.At(places[i].X), ay.At(places[i].Y), size)
	}
	for _, j := range slices.Sorted(maps.Keys(paths)) {
		out.Path("release "+chart.ColourClass(j), paths[j].String())
	}
}

func (c cloud) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", prose.Counted(len(c.releases), "released vector", "released vectors"))
	if len(c.releases) > mostVectors {
		fmt.Fprintf(&b, ", of which about %s are drawn", prose.Count(mostVectors))
	}
	b.WriteString(".")
	place := func(name string, at [2]float64) {
		switch {
		case !chart.Drawable(at[0]):
			fmt.Fprintf(&b, " %s cannot be drawn.", name)
		case c.line:
			fmt.Fprintf(&b, " %s at %s.", name, prose.Rounded(at[0]))
		default:
			fmt.Fprintf(&b, " %s at (%s, %s).", name, prose.Rounded(at[0]), prose.Rounded(at[1]))
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
