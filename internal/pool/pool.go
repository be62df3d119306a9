// Package pool spreads independent jobs over goroutines.
package pool

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Pool runs jobs on a fixed number of workers. Which worker does what must never
// show in a result: every job writes to its own place.
type Pool struct {
	workers []worker
	spin    int // how often to look for work before going to sleep
	done    sync.WaitGroup
	busy    atomic.Int64 // workers that have not finished the current call
	call    atomic.Int64 // number of the current call
	closed  atomic.Bool
	stop    *atomic.Bool // whoever sets it ends the current call and all later ones early
	items   atomic.Int64 // of the current call, if it shows how far it is

	chunk int64
	job   func(worker, i int)
}

// worker has a share of the items of its own, the same in every call of the same
// size: what it wrote last time is still in its cache. Who is done helps others.
type worker struct {
	asleep atomic.Bool
	wake   chan struct{}
	_      [64]byte
	next   atomic.Int64
	end    int64
	_      [64]byte // the next worker's fields lie on other cache lines
}

// spinning is about 100 microseconds: the work between two calls is often shorter
// than the time that a system takes to wake a thread.
const spinning = 200_000

// New starts the workers but one: the caller of Each is worker 0.
func New(workers int) *Pool {
	p := &Pool{workers: make([]worker, max(1, workers)), stop: new(atomic.Bool)}
	if len(p.workers) <= runtime.GOMAXPROCS(0) {
		p.spin = spinning // on its own core a waiting worker is in nobody's way
	}
	for i := 1; i < len(p.workers); i++ {
		p.workers[i].wake = make(chan struct{}, 1)
		go p.serve(i)
	}
	return p
}

// Workers is how many jobs run at the same time.
func (p *Pool) Workers() int { return len(p.workers) }

// StopBy has calls leave out the jobs that have not begun once stop is set. It must not
// be called while a call is under way.
func (p *Pool) StopBy(stop *atomic.Bool) { p.stop = stop }

// Begun says how many jobs of the current call have begun, of how many. Anybody may ask
// at any time; it is for showing only, and of no call it is 0 of 0.
func (p *Pool) Begun() (jobs, of int) {
	n := p.items.Load()
	for i := range p.workers {
		from, end := p.share(n, i)
		jobs += int(min(max(0, p.workers[i].next.Load()-from), end-from))
	}
	return jobs, int(n)
}

// share is the part of n items that a worker begins with.
func (p *Pool) share(n int64, worker int) (from, end int64) {
	k := int64(len(p.workers))
	return n * int64(worker) / k, n * int64(worker+1) / k
}

// Each calls job for 0..n-1 and returns when all are done, or the pool was stopped. It
// must not be called from within a job.
func (p *Pool) Each(n int, job func(worker, i int)) {
	for i := range p.workers {
		w := &p.workers[i]
		from, end := p.share(int64(n), i)
		w.next.Store(from)
		w.end = end
	}
	p.items.Store(int64(n))
	defer p.items.Store(0)
	// Fetching one by one would cost more than tiny jobs, and neighbours that write
	// next to each other belong to one worker.
	p.chunk = max(1, int64(n)/int64(32*len(p.workers)))
	p.job = job
	defer func() { p.job = nil }() // and what it holds, until the next call
	if len(p.workers) == 1 || n < 2 {
		p.drain(0)
		return
	}
	others := len(p.workers) - 1
	p.done.Add(others)
	p.busy.Store(int64(others))
	p.call.Add(1)
	p.wakeAll()
	p.drain(0)
	for i := 0; i < p.spin && p.busy.Load() > 0; i++ {
	}
	p.done.Wait()
}

func (p *Pool) wakeAll() {
	for i := 1; i < len(p.workers); i++ {
		if w := &p.workers[i]; w.asleep.CompareAndSwap(true, false) {
			w.wake <- struct{}{}
		}
	}
}

// serve works on every call in turn: it looks for the next one for a while, then
// sleeps until it is woken.
func (p *Pool) serve(i int) {
	w := &p.workers[i]
	for seen := int64(0); ; {
		for k := 0; k < p.spin && p.call.Load() == seen; k++ {
		}
		// A caller that is slow to wake everybody may wake who has done its part already.
		for p.call.Load() == seen {
			w.asleep.Store(true)
			// The call may have come in between: whoever turns asleep off decides
			// whether there is a token to wait for.
			if p.call.Load() == seen || !w.asleep.CompareAndSwap(true, false) {
				<-w.wake
			}
		}
		if p.closed.Load() {
			return
		}
		seen++
		p.drain(i)
		p.busy.Add(-1)
		p.done.Done()
	}
}

// Serial is Each on the caller alone: for jobs so cheap that waking a goroutine
// costs more than it saves.
func (p *Pool) Serial(n int, job func(worker, i int)) {
	for i := range n {
		if p.stop.Load() {
			return
		}
		job(0, i)
	}
}

func (p *Pool) drain(worker int) {
	for k := range p.workers {
		share := &p.workers[(worker+k)%len(p.workers)]
		for !p.stop.Load() {
			from, to := share.take(p.chunk)
			if from == to {
				break
			}
			for i := from; i < to && !p.stop.Load(); i++ {
				p.job(worker, int(i))
			}
		}
	}
}

// take is the next piece of a share: a chunk, and less towards the end, where
// everybody waits for the last piece.
func (w *worker) take(chunk int64) (from, to int64) {
	for {
		from = w.next.Load()
		left := w.end - from
		if left <= 0 {
			return 0, 0
		}
		to = from + min(chunk, max(1, left/4))
		if w.next.CompareAndSwap(from, to) {
			return from, to
		}
	}
}

// Close ends the workers. No call may be under way.
func (p *Pool) Close() {
	p.closed.Store(true)
	p.call.Add(1)
	p.wakeAll()
}
