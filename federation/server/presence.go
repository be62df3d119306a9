package server

import (
	"slices"
	"sync"
	"time"
)

// absence is how long a participant may be silent and still count as present.
const absence = time.Minute

// presence is who has been heard of. It decides when a round is worth opening, and
// nothing else.
type presence struct {
	mu    sync.Mutex
	last  []time.Time
	polls []int
	out   []bool // declined the rest of the run
	home  []bool // has fetched the models
	due   []bool // has released, and so is to have them
	away  []bool // has no connection, as far as connections are known
	gone  int    // how often somebody declined the rest of the run
}

func newPresence(n int) presence {
	return presence{last: make([]time.Time, n), polls: make([]int, n), out: make([]bool, n), home: make([]bool, n), due: make([]bool, n), away: make([]bool, n)}
}

// joined forgets that a participant had declined: it may have another policy now.
func (p *presence) joined(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out[i] = false
}

func (p *presence) heard(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[i] = time.Now()
}

func (p *presence) waits(i, change int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.polls[i] += change
	p.last[i] = time.Now()
}

func (p *presence) leaves(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out[i] = true
	p.gone++
}

// departures changes whenever somebody declines the rest of the run.
func (p *presence) departures() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone
}

func (p *presence) hasLeft(i int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out[i]
}

// misses notes that a participant has no connection, or has one again.
func (p *presence) misses(i int, away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away[i] = away
}

// done says whether a participant may go: it has the models, or wants nothing more.
func (p *presence) done(i int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.home[i] || p.out[i]
}

// standing is who has declined the rest, and who has the models.
func (p *presence) standing() (out, home []bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.out), slices.Clone(p.home)
}

// served notes that a participant has what it came for.
func (p *presence) served(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.home[i] = true
}

// paid notes that a participant has released.
func (p *presence) paid(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due[i] = true
}

// allServed says whether nobody is left to wait for.
func (p *presence) allServed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.home {
		if !p.home[i] && (!p.out[i] || p.due[i]) {
			return false
		}
	}
	return true
}

// count is how many are present, and how many have left for good.
func (p *presence) count() (present, left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for i := range p.last {
		switch {
		case p.out[i]:
			left++
		case p.away[i]: // whatever it asked for, it is not there to get it
		case p.polls[i] > 0 || (!p.last[i].IsZero() && now.Sub(p.last[i]) < absence):
			present++
		}
	}
	return present, left
}

// bell wakes everybody who waits for a change.
type bell struct {
	mu sync.Mutex
	ch chan struct{}
}

// next is closed at the next ring.
func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ch
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
	}
	b.ch = make(chan struct{})
}
