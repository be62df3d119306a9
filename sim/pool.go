package sim

import (
	"sync"
	"sync/atomic"

	"github.com/coterie-fl/coterie/fl"
)

// pool spreads independent work over goroutines. Which of them does what never
// shows in a result: every item writes to its own place.
type pool struct {
	workers []fl.Worker
	wake    []chan struct{}
	done    sync.WaitGroup

	next  atomic.Int64
	items int64
	chunk int64
	work  func(w *fl.Worker, i int)
}

func newPool(workers int) *pool {
	p := &pool{workers: make([]fl.Worker, workers), wake: make([]chan struct{}, workers)}
	for i := 1; i < workers; i++ { // the caller is worker 0
		p.wake[i] = make(chan struct{})
		go func() {
			for range p.wake[i] {
				p.drain(&p.workers[i])
				p.done.Done()
			}
		}()
	}
	return p
}

// each calls work for 0..n-1. Cheap work stays on the caller: waking a goroutine
// costs more than it saves.
func (p *pool) each(n int, cheap bool, work func(w *fl.Worker, i int)) {
	if cheap || len(p.workers) == 1 || n < 2 {
		for i := range n {
			work(&p.workers[0], i)
		}
		return
	}
	p.next.Store(0)
	p.items, p.work = int64(n), work
	p.chunk = max(1, int64(n)/int64(16*len(p.workers)))
	p.done.Add(len(p.workers) - 1)
	for _, c := range p.wake[1:] {
		c <- struct{}{}
	}
	p.drain(&p.workers[0])
	p.done.Wait()
}

func (p *pool) drain(w *fl.Worker) {
	for {
		end := p.next.Add(p.chunk)
		start := end - p.chunk
		if start >= p.items {
			return
		}
		for i := start; i < min(end, p.items); i++ {
			p.work(w, int(i))
		}
	}
}

func (p *pool) close() {
	for _, c := range p.wake[1:] {
		close(c)
	}
}
