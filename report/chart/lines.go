package chart

import (
	"slices"
	"strings"
)

// Point is a place in a chart's data.
type Point struct{ X, Y float64 }

// Columns is how many columns a curve over the whole plot can show.
const Columns = PlotRight - PlotLeft

// Place is where a point of the data lies.
func Place(p Point, ax, ay Axis) Point { return Point{ax.At(p.X), ay.At(p.Y)} }

// Polyline is the path of a line through points.
func Polyline(points []Point, ax, ay Axis) string {
	var d strings.Builder
	command := "M"
	for _, p := range points {
		d.WriteString(command + Coordinate(ax.At(p.X)) + " " + Coordinate(ay.At(p.Y)))
		command = "L"
	}
	return d.String()
}

// ThinLine keeps what a line of so many columns can show: of every column the
// first, the lowest, the highest and the last point. Points are in order of x.
func ThinLine(points []Point, columns int) []Point {
	if len(points) <= 4*columns || columns < 1 {
		return points
	}
	lo, hi := points[0].X, points[len(points)-1].X
	if !(lo < hi) {
		return points[:1]
	}
	var out []Point
	for start := 0; start < len(points); {
		column := columnOf(points[start].X, lo, hi, columns)
		end, lowest, highest := start, start, start
		for ; end < len(points) && columnOf(points[end].X, lo, hi, columns) == column; end++ {
			if points[end].Y < points[lowest].Y {
				lowest = end
			}
			if points[end].Y > points[highest].Y {
				highest = end
			}
		}
		keep := []int{start, lowest, highest, end - 1}
		slices.Sort(keep)
		for _, i := range slices.Compact(keep) {
			out = append(out, points[i])
		}
		start = end
	}
	return out
}

func columnOf(x, lo, hi float64, columns int) int {
	return min(columns-1, int((x-lo)/(hi-lo)*float64(columns)))
}

// ThinCloud keeps at most about most points: every n-th, and the outermost in
// every direction of the axes.
func ThinCloud(points []Point, most int) (kept []int) {
	stride := (len(points) + most - 1) / max(1, most)
	var outermost [4]int
	for i, p := range points {
		for j, farther := range [4]bool{
			p.X < points[outermost[0]].X, p.X > points[outermost[1]].X,
			p.Y < points[outermost[2]].Y, p.Y > points[outermost[3]].Y,
		} {
			if farther {
				outermost[j] = i
			}
		}
		if i%max(1, stride) == 0 {
			kept = append(kept, i)
		}
	}
	if stride > 1 {
		kept = append(kept, outermost[:]...)
		slices.Sort(kept)
		kept = slices.Compact(kept)
	}
	return kept
}
