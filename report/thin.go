package report

import "slices"

// point is a place in a chart's data.
type point struct{ x, y float64 }

// thinLine keeps what a line of so many columns can show: of every column the
// first, the lowest, the highest and the last point. Points are in order of x.
func thinLine(points []point, columns int) []point {
	if len(points) <= 4*columns || columns < 1 {
		return points
	}
	lo, hi := points[0].x, points[len(points)-1].x
	if !(lo < hi) {
		return points[:1]
	}
	var out []point
	for start := 0; start < len(points); {
		column := columnOf(points[start].x, lo, hi, columns)
		end, lowest, highest := start, start, start
		for ; end < len(points) && columnOf(points[end].x, lo, hi, columns) == column; end++ {
			if points[end].y < points[lowest].y {
				lowest = end
			}
			if points[end].y > points[highest].y {
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

// thinCloud keeps at most about most points: every n-th, and the outermost in
// every direction of the axes.
func thinCloud(points []point, most int) (kept []int) {
	stride := (len(points) + most - 1) / max(1, most)
	var outermost [4]int
	for i, p := range points {
		for j, farther := range [4]bool{
			p.x < points[outermost[0]].x, p.x > points[outermost[1]].x,
			p.y < points[outermost[2]].y, p.y > points[outermost[3]].y,
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
