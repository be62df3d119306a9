package report

import (
	"fmt"
	"math"
	"strings"
)

// Clusters differ by colour, by shape and by dash at once, so that they can be
// told apart without colour too. With 8 colours and 6 shapes a pair recurs only
// after 24 clusters.
const (
	colours = 8
	dashes  = 5
)

func colourClass(cluster int) string { return fmt.Sprintf("s%d", modulo(cluster, colours)) }
func dashClass(cluster int) string   { return fmt.Sprintf("d%d", modulo(cluster, dashes)) }

// modulo is never negative: a damaged result must not panic.
func modulo(a, b int) int { return ((a % b) + b) % b }

var markShapes = []func(b *strings.Builder, x, y, r float64){
	circleMark, squareMark, triangleMark, diamondMark, downMark, crossMark,
}

// markPath adds a cluster's shape to a path. Areas are about equal.
func markPath(b *strings.Builder, cluster int, x, y, r float64) {
	markShapes[modulo(cluster, len(markShapes))](b, x, y, r)
}

func circleMark(b *strings.Builder, x, y, r float64) {
	d := coordinate(r)
	fmt.Fprintf(b, "M%s %sa%s %s 0 1 0 %s 0a%s %s 0 1 0 -%s 0z",
		coordinate(x-r), coordinate(y), d, d, coordinate(2*r), d, d, coordinate(2*r))
}

func squareMark(b *strings.Builder, x, y, r float64) {
	h := 0.88 * r
	fmt.Fprintf(b, "M%s %sh%sv%sh-%sz", coordinate(x-h), coordinate(y-h), coordinate(2*h), coordinate(2*h), coordinate(2*h))
}

func triangleMark(b *strings.Builder, x, y, r float64) { polygonMark(b, x, y, 1.3*r, -math.Pi/2, 3) }
func diamondMark(b *strings.Builder, x, y, r float64)  { polygonMark(b, x, y, 1.25*r, 0, 4) }
func downMark(b *strings.Builder, x, y, r float64)     { polygonMark(b, x, y, 1.3*r, math.Pi/2, 3) }

func polygonMark(b *strings.Builder, x, y, r, turn float64, corners int) {
	for i := range corners {
		angle := turn + 2*math.Pi*float64(i)/float64(corners)
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(b, "%s%s %s", command, coordinate(x+r*math.Cos(angle)), coordinate(y+r*math.Sin(angle)))
	}
	b.WriteByte('z')
}

func crossMark(b *strings.Builder, x, y, r float64) {
	long, thin := 1.2*r, 0.42*r
	fmt.Fprintf(b, "M%s %sh%sv%sh%sv%sh%sv%sh%sv%sh%sv%sh%sz",
		coordinate(x-thin), coordinate(y-long), coordinate(2*thin), coordinate(long-thin), coordinate(long-thin),
		coordinate(2*thin), coordinate(thin-long), coordinate(long-thin), coordinate(-2*thin), coordinate(thin-long),
		coordinate(thin-long), coordinate(-2*thin), coordinate(long-thin))
}

// hypothesisMarks are open rings, so that what lies in them is seen, with the
// cluster's number on the side away from the others; small rings where there are
// too many to number. Places that cannot be drawn are NaN.
func (c *canvas) hypothesisMarks(places []point) {
	size := 7.0
	if len(places) > mostNumbered {
		size = 4
	}
	var middle point
	drawn := 0.0
	for j, p := range places {
		if drawable(p.x) {
			c.circle("halo", p.x, p.y, size)
			c.circle("hypothesis "+colourClass(j), p.x, p.y, size)
			drawn++
			middle.x, middle.y = middle.x+p.x, middle.y+p.y
		}
	}
	if len(places) > mostNumbered {
		return
	}
	for j, p := range places {
		if !drawable(p.x) {
			continue
		}
		anchor, x, y := "start", p.x+7.5, p.y-6.5
		if p.x < middle.x/drawn-1 {
			anchor, x = "end", p.x-7.5
		}
		if p.y > middle.y/drawn+1 {
			y = p.y + 14.5
		}
		c.text("number", anchor, x, y, fmt.Sprint(j+1))
	}
}

// truthMark is a dot in a cross of lines with an open middle: a hypothesis that
// has arrived sits in it.
func (c *canvas) truthMark(x, y float64) {
	c.truthCross(x, y, 9, 16)
}

// truthKey is a truthMark that fits a legend.
func (c *canvas) truthKey(x, y float64) { c.truthCross(x, y, 4, 8) }

func (c *canvas) truthCross(x, y float64, inner, outer int) {
	gap := float64(inner)
	d := fmt.Sprintf("M%s %sv-%dM%s %sv%dM%s %sh-%dM%s %sh%d",
		coordinate(x), coordinate(y-gap), outer-inner, coordinate(x), coordinate(y+gap), outer-inner,
		coordinate(x-gap), coordinate(y), outer-inner, coordinate(x+gap), coordinate(y), outer-inner)
	c.path("halo", d)
	c.path("truth", d)
	c.circle("dot", x, y, 2)
}

// markKey is a cluster's shape in a legend.
func (c *canvas) markKey(class string, cluster int, x float64) {
	var d strings.Builder
	markPath(&d, cluster, x, 9, 4)
	c.path(class+" "+colourClass(cluster), d.String())
}
