package sim

import (
	"runtime"
	"sync/atomic"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/pool"
)

// Rounds are made among participants in one process. It is what simulations and the
// pivot run of a sweep drive: the server's half, then everybody's, then the server's
// again.
type Rounds struct {
	Algorithm    *fl.Algorithm
	Participants []fl.Participant
	State        *fl.State
	// Broadcast, Releases and Outcome are of the last round.
	Broadcast fl.Broadcast
	Releases  fl.Releases
	Outcome   fl.Outcome

	pool    *pool.Pool
	workers []fl.Worker
	work    int // about how much one participant's answer is
	round   fl.Round
	errs    []error // by participant, looked at if one failed
	failed  atomic.Bool
	after   func(p *fl.Participant) // what follows a release, on its worker; nil: nothing
	respond func(worker, i int)     // made once: a closure a round would be garbage a round
}

// NewRounds prepares participants, which need ID and Data, for their first round. Workers
// of 0 are one a core. Close it after use.
func NewRounds(a *fl.Algorithm, participants []fl.Participant, workers int) (*Rounds, error) {
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	k, examples := len(participants), 0
	r := &Rounds{
		Algorithm: a, Participants: participants, State: a.Start(),
		pool: pool.New(workers), workers: make([]fl.Worker, workers), errs: make([]error, k),
	}
	r.respond = r.respondOne
	for i := range participants {
		examples += participants[i].Data.Len()
	}
	r.work = len(r.State.Hypotheses) * max(1, examples/max(1, k))
	r.pool.Each(k, func(_, i int) { r.errs[i] = a.Prepare(&participants[i]) })
	if err := r.firstError(k); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close ends the goroutines.
func (r *Rounds) Close() { r.pool.Close() }

// Workers is how many goroutines work at once.
func (r *Rounds) Workers() int { return len(r.workers) }

// Each does a job for so many participants; a few cheap ones are less work than waking a
// goroutine.
func (r *Rounds) Each(n int, job func(worker, i int)) {
	if n*r.work < 10_000 {
		r.pool.Serial(n, job)
		return
	}
	r.pool.Each(n, job)
}

// Make makes one round among some participants, by their numbers in ascending order.
func (r *Rounds) Make(clients []int) (err error) {
	if err := r.round.Open(r.State.Round, clients, r.Algorithm.ReleaseLength()); err != nil {
		return err
	}
	if r.Broadcast, err = r.Algorithm.Broadcast(r.State); err != nil {
		return err
	}
	r.Each(len(clients), r.respond)
	if r.failed.Swap(false) {
		return r.firstError(len(clients))
	}
	if r.Releases, err = r.round.Close(); err != nil {
		return err
	}
	r.Outcome = r.Algorithm.Aggregate(r.State, r.Releases)
	return r.Outcome.Err
}

// hasDeclined says whether the i-th of the last round's participants declined.
func (r *Rounds) hasDeclined(i int) bool { return r.round.HasDeclined(i) }

func (r *Rounds) respondOne(worker, i int) {
	p := &r.Participants[r.round.Clients()[i]]
	released, err := fl.RespondOpenly(r.Algorithm, &r.workers[worker], r.Broadcast, p, r.round.Slot(i))
	switch {
	case err != nil:
	case released:
		if r.after != nil {
			r.after(p)
		}
		err = r.round.Released(i)
	default:
		err = r.round.Declined(i)
	}
	if err != nil {
		r.errs[i] = err
		r.failed.Store(true)
	}
}

// firstError is the lowest participant's, whichever worker met one first.
func (r *Rounds) firstError(n int) (first error) {
	for i, err := range r.errs[:n] {
		if first == nil {
			first = err
		}
		r.errs[i] = nil
	}
	return first
}

// Step makes one round. When the run has ended it does nothing and returns false.
func (s *Simulation) Step() (bool, error) {
	if s.progress.Stopped != "" {
		return false, nil
	}
	clients := s.sampler.Sample(s.rounds.State.Round)
	if err := s.rounds.Make(clients); err != nil {
		return false, err
	}
	s.noteDeclined(clients)
	judged := s.rounds.State.Round%s.run.Algorithm.Stop.Every == 0 || s.rounds.State.Round >= s.run.Algorithm.Rounds
	if judged {
		jobs, err := s.judge.open(s.rounds.State.Hypotheses)
		if err != nil {
			return false, err
		}
		s.rounds.Each(jobs+1, s.tallyOrJudgeOne)
		if err := s.judge.close(&s.progress); err != nil {
			return false, err
		}
	} else {
		s.tally()
	}
	s.settle(len(s.rounds.Releases.Clients), judged)
	s.record.add(s, s.rounds.Releases, s.rounds.Outcome)
	return s.progress.Stopped == "", nil
}

// noteSpent is what follows a release.
func (s *Simulation) noteSpent(p *fl.Participant) {
	s.spent[p.ID] = spending{int(p.Account.Releases), p.Account.Epsilon()}
}

func (s *Simulation) noteDeclined(clients []int) {
	if s.rounds.Releases.Declined == 0 {
		return
	}
	for i, c := range clients {
		if s.rounds.hasDeclined(i) {
			s.progress.Declined[c] = true
			s.progress.Requests++
		}
	}
}

// tally notes where the round's releases fell and what they cost.
func (s *Simulation) tally() {
	for i, j := range s.rounds.Outcome.Assigned {
		s.progress.Cluster[s.rounds.Releases.Clients[i]] = j
	}
	s.record.tally(s, s.rounds.Releases, s.rounds.Outcome)
}

// tallyOrJudge is the tally as the first job, and then the judge's: neither needs
// anything of the other.
func (s *Simulation) tallyOrJudge(worker, i int) {
	if i == 0 {
		s.tally()
		return
	}
	s.judge.score(worker, i-1)
}

// mean adds in order, so that it does not depend on the workers.
func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// settle keeps the best models and decides whether the run ends.
func (s *Simulation) settle(released int, judged bool) {
	p, stop := &s.progress, s.run.Algorithm.Stop
	switch {
	case !judged:
	case p.Loss < p.BestLoss:
		p.BestLoss, p.BestRound, p.Stalled = p.Loss, s.rounds.State.Round, 0
		copy(p.Best, s.rounds.State.Hypotheses)
	default:
		p.Stalled++
	}
	switch {
	case released == 0 && !s.anyoneLeft():
		p.Stopped = StoppedBudget
	case stop.Patience > 0 && p.Stalled >= stop.Patience:
		p.Stopped = StoppedPatience
	case s.rounds.State.Round >= s.run.Algorithm.Rounds:
		p.Stopped = StoppedRounds
	}
}

// anyoneLeft says whether some client may still release under its ceiling. Who
// declined once declines for good; of the others the account tells.
func (s *Simulation) anyoneLeft() bool {
	if s.run.Privacy.Ceiling == nil {
		return true
	}
	next := event.MetricLaplace{Dimension: s.parameters, NoiseMultiplier: s.run.Privacy.NoiseMultiplier, Radius: 1}
	for i, declined := range s.progress.Declined {
		if !declined && s.rounds.Participants[i].Account.Allows(next, *s.run.Privacy.Ceiling) {
			return true
		}
	}
	return false
}
