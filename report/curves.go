package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/sim"
)

const curveColumns = plotRight - plotLeft

// losses are the validation losses that can be drawn, by round.
func losses(r sim.Result) []point {
	var out []point
	for _, record := range r.History.Rounds {
		if v := float64(record.ValidationLoss); drawable(v) && record.Round >= 0 {
			out = append(out, point{float64(record.Round), v})
		}
	}
	return out
}

func extent(points []point) (x, y domain) {
	x, y = noDomain(), noDomain()
	for _, p := range points {
		x, y = x.include(p.x), y.include(p.y)
	}
	return x, y
}

// lossPanels are the third panels of figure 1, one a result: its own loss, and
// the others' behind it where they fit one frame.
func lossPanels(methods []method, results []sim.Result) (panels []template.HTML, same bool) {
	lines := make([][]point, len(results))
	xs, ys := make([]domain, len(results)), make([]domain, len(results))
	for i, r := range results {
		lines[i] = losses(r)
		xs[i], ys[i] = extent(lines[i])
	}
	xs, sameX := shared(xs, 6)
	ys, sameY := shared(ys, 30)
	same = sameX && sameY && sameLossKind(results)
	for i, r := range results {
		others := lines
		if !same {
			others = lines[i : i+1]
		}
		panels = append(panels, lossPanel(fmt.Sprintf("loss-%d", i+1), methods[i].Label, r, lines[i], others, xs[i], ys[i]))
	}
	return panels, same
}

func lossPanel(id, label string, r sim.Result, own []point, all [][]point, x, y domain) template.HTML {
	var out canvas
	kind := realAxis
	switch {
	case y.lo > 1e-290 && y.hi > 100*y.lo:
		kind, y = logAxis, domain{y.lo / 1.2, y.hi * 1.2}
	case y.lo > 0 && y.lo < 0.6*y.hi:
		y = domain{0, y.hi * 1.05}
	default:
		y = y.wide().padded(0.08)
	}
	x = x.wide()
	if x.lo >= 0 {
		x.lo = 0
	}
	ax := newAxis(x, wholeAxis, plotLeft, plotRight, 6)
	ay := newAxis(y, kind, plotBottom, plotTop, 5)
	title := lossUnit(r)
	if kind == logAxis {
		title += " (log scale)"
	}
	out.frame(ax, ay, "round", title)
	curve := func(class string, points []point) {
		var d strings.Builder
		polyline(&d, thinLine(points, curveColumns), ax, ay)
		out.path(class, d.String())
	}
	for _, points := range all {
		if len(own) == 0 || len(points) == 0 || &points[0] != &own[0] {
			curve("curve other", points)
		}
	}
	curve("curve own", own)
	if len(own) == 1 {
		out.circle("own-dot", ax.at(own[0].x), ay.at(own[0].y), 3)
	}
	if p, ok := returnedPoint(r, own); ok {
		out.circle("returned", ax.at(p.x), ay.at(p.y), 5)
	}
	return out.svg(id, label+": validation loss per round", describeLoss(r, own))
}

// returnedPoint is the loss of the round whose models are returned, if that
// round was recorded.
func returnedPoint(r sim.Result, own []point) (point, bool) {
	for _, p := range own {
		if int(p.x) == returnedRound(r) {
			return p, true
		}
	}
	return point{}, false
}

func returnedRound(r sim.Result) int {
	if r.Returned == "best" {
		return r.BestRound
	}
	return r.Rounds
}

func describeLoss(r sim.Result, own []point) string {
	if len(own) == 0 {
		return "No loss was recorded."
	}
	first, last := own[0], own[len(own)-1]
	return fmt.Sprintf("From %s in round %s to %s in round %s. Of the returned models: %s.",
		rounded(first.y), count(int(first.x)), rounded(last.y), count(int(last.x)), rounded(float64(r.Metrics.ValidationLoss)))
}

// leakage is one cluster's largest total epsilon, by round.
type leakage struct {
	cluster int
	points  []point
}

// leakages are the curves of figure 2: at most mostNumbered, those that end
// highest. Without noise there are none.
func leakages(r sim.Result) (curves []leakage, left int) {
	byCluster := map[int]*leakage{}
	for _, record := range r.History.Rounds {
		for j, e := range record.MaxLeakage {
			v := float64(e)
			if !drawable(v) || v < 0 || record.Round < 0 {
				continue
			}
			if byCluster[j] == nil {
				byCluster[j] = &leakage{cluster: j}
			}
			byCluster[j].points = append(byCluster[j].points, point{float64(record.Round), v})
		}
	}
	for _, c := range byCluster {
		curves = append(curves, *c)
	}
	end := func(l leakage) float64 { return l.points[len(l.points)-1].y }
	slices.SortFunc(curves, func(a, b leakage) int {
		if end(a) != end(b) {
			if end(a) > end(b) {
				return -1
			}
			return 1
		}
		return a.cluster - b.cluster
	})
	left = max(0, len(curves)-mostNumbered)
	curves = curves[:len(curves)-left]
	slices.SortFunc(curves, func(a, b leakage) int { return a.cluster - b.cluster })
	return curves, left
}

func leakagePanel(id, label string, r sim.Result, curves []leakage, x, y domain) template.HTML {
	var out canvas
	ax := newAxis(domain{0, max(1, x.hi)}, wholeAxis, plotLeft, plotRight, 6)
	ay := newAxis(domain{0, y.hi * 1.06}, realAxis, plotBottom, plotTop, 5)
	out.frame(ax, ay, "round", "largest total ("+epsilonUnit(r)+")")
	for i, c := range curves {
		out.path("curve "+colourClass(c.cluster)+" "+dashClass(c.cluster), steps(c.points, ax, ay))
		// Marks are staggered: curves that coincide still show both shapes.
		var marks strings.Builder
		markEvery(&marks, c, i, len(curves), ax, ay)
		out.path("mark "+colourClass(c.cluster), marks.String())
	}
	return out.svg(id, label+": largest total epsilon per cluster and round", describeLeakage(curves))
}

// steps draws a quantity that jumps when it changes.
func steps(points []point, ax, ay axis) string {
	var d strings.Builder
	points = thinLine(points, curveColumns)
	if len(points) == 0 {
		return ""
	}
	fmt.Fprintf(&d, "M%s %s", coordinate(ax.at(0)), coordinate(ay.at(0)))
	for i, p := range points {
		d.WriteString("H" + coordinate(ax.at(p.x)))
		if i == 0 || p.y != points[i-1].y {
			d.WriteString("V" + coordinate(ay.at(p.y)))
		}
	}
	return d.String()
}

func markEvery(b *strings.Builder, c leakage, i, curves int, ax, ay axis) {
	const marks = 5
	for m := range marks {
		share := (float64(m) + (float64(i)+0.5)/float64(curves)) / marks
		p := c.points[min(len(c.points)-1, int(share*float64(len(c.points))))]
		markPath(b, c.cluster, ax.at(p.x), ay.at(p.y), 3.4)
	}
}

func describeLeakage(curves []leakage) string {
	var b strings.Builder
	for _, c := range curves {
		last := c.points[len(c.points)-1]
		fmt.Fprintf(&b, "Cluster %d ends at %s in round %s. ", c.cluster+1, cost(last.y), count(int(last.x)))
	}
	return strings.TrimSpace(b.String())
}
