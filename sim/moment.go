package sim

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Moment is how far a run has come. It is for showing: nothing of it enters a result.
type Moment struct {
	Method string // that trains: the run's own, or one that it is compared with
	Round  int    // rounds made
	Rounds int    // at most
	Doing  Doing
	// Clients have begun what is being done, of so many; 0 of 0 where they are too quick
	// to be counted.
	Clients, Of int
	// Step is that of the only client in its round, of so many; 0 of 0 where there are
	// several, or steps are not counted.
	Step, Steps int
	// Figure is the judge's last one, if Judged: see Simulation.Round.
	Figure float64
	Judged bool
}

// Doing is what a run is at.
type Doing int32

// A run trains, judges a round's models, or, after the last round, judges the returned
// ones and writes what came out. One that was interrupted writes a checkpoint.
const (
	Training Doing = iota
	Judging
	Finishing
	Stopping
)

// whereabouts are what a Moment is made of; anybody may read them at any time.
type whereabouts struct {
	rounds atomic.Int64
	steps  atomic.Int64 // that the only client has begun in its round
	doing  atomic.Int32
	figure atomic.Uint64
	judged atomic.Bool
}

// Moment is how far the run is. Anybody may ask at any time.
func (s *Simulation) Moment() Moment {
	m := Moment{
		Method: s.run.Algorithm.Kind, Round: int(s.at.rounds.Load()), Rounds: s.run.Algorithm.Rounds, Doing: Doing(s.at.doing.Load()),
		Figure: math.Float64frombits(s.at.figure.Load()), Judged: s.at.judged.Load(),
	}
	if p := s.rounds.Participants; len(p) == 1 && m.Doing == Training {
		m.Step, m.Steps = int(s.at.steps.Load()), p[0].Plan.Steps
	}
	m.Clients, m.Of = s.rounds.pool.Begun()
	if m.Doing == Judging && m.Of > 0 { // the first job is the tally
		m.Clients, m.Of = max(0, m.Clients-1), m.Of-1
	}
	return m
}

// tickEvery is how often a run that is at work says how far it is.
const tickEvery = 100 * time.Millisecond

// ticker calls tick from time to time, also in the middle of a round, and one call after
// another: tick need not be safe for concurrent use.
type ticker struct {
	s    *Simulation
	mu   sync.Mutex
	tick func(Moment)
	end  chan struct{}
	done sync.WaitGroup
}

func (s *Simulation) startTicking(tick func(Moment)) *ticker {
	t := &ticker{s: s, tick: tick, end: make(chan struct{})}
	t.done.Go(func() {
		clock := time.NewTicker(tickEvery)
		defer clock.Stop()
		for {
			select {
			case <-t.end:
				return
			case <-clock.C:
				t.now()
			}
		}
	})
	return t
}

func (t *ticker) now() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tick(t.s.Moment())
}

// stop returns once no call is under way.
func (t *ticker) stop() {
	close(t.end)
	t.done.Wait()
}
