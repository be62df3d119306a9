package cluster

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func newClusters(k, n int) *KMeans {
	return NewKMeans(k, n)
}

func TestKMeansFindsTwoClouds(t *testing.T) {
	c := newClusters(2, 1)
	centroids := []float64{0, 1}
	c.Run([]float64{-5, -4, 10, 11, 12}, centroids)
	if !slices.Equal(c.Assigned, []int{0, 0, 1, 1, 1}) || centroids[0] != -4.5 || centroids[1] != 11 {
		t.Errorf("%v around %v", c.Assigned, centroids)
	}
}

func TestKMeansTiesGoToTheLowestIndex(t *testing.T) {
	c := newClusters(2, 1)
	c.Run([]float64{0}, []float64{-1, 1})
	if c.Assigned[0] != 0 {
		t.Errorf("a tie went to %d", c.Assigned[0])
	}
}

func TestKMeansKeepsAnEmptyCluster(t *testing.T) {
	c := newClusters(3, 1)
	centroids := []float64{0, 100, -100}
	c.Run([]float64{1, 2, 3}, centroids)
	if centroids[1] != 100 || centroids[2] != -100 || c.Size[1] != 0 {
		t.Errorf("centroids %v, sizes %v", centroids, c.Size)
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
		c.Run(vectors, centroids)
		for j := range k {
			sum, size := make([]float64, n), 0
			for i, a := range c.Assigned {
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
			own := SquaredDistance(v, centroids[c.Assigned[i]*n:(c.Assigned[i]+1)*n])
			for j := range k {
				if SquaredDistance(v, centroids[j*n:(j+1)*n]) < own-1e-9 {
					t.Fatalf("vector %d is nearer to another centroid", i)
				}
			}
		}
	})
}

// TestPlanePairIsKMeans: the papers' case has loops of its own, which must do what
// the loops for any number of clusters and dimensions do.
func TestPlanePairIsKMeans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Map(rapid.IntRange(-50, 50), func(v int) float64 { return float64(v) / 4 }) // ties are exact
		m := rapid.IntRange(1, 40).Draw(t, "m")
		vectors := rapid.SliceOfN(value, 2*m, 2*m).Draw(t, "vectors")
		centroids := rapid.SliceOfN(value, 4, 4).Draw(t, "centroids")
		pair := newClusters(2, 2)
		pair.Assigned = slices.Repeat([]int{-1}, m)
		pair.assignAll(vectors, centroids)
		pair.sumAll(vectors)
		for i := range m {
			if want := nearest(vectors[2*i:2*i+2], centroids); pair.Assigned[i] != want {
				t.Fatalf("vector %v goes to %d of %v, not to %d", vectors[2*i:2*i+2], pair.Assigned[i], centroids, want)
			}
		}
		var size [2]int
		var sums [4]float64
		for i, j := range pair.Assigned {
			size[j]++
			sums[2*j] += vectors[2*i]
			sums[2*j+1] += vectors[2*i+1]
		}
		if !slices.Equal(pair.Size, size[:]) || !slices.Equal(pair.sums, sums[:]) {
			t.Fatalf("sizes %v and sums %v, not %v and %v", pair.Size, pair.sums, size, sums)
		}
	})
}

// BenchmarkKMeansPlanePair is k-means as a round of the papers' federation has it: two
// passes, the second of which finds that nothing changed.
func BenchmarkKMeansPlanePair(b *testing.B) {
	c := newClusters(2, 2)
	vectors := make([]float64, 2000)
	for i := range vectors {
		vectors[i] = math.Sin(float64(i*i)) + float64(4*(i/2*7%3%2))
	}
	centroids := make([]float64, 4)
	for b.Loop() {
		copy(centroids, []float64{0.5, 0.5, 3.5, 3.5})
		c.Run(vectors, centroids)
	}
}
