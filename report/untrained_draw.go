package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// rankedPanels draw the average precisions of a model and its rivals, and how far the model
// is ahead of each.
func rankedPanels(id, label string, u *sim.Untrained) []panel {
	rows := rankedRows(u)
	precision := intervalPanel(id+"-precision", label+": average precision of the model and of scores that nobody trained", "average precision", rows,
		func(r rankedRow) *metrics.Figure { return r.precision })
	less := intervalPanel(id+"-less", label+": average precision of the model less that of each score", "average precision, the model less the score", rows[1:],
		func(r rankedRow) *metrics.Figure { return r.less })
	return []panel{{Name: "Average precision", Chart: precision}, {Name: "The model less each score", Chart: less}}
}

// intervalPanel is a line a row: its name, and beneath it the figure with its interval.
func intervalPanel(id, title, axis string, rows []rankedRow, of func(rankedRow) *metrics.Figure) template.HTML {
	across := chart.NoDomain().Include(0)
	for _, r := range rows {
		if f := of(r); f != nil {
			across = across.Include(float64(f.Value))
			if f.Low != nil && f.High != nil {
				across = across.Include(float64(*f.Low)).Include(float64(*f.High))
			}
		}
	}
	lowest := across.Lo
	if across = across.Wide().Padded(0.04); lowest == 0 {
		across.Lo = 0
	}
	ax := chart.NewAxis(across, chart.Real, chart.PlotLeft, chart.PlotRight, 5)
	var c chart.Canvas
	c.Frame(ax, chart.Axis{}, axis, "")
	each := float64(chart.PlotBottom-chart.PlotTop) / float64(max(1, len(rows)))
	var told []string
	for i, r := range rows {
		f := of(r)
		if f == nil {
			continue
		}
		y := chart.PlotTop + (float64(i)+0.7)*each
		c.Line("axis", ax.At(0), y-0.16*each, ax.At(0), y+0.16*each)
		words := fmt.Sprintf("%s: %s", r.name, prose.Rounded(float64(f.Value)))
		if f.Low != nil && f.High != nil {
			c.Line("curve "+chart.ColourClass(r.colour), ax.At(float64(*f.Low)), y, ax.At(float64(*f.High)), y)
			words += fmt.Sprintf(" [%s, %s]", rounded(*f.Low), rounded(*f.High))
		}
		c.Marks("mark "+chart.ColourClass(r.colour), chart.Circle, 4, chart.Point{X: ax.At(float64(f.Value)), Y: y})
		c.Text("mark-name", "start", chart.PlotLeft+4, y-0.28*each, r.name)
		told = append(told, words)
	}
	return c.SVG(id, title, strings.Join(told, "; "))
}
