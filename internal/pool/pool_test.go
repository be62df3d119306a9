package pool

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
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

// TestCallsAtEveryDistance makes calls right after one another, and with pauses
// around the time after which workers go to sleep.
func TestCallsAtEveryDistance(t *testing.T) {
	for _, workers := range []int{2, 5} {
		p := New(workers)
		var sum atomic.Int64
		const calls = 3000
		for c := range calls {
			p.Each(workers, func(int, int) { sum.Add(1) })
			switch c % 4 {
			case 1:
				time.Sleep(time.Duration(c%50) * time.Microsecond)
			case 2:
				runtime.Gosched()
			}
		}
		p.Close()
		if got := sum.Load(); got != int64(calls*workers) {
			t.Errorf("%d workers: %d jobs done of %d", workers, got, calls*workers)
		}
	}
}

func TestCloseEndsTheWorkers(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 50 {
		p := New(4)
		p.Each(10, func(int, int) {})
		p.Close()
	}
	for range 200 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

func BenchmarkEmptyCall(b *testing.B) {
	p := New(2)
	defer p.Close()
	job := func(int, int) {}
	for b.Loop() {
		p.Each(2, job)
	}
}
