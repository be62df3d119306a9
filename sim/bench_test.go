package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/config"
)

// thousand is the synthetic federation at 1,000 clients a round.
func thousand(workers int) config.Run {
	run := config.Default("synthetic", "group-private", "paper")
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
	small := config.Default("synthetic", "group-private", "paper")
	small.Algorithm.Rounds, small.Algorithm.Stop.Patience = 1<<30, 0
	bench("linear-7", small)
	exact := thousand(0)
	exact.Privacy.Noise = "exact"
	bench("linear-1000-exact", exact)
}

// BenchmarkScaling compares, block by block in one run, rounds with one worker, with
// two, and on two simulations side by side that share nothing: what the machine
// itself allows at that moment. Others use the machine too, and two cores are twice
// as likely to be disturbed as one: speedup is the median of the blocks' ratios,
// undisturbed-speedup the ratio of the blocks that one in ten is shorter than. Blocks
// are a few milliseconds, so that many have the cores to themselves.
func BenchmarkScaling(b *testing.B) {
	open := func(workers int) *Simulation {
		s, err := New(thousand(workers), nil)
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	one, two, left, right := open(1), open(2), open(1), open(1)
	rounds := func(s *Simulation, n int) {
		for range n {
			if _, err := s.Step(); err != nil {
				b.Error(err)
			}
		}
	}
	const block = 10
	// The first rounds of every block are not timed: data come back into the caches, and
	// a core that slept wakes slowly.
	warmed := func(step func(n int)) float64 {
		step(block / 2)
		start := time.Now()
		step(block)
		return time.Since(start).Seconds()
	}
	var alone, shared, apart []float64
	for b.Loop() {
		alone = append(alone, warmed(func(n int) { rounds(one, n) }))
		shared = append(shared, warmed(func(n int) { rounds(two, n) }))
		apart = append(apart, warmed(func(n int) {
			done := make(chan struct{})
			go func() { rounds(right, n); close(done) }()
			rounds(left, n)
			<-done
		})/2)
	}
	for _, s := range []*Simulation{one, two, left, right} {
		s.Close()
	}
	report := func(name string, times []float64) {
		ratios := make([]float64, len(times))
		for i, t := range times {
			ratios[i] = alone[i] / t
		}
		slices.Sort(ratios)
		b.ReportMetric(ratios[len(ratios)/2], name)
		b.ReportMetric(oneInTen(alone)/oneInTen(times), "undisturbed-"+name)
	}
	report("speedup", shared)
	report("machine-speedup", apart)
}

// oneInTen is the value that one in ten is below.
func oneInTen(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/10]
}

// BenchmarkInterruptible says what it costs that a round can be interrupted: the checks
// alone, and what is noted of every participant before its answer, block by block beside
// whole rounds. share is the median of the blocks' ratios.
func BenchmarkInterruptible(b *testing.B) {
	few := config.Default("synthetic", "group-private", "paper")
	few.Algorithm.Rounds, few.Algorithm.Stop.Patience, few.Run.Workers = 1<<30, 0, 1
	own := thousand(1)
	own.Algorithm.Kind, own.Algorithm.Clustering, own.Algorithm.Hypotheses = "ditto", "choice", 1
	own.Algorithm.Empty, own.Judge.By, own.Data.TestShare = "keep", "own", 0.2
	own.Algorithm.Stop.Return, own.Privacy = "last", config.Default("synthetic", "fedavg", "paper").Privacy
	for name, run := range map[string]config.Run{"linear-7": few, "linear-1000": thousand(1), "ditto-1000": own} {
		b.Run(name, func(b *testing.B) {
			s, err := New(run, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			r := s.rounds
			checks := func(clients []int) {
				for _, c := range clients {
					if r.stop.Load() || r.round.IsOpen() {
						b.Fatal("nobody stops it")
					}
					r.before[0].note(&r.Participants[c])
					if r.stop.Load() {
						b.Fatal("nobody stops it")
					}
				}
				for range r.Participants { // the judge's
					if r.stop.Load() {
						b.Fatal("nobody stops it")
					}
				}
				s.at.doing.Store(int32(Training))
				s.at.doing.Store(int32(Judging))
				s.publish()
			}
			var shares []float64
			const block = 20
			for b.Loop() {
				begin := time.Now()
				for range block {
					if _, err := s.Step(); err != nil {
						b.Fatal(err)
					}
				}
				made := time.Now()
				for range block {
					checks(r.Releases.Clients)
				}
				shares = append(shares, float64(time.Since(made))/float64(made.Sub(begin)))
			}
			slices.Sort(shares)
			b.ReportMetric(100*shares[len(shares)/2], "%-of-a-round")
		})
	}
}
