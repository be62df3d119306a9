package pool

import (
	"sync/atomic"
	"testing"
)

func TestEachDoesEveryJobOnce(t *testing.T) {
	for _, workers := range []int{0, 1, 2, 8} {
		p := New(workers)
		for _, n := range []int{0, 1, 2, 7, 1000} {
			counts := make([]atomic.Int32, n)
			p.Each(n, func(worker, i int) {
				if worker < 0 || worker >= p.Workers() {
					t.Errorf("worker %d of %d", worker, p.Workers())
				}
				counts[i].Add(1)
			})
			for i := range counts {
				if c := counts[i].Load(); c != 1 {
					t.Errorf("%d workers, %d jobs: job %d was done %d times", workers, n, i, c)
				}
			}
		}
		p.Close()
	}
}
