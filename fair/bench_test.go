package fair

import (
	"fmt"
	"testing"

	"github.com/coterie-fl/coterie/internal/rng"
)

// benchmarkRows has 100,000 rows in so many clusters, or none.
func benchmarkRows(clusters int) Rows {
	const rows = 100_000
	if clusters > 0 {
		return simulatedRows(rng.NewFamily(1, "bench"), 0, clusters/2, rows/clusters)
	}
	r := simulatedRows(rng.NewFamily(1, "bench"), 0, rows/20, 10)
	r.Cluster = nil
	return r
}

// BenchmarkAssess: 2,000 resamples of 100,000 rows.
func BenchmarkAssess(b *testing.B) {
	for name, clusters := range map[string]int{"rows": 0, "clusters=1000": 1000, "clusters=10000": 10_000} {
		r := benchmarkRows(clusters)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Assess(r, Bootstrap{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMeasure is the part without resampling.
func BenchmarkMeasure(b *testing.B) {
	r := benchmarkRows(1000)
	for b.Loop() {
		if _, err := Measure(r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCompare: 2,000 resamples of 100,000 rows under two models.
func BenchmarkCompare(b *testing.B) {
	for name, clustered := range map[string]bool{"rows": false, "clusters=1000": true} {
		in := simulatedLosses(rng.NewFamily(1, "bench"), 0, 1000, 100, 0.5)
		if !clustered {
			in.Cluster = nil
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Compare(in, Bootstrap{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDraw draws units of so many copies each, in the package's mixed way
// and all one by one.
func BenchmarkDraw(b *testing.B) {
	for _, units := range []int{1000, 100_000} {
		for _, each := range []int{1, 4, 8, 16, 64, 1000} {
			copies := make([]int32, units/each)
			for i := range copies {
				copies[i] = int32(each)
			}
			d := unitsOfKinds(copies...).drawer()
			family := rng.NewFamily(1, "bench")
			src := family.Stream(0, 0)
			b.Run(fmt.Sprintf("units=%d/each=%d/mixed", units, each), func(b *testing.B) {
				for b.Loop() {
					d.draw(src)
				}
			})
			b.Run(fmt.Sprintf("units=%d/each=%d/one by one", units, each), func(b *testing.B) {
				for b.Loop() {
					clear(d.times)
					for range d.kindOf {
						d.times[d.kindOf[src.Below(len(d.kindOf))]]++
					}
				}
			})
		}
	}
}
