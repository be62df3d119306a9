package report

import (
	"encoding/xml"
	"fmt"
	"html/template"
	"strconv"
	"strings"
)

// All charts have one size, so that type has the same size everywhere: about one
// unit is one pixel both on a telephone and in three columns on a desk.
const (
	chartWidth  = 360
	chartHeight = 300
	plotLeft    = 50
	plotRight   = chartWidth - 14
	plotTop     = 34
	plotBottom  = chartHeight - 46
)

// canvas collects the elements of one SVG.
type canvas struct{ b strings.Builder }

// coordinate writes a position: a tenth of a unit is finer than any screen.
func coordinate(v float64) string {
	s := trimZeros(strconv.FormatFloat(v, 'f', 1, 64))
	if s == "-0" {
		return "0"
	}
	return s
}

// escaped makes text safe in SVG; what XML cannot hold is replaced.
func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String()
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`,
		class, coordinate(x1), coordinate(y1), coordinate(x2), coordinate(y2))
}

func (c *canvas) path(class, d string) {
	if d != "" {
		fmt.Fprintf(&c.b, `<path class="%s" d="%s"/>`, class, d)
	}
}

func (c *canvas) rect(class string, x, y, w, h float64) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`,
		class, coordinate(x), coordinate(y), coordinate(w), coordinate(h))
}

func (c *canvas) circle(class string, x, y, r float64) {
	fmt.Fprintf(&c.b, `<circle class="%s" cx="%s" cy="%s" r="%s"/>`, class, coordinate(x), coordinate(y), coordinate(r))
}

// text is anchored at its start, middle or end.
func (c *canvas) text(class, anchor string, x, y float64, s string) {
	fmt.Fprintf(&c.b, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`,
		class, anchor, coordinate(x), coordinate(y), escaped(s))
}

// frame draws a light grid, tick labels and titles: that of y stands above its
// axis, where it can be read without turning the head.
func (c *canvas) frame(x, y axis, xTitle, yTitle string) {
	for i, t := range y.ticks {
		p := y.at(t)
		c.line("grid", plotLeft, p, plotRight, p)
		c.text("tick", "end", plotLeft-7, p+4, y.labels[i])
	}
	for i, t := range x.ticks {
		p := x.at(t)
		c.line("grid", p, plotTop, p, plotBottom)
		c.text("tick", "middle", p, plotBottom+17, x.labels[i])
	}
	c.line("axis", plotLeft, plotBottom, plotRight, plotBottom)
	c.line("axis", plotLeft, plotTop, plotLeft, plotBottom)
	if yTitle != "" {
		c.text("title", "start", 4, 15, y.titled(yTitle))
	}
	c.text("title", "end", plotRight, chartHeight-8, x.titled(xTitle))
}

// svg closes the drawing. id must be its own on the page: it ties title and
// description to the picture.
func (c *canvas) svg(id, title, description string) template.HTML {
	return template.HTML(fmt.Sprintf(
		`<svg class="chart" viewBox="0 0 %d %d" role="img" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>%s</svg>`,
		chartWidth, chartHeight, id, id, id, escaped(title), id, escaped(description), c.b.String()))
}

// key is a small picture in a legend; the words beside it say what it means.
func (c *canvas) key() template.HTML {
	return template.HTML(`<svg class="key" viewBox="0 0 30 18" aria-hidden="true" focusable="false">` + c.b.String() + `</svg>`)
}
