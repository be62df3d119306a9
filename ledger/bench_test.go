package ledger

import (
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// BenchmarkRelease is reserve, store and commit on the disk of the test's folder.
func BenchmarkRelease(b *testing.B) {
	poisson := gaussian(1.1)
	poisson.What = event.Repeated{Times: 10, Of: event.Sampled{Sampling: event.Poisson, Rate: 0.001, Of: event.Gaussian{Noise: 4}}}
	policy := Policy{Ceilings: []Ceiling{exampleCeiling, metricCeiling}}
	policy.Ceilings[0].Epsilon, policy.Ceilings[1].Epsilon = 1e3, 1e9
	for _, c := range []struct {
		name string
		what event.Release
		size int
	}{{"metric", metricRelease(5), 88}, {"gaussian", gaussian(1e4), 88}, {"poisson", poisson, 88}, {"metric-10MB", metricRelease(5), 1_206_590 * 8}} {
		b.Run(c.name, func(b *testing.B) {
			l, err := Open(b.TempDir(), policy)
			must(b, err)
			defer l.Close()
			must(b, l.Reconcile(testMember, nil))
			payload := make([]byte, c.size)
			for i := 0; b.Loop(); i++ {
				must(b, l.Reserve(charge(i, c.what)))
				must(b, l.Store(slotAt(i), payload))
				draft, err := l.Draft(slotAt(i))
				must(b, err)
				signed, err := Sign(draft, testKey)
				must(b, err)
				must(b, l.Commit(slotAt(i), signed))
			}
		})
	}
}

// BenchmarkOpen verifies, replays and writes anew the log of 1,000 releases.
func BenchmarkOpen(b *testing.B) {
	d := newMemDisk()
	policy := Policy{Ceilings: []Ceiling{metricCeiling}}
	policy.Ceilings[0].Epsilon = 1e9
	l, err := openOn(d, policy)
	must(b, err)
	must(b, l.Reconcile(testMember, nil))
	for round := range 1000 {
		must(b, release(l, round, metricRelease(5)))
	}
	must(b, l.Close())
	size := float64(l.size)
	for b.Loop() {
		l, err := openOn(d, policy)
		must(b, err)
		must(b, l.Close())
	}
	b.ReportMetric(size, "log-bytes")
}
