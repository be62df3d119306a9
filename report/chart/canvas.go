// Package chart draws axes, curves and marks as SVG.
package chart

import (
	"encoding/xml"
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"unicode/utf8"
)

// All charts have one size, so that type has the same size everywhere: about one
// unit is one pixel both on a telephone and in three columns on a desk.
const (
	Width      = 360
	Height     = 300
	PlotLeft   = 50
	PlotRight  = Width - 14
	PlotTop    = 34
	PlotBottom = Height - 46
)

// Canvas collects the elements of one SVG.
type Canvas struct{ b strings.Builder }

// Coordinate writes a position: a tenth of a unit is finer than any screen.
func Coordinate(v float64) string {
	s := strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
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

// Line joins two places.
func (c *Canvas) Line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`,
		class, Coordinate(x1), Coordinate(y1), Coordinate(x2), Coordinate(y2))
}

// Path draws what the d of an SVG path says, if anything.
func (c *Canvas) Path(class, d string) {
	if d != "" {
		fmt.Fprintf(&c.b, `<path class="%s" d="%s"/>`, class, d)
	}
}

// Rect is a box by its upper left corner and size.
func (c *Canvas) Rect(class string, x, y, w, h float64) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`,
		class, Coordinate(x), Coordinate(y), Coordinate(w), Coordinate(h))
}

// Circle has a middle and a radius.
func (c *Canvas) Circle(class string, x, y, r float64) {
	fmt.Fprintf(&c.b, `<circle class="%s" cx="%s" cy="%s" r="%s"/>`, class, Coordinate(x), Coordinate(y), Coordinate(r))
}

// Text is anchored at its start, middle or end.
func (c *Canvas) Text(class, anchor string, x, y float64, s string) {
	fmt.Fprintf(&c.b, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`,
		class, anchor, Coordinate(x), Coordinate(y), escaped(s))
}

// Frame draws a light grid, tick labels and titles: that of y stands above its
// axis, where it can be read without turning the head.
func (c *Canvas) Frame(x, y Axis, xTitle, yTitle string) {
	for i, t := range y.Ticks {
		p := y.At(t)
		c.Line("grid", PlotLeft, p, PlotRight, p)
		c.Text("tick", "end", PlotLeft-7, p+4, y.Labels[i])
	}
	for i, t := range x.Ticks {
		p := x.At(t)
		c.Line("grid", p, PlotTop, p, PlotBottom)
		c.Text("tick", "middle", p, PlotBottom+17, x.Labels[i])
	}
	c.Line("axis", PlotLeft, PlotBottom, PlotRight, PlotBottom)
	c.Line("axis", PlotLeft, PlotTop, PlotLeft, PlotBottom)
	if yTitle != "" {
		c.title("start", 4, 15, 24, y.titled(yTitle))
	}
	c.title("end", PlotRight, Height-8, Height-3, x.titled(xTitle))
}

// A title's letters are about so wide at most, and the frame has room for so many in a line.
const (
	letterWidth  = 6.6
	titleLetters = 52
)

// title writes an axis title whole: on one line at y, or on two of which the second is at
// last. What is longer still is squeezed.
func (c *Canvas) title(anchor string, x, y, last float64, words string) {
	lines := broken(words)
	if len(lines) == 1 {
		last = y
	}
	for i, line := range lines {
		at := last - 13*float64(len(lines)-1-i)
		if utf8.RuneCountInString(line) <= titleLetters {
			c.Text("title", anchor, x, at, line)
			continue
		}
		fmt.Fprintf(&c.b, `<text class="title" text-anchor="%s" x="%s" y="%s" textLength="%d" lengthAdjust="spacingAndGlyphs">%s</text>`,
			anchor, Coordinate(x), Coordinate(at), PlotRight-4, escaped(line))
	}
}

// broken is words on one line, or on two that are about as long, if one is too short.
func broken(words string) []string {
	if utf8.RuneCountInString(words) <= titleLetters {
		return []string{words}
	}
	best, longest := 0, len(words)
	for i, r := range words {
		if r == ' ' {
			if rest := max(i, len(words)-i-1); rest < longest {
				best, longest = i, rest
			}
		}
	}
	if best == 0 {
		return []string{words}
	}
	return []string{words[:best], words[best+1:]}
}

// Elements are what was drawn, without the SVG around it.
func (c *Canvas) Elements() string { return c.b.String() }

// SVG closes the drawing. id must be its own on the page: it ties title and
// description to the picture.
func (c *Canvas) SVG(id, title, description string) template.HTML {
	return template.HTML(fmt.Sprintf(
		`<svg class="chart" viewBox="0 0 %d %d" role="img" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>%s</svg>`,
		Width, Height, id, id, id, escaped(title), id, escaped(description), c.Elements()))
}

// LegendEntry is a line of a legend: a small picture and its meaning.
type LegendEntry struct {
	Key  template.HTML
	Text string
}

// Entry is a line of a legend with what draw makes; the words say what it means.
func Entry(text string, draw func(c *Canvas)) LegendEntry {
	var c Canvas
	draw(&c)
	return LegendEntry{template.HTML(`<svg class="key" viewBox="0 0 30 18" aria-hidden="true" focusable="false">` + c.Elements() + `</svg>`), text}
}
