package pool

import (
	"sync/atomic"
	"testing"
	"time"
)

// TestWokenTwiceWorksOnce: a worker that has done its part of a call by itself and sleeps
// again may be woken by the very call that it has done, if its caller was slow to wake it.
// Then it must go back to sleep: done once more, it would end a call before its time.
func TestWokenTwiceWorksOnce(t *testing.T) {
	p := New(2)
	defer p.Close()
	w := &p.workers[1]
	for range 50 {
		var jobs atomic.Int64
		p.Each(8, func(int, int) { jobs.Add(1) })
		if jobs.Load() != 8 {
			t.Fatalf("%d jobs of 8", jobs.Load())
		}
		for !w.asleep.Load() {
			time.Sleep(10 * time.Microsecond)
		}
		p.wakeAll() // as the call that has ended would do, had it been slow
	}
	time.Sleep(time.Millisecond) // a second Done would panic here
}
