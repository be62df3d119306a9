// Package pool spreads independent jobs over goroutines.
package pool

import (
	"sync"
	"sync/atomic"
)

// Pool runs jobs on a fixed number of workers. Which worker does what must never
// show in a result: every job writes to its own place.
type Pool struct {
	workers int
	wake    []chan struct{}
	done    sync.WaitGroup

	next  atomic.Int64
	items int64
	chunk int64
	job   func(worker, i int)
}

// New starts the workers but one: the caller of Each is worker 0.
func New(workers int) *Pool {
	p := &Pool{workers: max(1, workers), wake: make([]chan struct{}, max(1, workers))}
	for i := 1; i < p.workers; i++ {
		p.wake[i] = make(chan struct{})
		go func() {
			for range p.wake[i] {
				p.drain(i)
				p.done.Done()
			}
		}()
	}
	return p
}

// Workers is how many jobs run at the same time.
func (p *Pool) Workers() int { return p.workers }

// Each calls job for 0..n-1 and returns when all are done. It must not be called
// from within a job.
func (p *Pool) Each(n int, job func(worker, i int)) {
	if p.workers == 1 || n < 2 {
		p.Serial(n, job)
		return
	}
	p.next.Store(0)
	p.items, p.job = int64(n), job
	p.chunk = max(1, int64(n)/int64(16*p.workers)) // fetching one by one would cost more than tiny jobs
	p.done.Add(p.workers - 1)
	for _, c := range p.wake[1:] {
		c <- struct{}{}
	}
	p.drain(0)
	p.done.Wait()
}

// Serial is Each on the caller alone: for jobs so cheap that waking a goroutine
// costs more than it saves.
func (p *Pool) Serial(n int, job func(worker, i int)) {
	for i := range n {
		job(0, i)
	}
}

func (p *Pool) drain(worker int) {
	for {
		end := p.next.Add(p.chunk)
		for i := end - p.chunk; i < min(end, p.items); i++ {
			p.job(worker, int(i))
		}
		if end >= p.items {
			return
		}
	}
}

// Close ends the workers.
func (p *Pool) Close() {
	for _, c := range p.wake[1:] {
		close(c)
	}
}
