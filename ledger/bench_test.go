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
