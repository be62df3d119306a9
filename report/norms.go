package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// normsOf are the norms of examples' gradients in one round.
type normsOf struct {
	when   string // first, middle or last
	round  int
	shares []float64 // of the round's examples, by bin
	clip   float64
}

// normsByStage are the first, the middle and the last of a run's rounds in which examples
// were drawn, as far as there are so many.
func normsByStage(r run) (out []normsOf) {
	rounds := slices.DeleteFunc(slices.Clone(r.History.Rounds), func(c sim.RoundRecord) bool {
		return c.Steps == nil || counts(c.Steps.Norms) <= 0
	})
	if len(rounds) == 0 {
		return nil
	}
	for i, at := range []int{0, (len(rounds) - 1) / 2, len(rounds) - 1} {
		if len(out) > 0 && rounds[at].Round == out[len(out)-1].round {
			continue
		}
		s := rounds[at].Steps
		one := normsOf{when: stages[i], round: rounds[at].Round, shares: make([]float64, sim.NormBins), clip: float64(s.Clip)}
		total := counts(s.Norms)
		for j, n := range s.Norms[:min(len(s.Norms), sim.NormBins)] {
			one.shares[j] = math.Max(0, float64(n)) / total
		}
		out = append(out, one)
	}
	return out
}

// counts adds up what can be counted: a damaged result may hold anything.
func counts(norms []int) (total float64) {
	for _, n := range norms[:min(len(norms), sim.NormBins)] {
		total += math.Max(0, float64(n))
	}
	return total
}

// leastShare is what a bin needs to be drawn at either end of the norms: single examples
// far away would leave no room for the others.
const leastShare = 0.001

// stages are the rounds whose norms are drawn.
var stages = []string{"first", "middle", "last"}

// stageClasses are the styles of the first, middle and last round: they differ in colour
// and in dash.
var stageClasses = map[string]string{"first": "s3 d2", "middle": "s2 d1", "last": "s4"}

// normsPanel draws the norms of the first, the middle and the last round over each other,
// each with the clip that the round ended with.
func normsPanel(id string, r run) (panel, bool) {
	drawn := normsByStage(r)
	if len(drawn) == 0 {
		return panel{}, false
	}
	first, last, highest := sim.NormBins, 0, 0.0
	for _, s := range drawn {
		for i, share := range s.shares {
			if share >= leastShare {
				first, last = min(first, i), max(last, i)
			}
			highest = max(highest, share)
		}
	}
	x := chart.Domain{Lo: sim.NormEdge(first), Hi: sim.NormEdge(last + 1)}
	for _, s := range drawn {
		if s.clip > x.Lo/1e3 && s.clip < x.Hi*1e3 { // farther away it would squeeze the rest
			x = x.Include(s.clip / 1.5).Include(s.clip * 1.5)
		}
	}
	const marks = 46 // room above for the names of the clips
	ax := chart.NewAxis(x, chart.Log, chart.PlotLeft, chart.PlotRight, 6)
	ay := chart.NewAxis(chart.Domain{Lo: 0, Hi: highest}, chart.Real, chart.PlotBottom, chart.PlotTop+marks, 5)
	var out chart.Canvas
	out.Frame(ax, ay, "norm of an example’s gradient (log scale)", "share of the round’s examples")
	for i, s := range drawn {
		edge := outline(s.shares, first, last, ax, ay)
		if i == len(drawn)-1 {
			out.Path("area "+stageClasses[s.when], edge+"z")
		}
		out.Path("curve "+stageClasses[s.when], edge)
	}
	drawClips(&out, drawn, ax)
	return panel{Name: "Norms of gradients", Unseen: true, Chart: out.SVG(id, r.label+": norms of the examples' gradients", describeNorms(drawn))}, true
}

// drawClips marks where the clips are: one that stayed where it was has one mark.
func drawClips(out *chart.Canvas, drawn []normsOf, ax chart.Axis) {
	stayed := !slices.ContainsFunc(drawn, func(s normsOf) bool { return s.clip != drawn[0].clip })
	type mark struct{ at, row float64 }
	marks := map[int]mark{}
	for i, s := range drawn {
		if !(s.clip >= ax.Lo && s.clip <= ax.Hi) || stayed && i > 0 {
			continue
		}
		class := "clip-at " + stageClasses[s.when]
		if stayed {
			class = "clip-at"
		}
		marks[i] = mark{ax.At(s.clip), chart.PlotTop + 9 + 15*float64(i)}
		out.Line(class, marks[i].at, marks[i].row-4, marks[i].at, chart.PlotBottom)
	}
	for i, s := range drawn { // after all lines, which they would be crossed by
		m, ok := marks[i]
		if !ok {
			continue
		}
		name, anchor, shift := s.when+": clip ", "start", 5.0
		if stayed {
			name = "clip "
		}
		if m.at > (chart.PlotLeft+chart.PlotRight)/2 {
			anchor, shift = "end", -5
		}
		out.Text("mark-name", anchor, m.at+shift, m.row, name+prose.Rounded(s.clip))
	}
}

func describeNorms(drawn []normsOf) string {
	var words strings.Builder
	for _, s := range drawn {
		top := slices.Index(s.shares, slices.Max(s.shares))
		fmt.Fprintf(&words, "Round %s, the %s: most gradients, %s of them, are between %s and %s long; the clip is %s. ", prose.Count(s.round), s.when,
			prose.Rounded(s.shares[top]), prose.Rounded(sim.NormEdge(top)), prose.Rounded(sim.NormEdge(top+1)), prose.Rounded(s.clip))
	}
	return strings.TrimSpace(words.String())
}

// outline is the upper edge of a histogram's bars, without the empty ones at its ends.
func outline(shares []float64, first, last int, ax, ay chart.Axis) string {
	var d strings.Builder
	ground := chart.Coordinate(ay.At(0))
	for shares[first] == 0 {
		first++
	}
	for shares[last] == 0 {
		last--
	}
	fmt.Fprintf(&d, "M%s %s", chart.Coordinate(ax.At(sim.NormEdge(first))), ground)
	for i := first; i <= last; i++ {
		fmt.Fprintf(&d, "V%sH%s", chart.Coordinate(ay.At(shares[i])), chart.Coordinate(ax.At(sim.NormEdge(i+1))))
	}
	return d.String() + "V" + ground
}
