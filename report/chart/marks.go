package chart

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

// MostNumbered is how many clusters of a chart have a number, a legend entry or a curve.
const MostNumbered = 12

// ColourClass is a cluster's colour in the style.
func ColourClass(cluster int) string { return fmt.Sprintf("s%d", modulo(cluster, colours)) }

// DashClass is a cluster's dash in the style.
func DashClass(cluster int) string { return fmt.Sprintf("d%d", modulo(cluster, dashes)) }

// modulo is never negative: a damaged result must not panic.
func modulo(a, b int) int { return ((a % b) + b) % b }

var markShapes = []func(b *strings.Builder, x, y, r float64){
	circleMark, squareMark, triangleMark, diamondMark, downMark, crossMark,
}

// Shapes that are asked for by name.
const (
	Circle  = 0
	Diamond = 3
)

// Marks draws a cluster's shape at all places. Areas are about equal.
func (c *Canvas) Marks(class string, cluster int, size float64, places ...Point) {
	var d strings.Builder
	for _, p := range places {
		markShapes[modulo(cluster, len(markShapes))](&d, p.X, p.Y, size)
	}
	c.Path(class, d.String())
}

// Staggered are five of a curve's points, at other places on each of several curves:
// those that coincide still show all their shapes.
func Staggered[P any](points []P, curve, curves int) (out []P) {
	const marks = 5
	for m := range marks {
		share := (float64(m) + (float64(curve)+0.5)/float64(curves)) / marks
		out = append(out, points[min(len(points)-1, int(share*float64(len(points))))])
	}
	return out
}

func circleMark(b *strings.Builder, x, y, r float64) {
	d := Coordinate(r)
	fmt.Fprintf(b, "M%s %sa%s %s 0 1 0 %s 0a%s %s 0 1 0 -%s 0z",
		Coordinate(x-r), Coordinate(y), d, d, Coordinate(2*r), d, d, Coordinate(2*r))
}

func squareMark(b *strings.Builder, x, y, r float64) {
	h := 0.88 * r
	fmt.Fprintf(b, "M%s %sh%sv%sh-%sz", Coordinate(x-h), Coordinate(y-h), Coordinate(2*h), Coordinate(2*h), Coordinate(2*h))
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
		fmt.Fprintf(b, "%s%s %s", command, Coordinate(x+r*math.Cos(angle)), Coordinate(y+r*math.Sin(angle)))
	}
	b.WriteByte('z')
}

func crossMark(b *strings.Builder, x, y, r float64) {
	long, thin := 1.2*r, 0.42*r
	fmt.Fprintf(b, "M%s %sh%sv%sh%sv%sh%sv%sh%sv%sh%sv%sh%sz",
		Coordinate(x-thin), Coordinate(y-long), Coordinate(2*thin), Coordinate(long-thin), Coordinate(long-thin),
		Coordinate(2*thin), Coordinate(thin-long), Coordinate(long-thin), Coordinate(-2*thin), Coordinate(thin-long),
		Coordinate(thin-long), Coordinate(-2*thin), Coordinate(long-thin))
}

// HypothesisMarks are open rings, so that what lies in them is seen, with the
// cluster's number on the side away from the others; small rings where there are
// too many to number. Places that cannot be drawn are NaN.
func (c *Canvas) HypothesisMarks(places []Point) {
	size := 7.0
	if len(places) > MostNumbered {
		size = 4
	}
	var middle Point
	drawn := 0.0
	for j, p := range places {
		if Drawable(p.X) {
			c.Circle("halo", p.X, p.Y, size)
			c.Circle("hypothesis "+ColourClass(j), p.X, p.Y, size)
			drawn++
			middle.X, middle.Y = middle.X+p.X, middle.Y+p.Y
		}
	}
	if len(places) > MostNumbered {
		return
	}
	for j, p := range places {
		if !Drawable(p.X) {
			continue
		}
		anchor, x, y := "start", p.X+7.5, p.Y-6.5
		if p.X < middle.X/drawn-1 {
			anchor, x = "end", p.X-7.5
		}
		if p.Y > middle.Y/drawn+1 {
			y = p.Y + 14.5
		}
		c.Text("number", anchor, x, y, fmt.Sprint(j+1))
	}
}

// TruthMark is a dot in a cross of lines with an open middle: a hypothesis that
// has arrived sits in it.
func (c *Canvas) TruthMark(x, y float64) { c.truthCross(x, y, 9, 16) }

// TruthKey is a TruthMark that fits a legend.
func (c *Canvas) TruthKey(x, y float64) { c.truthCross(x, y, 4, 8) }

func (c *Canvas) truthCross(x, y float64, inner, outer int) {
	gap := float64(inner)
	d := fmt.Sprintf("M%s %sv-%dM%s %sv%dM%s %sh-%dM%s %sh%d",
		Coordinate(x), Coordinate(y-gap), outer-inner, Coordinate(x), Coordinate(y+gap), outer-inner,
		Coordinate(x-gap), Coordinate(y), outer-inner, Coordinate(x+gap), Coordinate(y), outer-inner)
	c.Path("halo", d)
	c.Path("truth", d)
	c.Circle("dot", x, y, 2)
}
