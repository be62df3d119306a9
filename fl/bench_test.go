package fl

import (
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// BenchmarkAggregate is the server's half of a round of 1,000 releases, the part
// that workers cannot share.
func BenchmarkAggregate(b *testing.B) {
	run := config.Default("synthetic", "group-private", "paper")
	g, err := NewGroup(run, model.Linear{Features: 2})
	if err != nil {
		b.Fatal(err)
	}
	f := rng.NewFamily(1, "bench")
	s := f.Stream(0, 0)
	r := Releases{Clients: make([]int, 1000)}
	for i := range 1000 {
		r.Vectors = append(r.Vectors, 5+s.Normal(), float64(6-10*(i%2))+s.Normal())
	}
	state := g.Start()
	b.ReportAllocs()
	for b.Loop() {
		copy(state.Hypotheses, []float64{4, 5, 4, -4})
		g.Aggregate(state, r)
	}
}

func BenchmarkSample(b *testing.B) {
	for name, balanced := range map[string]bool{"uniform": false, "balanced": true} {
		b.Run(name, func(b *testing.B) {
			s := NewSampler(1, "bench", 2000, 1000, balanced)
			for i := 0; b.Loop(); i++ {
				s.Sample(i)
			}
		})
	}
}
