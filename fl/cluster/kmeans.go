// Package cluster is what methods share in which participants belong to clusters: k-means, means, empty clusters.
package cluster

import "github.com/coterie-fl/coterie/fl"

// maxLloyd bounds k-means: it converges in a handful of steps from the
// hypotheses, and a cycle through rounding must not hang a server.
const maxLloyd = 300

// KMeans is the memory that k-means reuses from round to round.
type KMeans struct {
	Assigned []int // cluster of every vector
	Size     []int // vectors of every cluster
	k, n     int
	sums     []float64
}

// NewKMeans is k-means with k centroids of n values.
func NewKMeans(k, n int) *KMeans {
	return &KMeans{k: k, n: n, Size: make([]int, k), sums: make([]float64, k*n)}
}

// Run is Lloyd's algorithm on vectors, started at centroids, which it moves. A
// vector goes to the nearest centroid, the lowest index on a tie; a centroid
// without vectors stays where it was.
func (c *KMeans) Run(vectors, centroids []float64) {
	m := len(vectors) / c.n
	if cap(c.Assigned) < m {
		c.Assigned = make([]int, m)
	}
	c.Assigned = c.Assigned[:m]
	for i := range c.Assigned {
		c.Assigned[i] = -1
	}
	for range maxLloyd {
		if !c.assignAll(vectors, centroids) {
			return // what was summed up before still holds
		}
		c.sumAll(vectors)
		for j, size := range c.Size {
			for d := j * c.n; size > 0 && d < (j+1)*c.n; d++ {
				centroids[d] = c.sums[d] / float64(size)
			}
		}
	}
}

// assignAll gives every vector its cluster, and says whether any changed it.
func (c *KMeans) assignAll(vectors, centroids []float64) (changed bool) {
	if c.n == 2 && c.k == 2 {
		return c.assignPair(vectors, centroids)
	}
	for i, old := range c.Assigned {
		j := nearest(vectors[i*c.n:(i+1)*c.n], centroids)
		if j != old {
			c.Assigned[i], changed = j, true
		}
	}
	return changed
}

// sumAll counts the clusters and sums them up, in vector order.
func (c *KMeans) sumAll(vectors []float64) {
	clear(c.Size)
	clear(c.sums)
	if c.n == 2 && c.k == 2 {
		c.sumPair(vectors)
		return
	}
	for i, j := range c.Assigned {
		c.Size[j]++
		sum := c.sums[j*c.n : (j+1)*c.n]
		for d, x := range vectors[i*c.n : (i+1)*c.n] {
			sum[d] += x
		}
	}
}

// assignPair is assignAll for two centroids in the plane, the papers' case, without a
// branch that half of the vectors would take: a vector is nearer to the second
// centroid if it lies on that side of the line halfway between them.
func (c *KMeans) assignPair(vectors, centroids []float64) bool {
	ax, ay, bx, by := centroids[0], centroids[1], centroids[2], centroids[3]
	dx, dy := bx-ax, by-ay
	halfway := dx*(ax+bx)/2 + dy*(ay+by)/2
	moved, assign := 0, c.Assigned
	for i := range assign {
		at := vectors[2*i : 2*i+2 : 2*i+2]
		j := 0
		if dx*at[0]+dy*at[1] > halfway {
			j = 1
		}
		moved |= j ^ assign[i]
		assign[i] = j
	}
	return moved != 0
}

// sumPair is sumAll for two clusters in the plane: factors of 0 and 1 give the same
// sums as a branch.
func (c *KMeans) sumPair(vectors []float64) {
	var ax, ay, bx, by float64
	second := 0
	for i, j := range c.Assigned {
		at := vectors[2*i : 2*i+2 : 2*i+2]
		x, y, inB := at[0], at[1], float64(j)
		inA := 1 - inB
		ax, ay = ax+inA*x, ay+inA*y
		bx, by = bx+inB*x, by+inB*y
		second += j
	}
	c.Size[0], c.Size[1] = len(c.Assigned)-second, second
	c.sums[0], c.sums[1], c.sums[2], c.sums[3] = ax, ay, bx, by
}

func nearest(v, centroids []float64) int {
	best, least := 0, SquaredDistance(v, centroids[:len(v)])
	for j := 1; j*len(v) < len(centroids); j++ {
		if d := SquaredDistance(v, centroids[j*len(v):(j+1)*len(v)]); d < least {
			best, least = j, d
		}
	}
	return best
}

// SquaredDistance is that between two vectors.
func SquaredDistance(a, b []float64) float64 {
	var sum float64
	for i, x := range a {
		d := x - b[i]
		sum += d * d
	}
	return sum
}

// Nearest is the model nearest to a vector; other if there is no vector yet.
func Nearest(v, models []float64, other int) int {
	if len(v) == 0 || len(models) < len(v) {
		return other
	}
	return nearest(v, models)
}

// Relocation moves models that nobody trains to released vectors. It reads releases
// only, so it costs no privacy.
type Relocation struct {
	After int // rounds without an update
	taken []bool
}

// Move counts every model's rounds without an update, from the clusters of the round's
// releases, and moves those that were idle for too long to the released vectors farthest
// from their own clusters. It says how many it moved.
func (m *Relocation) Move(st *fl.State, r fl.Releases, assigned []int, n int) (moved int) {
	if st.Idle == nil {
		st.Idle = make([]int, len(st.Hypotheses)/n)
	}
	length := len(r.Vectors) / max(1, len(r.Clients))
	for j := range st.Idle {
		if st.Idle[j] < m.After {
			continue
		}
		if moved == 0 {
			m.taken = append(m.taken[:0], make([]bool, len(r.Clients))...)
		}
		i := m.farthest(st, r, assigned, n, length)
		if i < 0 {
			break
		}
		m.taken[i] = true
		copy(st.Hypotheses[j*n:(j+1)*n], r.Vectors[i*length:])
		st.Idle[j] = 0
		moved++
	}
	return moved
}

// Note counts rounds without an update: sizes are the round's clusters'.
func Note(idle []int, sizes []int) {
	for j, size := range sizes {
		idle[j]++
		if size > 0 {
			idle[j] = 0
		}
	}
}

// farthest is the released vector farthest from its own model among those not yet
// taken, -1 if none is left.
func (m *Relocation) farthest(st *fl.State, r fl.Releases, assigned []int, n, length int) int {
	best, most := -1, -1.0
	for i, j := range assigned {
		if m.taken[i] || j < 0 {
			continue
		}
		if d := SquaredDistance(r.Vectors[i*length:i*length+n], st.Hypotheses[j*n:(j+1)*n]); d > most {
			best, most = i, d
		}
	}
	return best
}
