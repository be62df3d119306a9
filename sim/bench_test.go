package sim

import (
	"fmt"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// thousand is the synthetic federation at 1,000 clients a round.
func thousand(workers int) config.Run {
	run := config.Default("group-private", "paper")
	run.Data.Users, run.Data.ValidationUsers = 1000, 1000
	run.Algorithm.ClientsPerRound = 1000
	run.Algorithm.Rounds = 1 << 30
	run.Algorithm.Stop.Patience = 0
	run.Run.Workers = workers
	return run
}

// BenchmarkRound times whole rounds: choice, training, noise, k-means and
// validation. updates/s counts client updates.
func BenchmarkRound(b *testing.B) {
	bench := func(name string, run config.Run) {
		b.Run(name, func(b *testing.B) {
			s, err := New(run, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Step(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*run.Algorithm.ClientsPerRound)/b.Elapsed().Seconds(), "updates/s")
		})
	}
	bench("linear-1000", thousand(0))
	for _, workers := range []int{1, 2} {
		bench(fmt.Sprintf("linear-1000/workers-%d", workers), thousand(workers))
	}
	small := config.Default("group-private", "paper")
	small.Algorithm.Rounds, small.Algorithm.Stop.Patience = 1<<30, 0
	bench("linear-7", small)
	exact := thousand(0)
	exact.Privacy.Noise = "exact"
	bench("linear-1000-exact", exact)
}
