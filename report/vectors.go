package report

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/sim"
)

// Limits of what one panel can show.
const (
	mostVectors  = 1500 // released vectors
	mostNumbered = 12   // hypotheses with their number, legend entries, curves
	pathPoints   = 160  // of a hypothesis's way
)

// cloud is what one panel of figure 1 shows in the space of the parameters.
type cloud struct {
	releases   []sim.Release
	hypotheses [][2]float64
	ways       [][]point // of every hypothesis over the rounds
	truth      [][2]float64
	line       bool // one parameter: height has no meaning
}

// early shows the first rounds: from where the hypotheses start.
func early(r sim.Result) cloud {
	return newCloud(r, r.History.Early, r.History.Start)
}

// late shows the last rounds, the models that are returned, and the way to them.
func late(r sim.Result) cloud {
	c := newCloud(r, r.History.Late, r.History.Returned)
	c.ways = ways(r)
	return c
}

func newCloud(r sim.Result, releases []sim.Release, hypotheses [][]float64) cloud {
	c := cloud{line: r.Parameters == 1}
	for _, v := range releases {
		if drawable(v.At[0]) && drawable(v.At[1]) {
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
		if len(v) == 0 || !drawable(out[i][0]) || !drawable(out[i][1]) {
			out[i] = [2]float64{math.NaN(), math.NaN()}
		}
	}
	return out
}

func ways(r sim.Result) [][]point {
	if r.Parameters == 1 || len(r.History.Returned) > mostNumbered {
		return nil
	}
	out := make([][]point, len(r.History.Start))
	for j, at := range firstTwo(r.History.Start) {
		if drawable(at[0]) {
			out[j] = append(out[j], point{at[0], at[1]})
		}
	}
	stride := len(r.History.Rounds)/pathPoints + 1
	for i, record := range r.History.Rounds {
		if i%stride != 0 && i != len(r.History.Rounds)-1 {
			continue
		}
		for j, at := range record.Hypotheses {
			if j < len(out) && drawable(at[0]) && drawable(at[1]) {
				out[j] = append(out[j], point{at[0], at[1]})
			}
		}
	}
	return out
}

// domains are what the cloud needs of both axes.
func (c cloud) domains() (x, y domain) {
	x, y = noDomain(), noDomain()
	add := func(at [2]float64) { x, y = x.include(at[0]), y.include(at[1]) }
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
			add([2]float64{p.x, p.y})
		}
	}
	return x, y
}

// space is the frame of a panel: both axes in the same scale if that leaves
// room, because distances are what privacy is measured in.
func space(x, y domain, line bool) (ax, ay axis) {
	x, y = x.wide().padded(0.09), y.wide().padded(0.09)
	if line {
		y = domain{-0.25, 1}
	} else if ratio := (x.span() / y.span()) / ((plotRight - plotLeft) / float64(plotBottom-plotTop)); ratio > 1.0/6 && ratio < 6 {
		x, y = x.padded(max(0, (1/ratio-1)/2)), y.padded(max(0, (ratio-1)/2))
	}
	return newAxis(x, realAxis, plotLeft, plotRight, 6), newAxis(y, realAxis, plotBottom, plotTop, 6)
}

// draw makes one panel of figure 1.
func (c cloud) draw(id, title string, x, y domain) template.HTML {
	ax, ay := space(x, y, c.line)
	var out canvas
	if c.line {
		ay.ticks = nil
		out.frame(ax, ay, "the only parameter", "")
		out.line("axis", plotLeft, ay.at(0), plotRight, ay.at(0))
	} else {
		out.frame(ax, ay, "first parameter", "second parameter")
	}
	for j, way := range c.ways {
		var d strings.Builder
		polyline(&d, way, ax, ay)
		out.path("way "+colourClass(j), d.String())
	}
	c.drawReleases(&out, ax, ay)
	for _, at := range c.truth {
		if drawable(at[0]) {
			out.truthMark(ax.at(at[0]), ay.at(at[1]))
		}
	}
	rings := make([]point, len(c.hypotheses))
	for j, at := range c.hypotheses {
		rings[j] = point{ax.at(at[0]), ay.at(at[1])}
	}
	out.hypothesisMarks(rings)
	return out.svg(id, title, c.describe())
}

// drawReleases makes one path of every cluster's vectors.
func (c cloud) drawReleases(out *canvas, ax, ay axis) {
	places := make([]point, len(c.releases))
	for i, v := range c.releases {
		places[i] = point{v.At[0], v.At[1]}
	}
	size := 3.2
	if len(places) > 400 {
		size = 2.4
	}
	paths := make(map[int]*strings.Builder)
	for _, i := range thinCloud(places, mostVectors) {
		cluster := c.releases[i].Cluster
		if paths[cluster] == nil {
			paths[cluster] = new(strings.Builder)
		}
		markPath(paths[cluster], cluster, ax.at(places[i].x), ay.at(places[i].y), size)
	}
	for _, j := range slices.Sorted(maps.Keys(paths)) {
		out.path("release "+colourClass(j), paths[j].String())
	}
}

func (c cloud) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", counted(len(c.releases), "released vector", "released vectors"))
	if len(c.releases) > mostVectors {
		fmt.Fprintf(&b, ", of which about %s are drawn", count(mostVectors))
	}
	b.WriteString(".")
	place := func(name string, at [2]float64) {
		switch {
		case !drawable(at[0]):
			fmt.Fprintf(&b, " %s cannot be drawn.", name)
		case c.line:
			fmt.Fprintf(&b, " %s at %s.", name, rounded(at[0]))
		default:
			fmt.Fprintf(&b, " %s at (%s, %s).", name, rounded(at[0]), rounded(at[1]))
		}
	}
	for j, at := range c.hypotheses[:min(len(c.hypotheses), mostNumbered)] {
		place(fmt.Sprintf("Hypothesis %d", j+1), at)
	}
	for g, at := range c.truth[:min(len(c.truth), mostNumbered)] {
		place(fmt.Sprintf("True parameters of group %d", g+1), at)
	}
	return b.String()
}

func polyline(d *strings.Builder, points []point, ax, ay axis) {
	for i, p := range points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		d.WriteString(command + coordinate(ax.at(p.x)) + " " + coordinate(ay.at(p.y)))
	}
}
