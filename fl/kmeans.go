package fl

import "math"

// maxLloyd bounds k-means: it converges in a handful of steps from the
// hypotheses, and a cycle through rounding must not hang a server.
const maxLloyd = 300

// clusters is the memory that k-means reuses from round to round.
type clusters struct {
	k, n   int
	assign []int
	size   []int
	sums   []float64
}

// run is Lloyd's algorithm on vectors, started at centroids, which it moves. A
// vector goes to the nearest centroid, the lowest index on a tie; a centroid
// without vectors stays where it was.
func (c *clusters) run(vectors, centroids []float64) {
	m := len(vectors) / c.n
	if cap(c.assign) < m {
		c.assign = make([]int, m)
	}
	c.assign = c.assign[:m]
	for i := range c.assign {
		c.assign[i] = -1
	}
	for range maxLloyd {
		if !c.assignAll(vectors, centroids) {
			return
		}
		for j, size := range c.size {
			for d := j * c.n; size > 0 && d < (j+1)*c.n; d++ {
				centroids[d] = c.sums[d] / float64(size)
			}
		}
	}
}

// assignAll gives every vector its cluster and sums the clusters up, in vector
// order. It says whether any vector changed its cluster.
func (c *clusters) assignAll(vectors, centroids []float64) (changed bool) {
	clear(c.size)
	clear(c.sums)
	if c.n == 2 && c.k == 2 {
		return c.assignPair(vectors, centroids)
	}
	if c.n == 2 {
		return c.assignPlane(vectors, centroids)
	}
	for i, old := range c.assign {
		v := vectors[i*c.n : (i+1)*c.n]
		j := nearest(v, centroids)
		if j != old {
			c.assign[i], changed = j, true
		}
		c.size[j]++
		sum := c.sums[j*c.n : (j+1)*c.n]
		for d, x := range v {
			sum[d] += x
		}
	}
	return changed
}

// assignPlane is assignAll in two dimensions, where slicing would cost more than
// the arithmetic. It adds in the same order, to the same sums.
func (c *clusters) assignPlane(vectors, centroids []float64) (changed bool) {
	for i, old := range c.assign {
		x, y := vectors[2*i], vectors[2*i+1]
		best, least := 0, math.Inf(1)
		for j := 0; 2*j+1 < len(centroids); j++ {
			dx, dy := x-centroids[2*j], y-centroids[2*j+1]
			if d := dx*dx + dy*dy; d < least {
				best, least = j, d
			}
		}
		if best != old {
			c.assign[i], changed = best, true
		}
		c.size[best]++
		c.sums[2*best] += x
		c.sums[2*best+1] += y
	}
	return changed
}

// assignPair is assignPlane for two centroids, the papers' case, without a branch
// that half of the vectors would take: factors of 0 and 1 give the same sums.
func (c *clusters) assignPair(vectors, centroids []float64) bool {
	ax, ay, bx, by := centroids[0], centroids[1], centroids[2], centroids[3]
	var sax, say, sbx, sby float64
	second, moved := 0, 0
	for i, old := range c.assign {
		x, y := vectors[2*i], vectors[2*i+1]
		da := (x-ax)*(x-ax) + (y-ay)*(y-ay)
		db := (x-bx)*(x-bx) + (y-by)*(y-by)
		j := 0
		if db < da {
			j = 1
		}
		inB := float64(j)
		inA := 1 - inB
		sax, say = sax+inA*x, say+inA*y
		sbx, sby = sbx+inB*x, sby+inB*y
		second += j
		moved |= j ^ old
		c.assign[i] = j
	}
	c.size[0], c.size[1] = len(c.assign)-second, second
	c.sums[0], c.sums[1], c.sums[2], c.sums[3] = sax, say, sbx, sby
	return moved != 0
}

func nearest(v, centroids []float64) int {
	best, least := 0, squaredDistance(v, centroids[:len(v)])
	for j := 1; j*len(v) < len(centroids); j++ {
		if d := squaredDistance(v, centroids[j*len(v):(j+1)*len(v)]); d < least {
			best, least = j, d
		}
	}
	return best
}

func squaredDistance(a, b []float64) float64 {
	var sum float64
	for i, x := range a {
		d := x - b[i]
		sum += d * d
	}
	return sum
}

// farthest is the vector farthest from its own centroid among those not yet
// taken, -1 if none is left.
func (c *clusters) farthest(vectors, centroids []float64, taken []bool) int {
	best, most := -1, -1.0
	for i, j := range c.assign {
		if taken[i] {
			continue
		}
		if d := squaredDistance(vectors[i*c.n:(i+1)*c.n], centroids[j*c.n:(j+1)*c.n]); d > most {
			best, most = i, d
		}
	}
	return best
}
