package pool

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// TestStoppedCallsLeaveOutTheRest: what has begun is done, what has not is left out, in
// this call and in later ones.
func TestStoppedCallsLeaveOutTheRest(t *testing.T) {
	for _, workers := range []int{1, 2, 8} {
		for name, call := range map[string]func(*Pool, int, func(int, int)){"Each": (*Pool).Each, "Serial": (*Pool).Serial} {
			p := New(workers)
			var stop atomic.Bool
			p.StopBy(&stop)
			var done atomic.Int64
			call(p, 100_000, func(int, int) {
				if done.Add(1) == 100 {
					stop.Store(true)
				}
			})
			if n := done.Load(); n < 100 || n > 100+int64(workers) {
				t.Errorf("%s of %d workers: %d jobs were done although the 100th stopped it", name, workers, n)
			}
			before := done.Load()
			call(p, 10, func(int, int) { done.Add(1) })
			if done.Load() != before {
				t.Errorf("%s of %d workers: a stopped pool did a job", name, workers)
			}
			stop.Store(false)
			call(p, 10, func(int, int) { done.Add(1) })
			if done.Load() != before+10 {
				t.Errorf("%s of %d workers: %d jobs of 10 were done after the stop was taken back", name, workers, done.Load()-before)
			}
			p.Close()
		}
	}
}

// TestBegunIsAskedWhileJobsRun: it counts jobs that have begun, and knows of no call
// between two.
func TestBegunIsAskedWhileJobsRun(t *testing.T) {
	for _, workers := range []int{1, 2, 3} {
		p := New(workers)
		if jobs, of := p.Begun(); jobs != 0 || of != 0 {
			t.Errorf("before a call: %d of %d", jobs, of)
		}
		const n = 20
		var begun atomic.Int64
		p.Each(n, func(int, int) {
			least := int(begun.Add(1))
			jobs, of := p.Begun()
			if most := int(begun.Load()) + workers; of != n || jobs < least || jobs > min(n, most) {
				t.Errorf("%d workers: %d of %d have begun, from %d to %d of %d were counted", workers, jobs, of, least, most, n)
			}
		})
		if jobs, of := p.Begun(); jobs != 0 || of != 0 {
			t.Errorf("after a call: %d of %d", jobs, of)
		}
		p.Close()
	}
}

// TestAwaitDoesNotWaitForWhatCannotBeStopped, and what comes too late is discarded.
func TestAwaitDoesNotWaitForWhatCannotBeStopped(t *testing.T) {
	never := func(int) { t.Error("a value that was returned is discarded") }
	if v, err := Await(t.Context(), func() (int, error) { return 7, nil }, never); v != 7 || err != nil {
		t.Error(v, err)
	}
	ill := errors.New("ill")
	if _, err := Await(t.Context(), func() (int, error) { return 0, ill }, never); !errors.Is(err, ill) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begun, goOn, discarded := make(chan struct{}), make(chan struct{}), make(chan int)
	go func() {
		<-begun
		cancel()
	}()
	v, err := Await(ctx, func() (int, error) {
		close(begun)
		<-goOn
		return 7, nil
	}, func(v int) { discarded <- v })
	if v != 0 || !errors.Is(err, context.Canceled) {
		t.Error(v, err)
	}
	close(goOn)
	if v := <-discarded; v != 7 {
		t.Error(v)
	}
}
