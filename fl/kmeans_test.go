package fl

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func newClusters(k, n int) *clusters {
	return &clusters{k: k, n: n, size: make([]int, k), sums: make([]float64, k*n)}
}

func TestKMeansFindsTwoClouds(t *testing.T) {
	c := newClusters(2, 1)
	centroids := []float64{0, 1}
	c.run([]float64{-5, -4, 10, 11, 12}, centroids)
	if !slices.Equal(c.assign, []int{0, 0, 1, 1, 1}) || centroids[0] != -4.5 || centroids[1] != 11 {
		t.Errorf("%v around %v", c.assign, centroids)
	}
}

func TestKMeansTiesGoToTheLowestIndex(t *testing.T) {
	c := newClusters(2, 1)
	c.run([]float64{0}, []float64{-1, 1})
	if c.assign[0] != 0 {
		t.Errorf("a tie went to %d", c.assign[0])
	}
}

func TestKMeansKeepsAnEmptyCluster(t *testing.T) {
	c := newClusters(3, 1)
	centroids := []float64{0, 100, -100}
	c.run([]float64{1, 2, 3}, centroids)
	if centroids[1] != 100 || centroids[2] != -100 || c.size[1] != 0 {
		t.Errorf("centroids %v, sizes %v", centroids, c.size)
	}
}

// TestKMeansEndsAtAFixedPoint: every vector is at its nearest centroid, and every
// centroid is the mean of its vectors.
func TestKMeansEndsAtAFixedPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, n := rapid.IntRange(1, 4).Draw(t, "k"), rapid.IntRange(1, 3).Draw(t, "n")
		value := rapid.Float64Range(-100, 100)
		m := rapid.IntRange(1, 30).Draw(t, "m")
		vectors := rapid.SliceOfN(value, m*n, m*n).Draw(t, "vectors")
		centroids := rapid.SliceOfN(value, k*n, k*n).Draw(t, "centroids")
		c := newClusters(k, n)
		c.run(vectors, centroids)
		for j := range k {
			sum, size := make([]float64, n), 0
			for i, a := range c.assign {
				if a == j {
					size++
					for d := range n {
						sum[d] += vectors[i*n+d]
					}
				}
			}
			for d := range n {
				if size > 0 && math.Abs(centroids[j*n+d]-sum[d]/float64(size)) > 1e-9 {
					t.Fatalf("centroid %d is not the mean of its vectors", j)
				}
			}
		}
		for i := range m {
			v := vectors[i*n : (i+1)*n]
			own := squaredDistance(v, centroids[c.assign[i]*n:(c.assign[i]+1)*n])
			for j := range k {
				if squaredDistance(v, centroids[j*n:(j+1)*n]) < own-1e-9 {
					t.Fatalf("vector %d is nearer to another centroid", i)
				}
			}
		}
	})
}
