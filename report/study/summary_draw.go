package study

import (
	"fmt"
	"strings"

	"github.com/coterie-fl/coterie/report/chart"
)

// The drawing's places.
const (
	sumWidth  = 860.0
	sumBars   = 310.0 // where bars begin
	sumRow    = 21.0
	sumCounts = 725.0 // where figures begin
)

// sumClasses are the verdicts' looks: filled, hatched by a border, pale.
var sumClasses = [3]string{"agrees", "differs", "apart"}

const sumStyle = `<style>
svg { background: #ffffff; font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif; }
text { fill: #1c2126; } .soft { fill: #59626c; } .head { font-weight: 650; } .big { font-size: 17px; font-weight: 650; }
.agrees { fill: #0b7a58; } .differs { fill: #d96c00; } .apart { fill: #c9ccd0; } .rule { stroke: #dcddd7; }
</style>`

// Drawing is how many claims of each study agree, differ and cannot be compared, as a bar a
// study, text by text.
func Drawing(records []Record) string {
	var c chart.Canvas
	n := totals(records)
	most := 1
	for _, r := range records {
		t := totals([]Record{r})
		most = max(most, t[0]+t[1]+t[2])
	}
	c.Text("big", "start", 16, 30, fmt.Sprintf("%d claims of the texts: %d agree, %d differ, %d cannot be compared", n[0]+n[1]+n[2], n[0], n[1], n[2]))
	x := 16.0
	for i, words := range []string{"agrees", "differs", "cannot be compared (other data or size, or one seed)"} {
		c.Rect(sumClasses[i], x, 44, 12, 12)
		c.Text("soft", "start", x+18, 54.5, words)
		x += 18 + 7.2*float64(len(words)) + 16
	}
	y := 84.0
	for i, of := range byText(records) {
		if len(of) == 0 {
			continue
		}
		c.Text("head", "start", 16, y, texts[i].name)
		sum := totals(of)
		c.Text("head", "start", sumCounts, y, fmt.Sprintf("%d / %d / %d", sum[0], sum[1], sum[2]))
		c.Line("rule", 16, y+5, sumWidth-16, y+5)
		y += sumRow
		for _, r := range of {
			c.Text("", "start", 28, y, r.ID)
			c.Text("soft", "end", sumBars-12, y, r.Scale)
			left, t := sumBars, totals([]Record{r})
			for v, count := range t {
				width := float64(count) / float64(most) * (sumCounts - sumBars - 20)
				if count > 0 {
					c.Rect(sumClasses[v], left, y-11, max(1, width-1), 14)
				}
				left += width
			}
			c.Text("soft", "start", sumCounts, y, fmt.Sprintf("%d / %d / %d", t[0], t[1], t[2]))
			y += sumRow
		}
		y += 12
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" role="img"><title>Claims of the five texts, study by study</title>%s<rect x="0" y="0" width="%s" height="%s" fill="#ffffff"/>%s</svg>`+"\n",
		chart.Coordinate(sumWidth), chart.Coordinate(y), sumStyle, chart.Coordinate(sumWidth), chart.Coordinate(y), c.Elements())
	return b.String()
}
