package sim

import (
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// handwriting is FedAvg among so many clients of so many pictures of noise each, with the
// papers' network of 1,206,590 parameters and batches of 10; one client more is the judge's.
func handwriting(clients, pictures, workers int) (config.Run, *data.Federation) {
	run := config.Default("writers", "fedavg", "paper")
	run.Model = config.Model{Kind: "network", Name: "femnist"}
	a := &run.Algorithm
	a.ClientsPerRound, a.Rounds, a.Stop.Patience = clients, 1<<30, 0
	a.Local.Loss, a.Local.Step, a.Local.Batch, a.Local.Epochs = "cross-entropy", 1e-3, 10, 1
	run.Run.Workers = workers
	const side, classes = 28, 62
	family := rng.NewFamily(1, "pictures of noise")
	r := family.Stream(0, 0)
	im := &data.Images{Height: side, Width: side, Pixels: make([]byte, (clients*pictures+1)*side*side)}
	for i := range im.Pixels {
		im.Pixels[i] = byte(r.Below(256))
	}
	all := make([]data.Client, clients+1)
	for i := range clients*pictures + 1 {
		im.Labels = append(im.Labels, r.Below(classes))
		c := &all[i/pictures]
		c.Images, c.Index = im, append(c.Index, i)
	}
	return run, &data.Federation{Features: side * side, Classes: classes, Train: all[:clients], Validation: all[clients:]}
}

// processorTime is what the process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkHandwritingRound holds whole rounds of 20 clients with 100 pictures each
// against the bare steps of the same training, which take turns with them: one learner
// that trains on client after client. round/steps is the median of the ratios of
// processor time; MB is what the rounds hold of the heap.
func BenchmarkHandwritingRound(b *testing.B) {
	const clients, pictures = 20, 100
	run, federation := handwriting(clients, pictures, 1)
	s, err := NewOn(run, federation, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	m, err := model.Of(run, federation.Shape())
	if err != nil {
		b.Fatal(err)
	}
	learner, err := m.Learner()
	if err != nil {
		b.Fatal(err)
	}
	pass, err := model.NewPass(run.Algorithm.Local, 1)
	if err != nil {
		b.Fatal(err)
	}
	family := rng.NewFamily(1, "order")
	pass.Single, pass.Shuffle = true, family.Stream(0, 0)
	theta := make([]float64, m.Parameters())
	m.Initialise(theta, family.Stream(0, 1))
	steps := func() {
		for i := range federation.Train {
			if err := learner.Train(theta, &federation.Train[i], &pass); err != nil {
				b.Fatal(err)
			}
		}
	}
	round := func() {
		if _, err := s.Step(); err != nil {
			b.Fatal(err)
		}
	}
	timed := func(work func()) float64 {
		c := processorTime()
		work()
		return (processorTime() - c).Seconds()
	}
	round()
	steps()
	var rounds, bare, ratios []float64
	for b.Loop() {
		before := timed(steps)
		r := timed(round)
		after := timed(steps)
		rounds, bare = append(rounds, r), append(bare, before, after)
		ratios = append(ratios, 2*r/(before+after))
	}
	var heap runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&heap)
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "round/steps")
	b.ReportMetric(slices.Min(rounds)/slices.Min(bare), "best-round/best-steps")
	b.ReportMetric(slices.Min(rounds), "round-cpu-s")
	b.ReportMetric(float64(heap.HeapAlloc)/1e6, "MB")
}
