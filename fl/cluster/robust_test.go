package cluster_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/coterie-fl/coterie/fl/cluster"
)

func centre(rule string, share float64, vectors ...[]float64) []float64 {
	dst := make([]float64, len(vectors[0]))
	cluster.Robust{Rule: rule, Share: share}.Centre(dst, vectors)
	return dst
}

// TestRobustByHand: small cases whose centres are known.
func TestRobustByHand(t *testing.T) {
	line := [][]float64{{1, 0}, {2, 10}, {3, 20}, {4, 30}, {1000, -1000}}
	for _, c := range []struct {
		rule    string
		share   float64
		vectors [][]float64
		want    []float64
	}{
		{cluster.Median, 0, line, []float64{3, 10}},
		{cluster.Median, 0, line[:4], []float64{2.5, 15}},
		{cluster.TrimmedMean, 0.2, line, []float64{3, 10}},
		{cluster.TrimmedMean, 0, line[:4], []float64{2.5, 15}},
		{cluster.Krum, 0.2, line, []float64{2, 10}}, // of 2 and 3, whose two nearest are as near, the first
		{cluster.Krum, 0.2, line[:1], []float64{1, 0}},
		// The point that sees three others at 120 degrees.
		{cluster.GeometricMedian, 0, [][]float64{{1, 0}, {-0.5, math.Sqrt(3) / 2}, {-0.5, -math.Sqrt(3) / 2}}, []float64{0, 0}},
		{cluster.GeometricMedian, 0, [][]float64{{7, 7}, {7, 7}, {7, 7}, {0, 0}}, []float64{7, 7}},
		{cluster.GeometricMedian, 0, [][]float64{{5, 5}}, []float64{5, 5}},
		{cluster.Median, 0, append([][]float64{{math.NaN(), 0}, {math.Inf(1), 1}}, line...), []float64{3, 10}},
	} {
		got := centre(c.rule, c.share, c.vectors...)
		if math.Hypot(got[0]-c.want[0], got[1]-c.want[1]) > 1e-6 {
			t.Errorf("%s of %v is %v, want %v", c.rule, c.vectors, got, c.want)
		}
	}
	stays := []float64{4}
	cluster.Robust{Rule: cluster.Krum}.Centre(stays, [][]float64{{math.NaN()}})
	if stays[0] != 4 {
		t.Errorf("among no numbers the centre is %v", stays)
	}
}

// TestForgedReleasesMoveNoRobustCentre: three of ten releases far away carry the mean with
// them; every rule stays where the honest ones are, wherever the forged are, and none
// depends on the order in which releases come.
func TestForgedReleasesMoveNoRobustCentre(t *testing.T) {
	src := rand.New(rand.NewPCG(1, 2))
	honest := make([][]float64, 7)
	for i := range honest {
		honest[i] = make([]float64, 20)
		for j := range honest[i] {
			honest[i][j] = 1 + 0.1*src.NormFloat64()
		}
	}
	for _, far := range []float64{-3, 10, 1e6} {
		all := append([][]float64(nil), honest...)
		for range 3 {
			v := make([]float64, 20)
			for j := range v {
				v[j] = far
			}
			all = append(all, v)
		}
		for _, rule := range cluster.RobustRules {
			got := centre(rule, 0.3, all...)
			for j, x := range got {
				if math.Abs(x-1) > 0.5 {
					t.Fatalf("%s: coordinate %d is %v with three releases at %v", rule, j, x, far)
				}
			}
			mixed := append([][]float64(nil), all...)
			src.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
			for j, x := range centre(rule, 0.3, mixed...) {
				if math.Abs(x-got[j]) > 1e-6 {
					t.Fatalf("%s goes by the order: %v and %v", rule, x, got[j])
				}
			}
		}
	}
}

// Two of five that lie together are each other's only neighbour, if Krum counts on two;
// it can count on one.
func TestKrumOfFew(t *testing.T) {
	for _, vectors := range [][][]float64{
		{{1}, {1.1}, {1.3}, {9}, {9}},
		{{9}, {9}, {1}, {1.1}, {1.3}},
		{{9}, {1}, {1.2}, {1.1}},
	} {
		if got := centre(cluster.Krum, 0.49, vectors...); got[0] > 2 {
			t.Errorf("krum of %v is %v", vectors, got)
		}
	}
}

// The geometric median has the least sum of distances: no point near it has less, and
// neither has any of the vectors, also where steps begin on one of them.
func TestGeometricMedianIsTheLeast(t *testing.T) {
	src := rand.New(rand.NewPCG(3, 4))
	for trial := range 200 {
		vectors := make([][]float64, 3+trial%6)
		for i := range vectors {
			vectors[i] = []float64{math.Round(4 * src.NormFloat64()), math.Round(4 * src.NormFloat64())} // places that coincide, too
		}
		sum := func(at []float64) (all float64) {
			for _, v := range vectors {
				all += math.Hypot(v[0]-at[0], v[1]-at[1])
			}
			return all
		}
		found := centre(cluster.GeometricMedian, 0, vectors...)
		least := sum(found)
		for range 50 {
			near := []float64{found[0] + 0.3*src.NormFloat64(), found[1] + 0.3*src.NormFloat64()}
			if sum(near) < least-1e-4 {
				t.Fatalf("of %v: %v has %v, %v has %v", vectors, found, least, near, sum(near))
			}
		}
		for _, v := range vectors {
			if sum(v) < least-1e-4 {
				t.Fatalf("of %v: %v has %v, %v itself has %v", vectors, found, least, v, sum(v))
			}
		}
	}
}

// However far forged releases lie, and however many, the centre is finite.
func TestRobustCentresAreFinite(t *testing.T) {
	for _, forged := range []int{1, 4, 7} {
		vectors := [][]float64{{1, 2}, {1.5, 2}, {1, 2.5}}
		for i := range forged {
			vectors = append(vectors, []float64{math.MaxFloat64 * float64(1-2*(i%2)), 1e300})
		}
		for _, rule := range cluster.RobustRules {
			for _, x := range centre(rule, 0.2, vectors...) {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Errorf("%s with %d forged releases: %v", rule, forged, x)
				}
			}
		}
	}
}
