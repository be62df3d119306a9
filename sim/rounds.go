package sim

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
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
	sum     *fl.Sum    // nil before the first round that is summed up
	turn    sync.Mutex // of rounds that are summed up
	freed   sync.Cond
	kept    int      // how many values of a round's releases may be kept
	before  []before // by worker
	stop    *atomic.Bool
	errs    []error // by participant, looked at if one failed
	failed  atomic.Bool
	after   func(p *fl.Participant) // what follows a release, on its worker; nil: nothing
	liars   *liars                  // nil: everybody is honest
	crowd   *crowd                  // in the stead of Participants; nil: they are held
	respond func(worker, i int)     // made once: a closure a round would be garbage a round
}

// NewRounds prepares participants, which need ID and Data, for their first round. Workers
// of 0 are one a core. Once stop is set, which may be at any time, whatever is under way
// ends with ErrInterrupted. Close it after use.
func NewRounds(a *fl.Algorithm, participants []fl.Participant, workers int, stop *atomic.Bool) (*Rounds, error) {
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	k, examples := len(participants), 0
	r := newRounds(a, workers, k, stop)
	r.Participants = participants
	for i := range participants {
		examples += participants[i].Data.Len()
	}
	r.work = len(r.State.Hypotheses) * max(1, examples/max(1, k))
	r.pool.Each(k, func(_, i int) { r.errs[i] = a.Prepare(&participants[i]) })
	err := r.firstError(k)
	if err == nil {
		err = r.interrupted()
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func newRounds(a *fl.Algorithm, workers, asked int, stop *atomic.Bool) *Rounds {
	r := &Rounds{
		Algorithm: a, State: a.Start(),
		pool: pool.New(workers), workers: make([]fl.Worker, workers), errs: make([]error, asked),
		before: make([]before, workers), stop: stop, kept: keptValues,
	}
	r.pool.StopBy(stop)
	r.respond, r.freed.L = r.respondOne, &r.turn
	return r
}

// interrupted is ErrInterrupted once somebody has stopped the rounds. What was computed
// before it is asked is whole if it says nil, and may not be otherwise.
func (r *Rounds) interrupted() error {
	if r.stop.Load() {
		return ErrInterrupted
	}
	return nil
}

// Close ends the goroutines.
func (r *Rounds) Close() { r.pool.Close() }

// forget drops the memory that rounds are made in. None may be under way.
func (r *Rounds) forget() {
	clear(r.workers)
	r.round, r.sum, r.Releases = fl.Round{}, nil, fl.Releases{}
}

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
func (r *Rounds) Make(clients []int) error {
	if r.crowd != nil {
		r.crowd.admit(clients)
	}
	var err error
	if sum := r.sumFor(len(clients)); sum != nil {
		err = r.round.OpenSum(r.State.Round, clients, sum, r.places())
	} else {
		err = r.round.Open(r.State.Round, clients, r.Algorithm.ReleaseLength())
	}
	if err != nil {
		return err
	}
	return r.complete()
}

// keptValues is up to how many values a round's releases are kept until all are there:
// to add small ones up as they come would cost more than their memory.
const keptValues = 1 << 20

// KeepReleases has all later rounds keep their releases, however large, for whoever looks at
// them one by one.
func (r *Rounds) KeepReleases() { r.kept = math.MaxInt }

// sumFor is what so many clients' releases are added to as they come; nil: they are kept.
func (r *Rounds) sumFor(clients int) *fl.Sum {
	if clients*r.Algorithm.ReleaseLength() <= r.kept {
		return nil
	}
	if r.sum == nil {
		r.sum = r.Algorithm.NewSum()
	}
	return r.sum
}

// places is for how many releases of a summed round there is room: one by worker, that is
// trained, and half as many that wait for an earlier client. One worker alone takes client
// after client, and nothing waits.
func (r *Rounds) places() int {
	return len(r.workers) + len(r.workers)/2
}

// reopen goes on with a round that has some answers.
func (r *Rounds) reopen(a fl.Answers) error {
	if sum := r.sumFor(len(a.Clients)); sum != nil {
		return r.round.ReopenSum(a, sum, r.places())
	}
	return r.round.Reopen(a, r.Algorithm.ReleaseLength())
}

// complete has everybody respond who has not yet, and ends the round. If it is
// interrupted, the round stays open, with the answers that were finished; those who had
// begun one are as they were before.
func (r *Rounds) complete() (err error) {
	if r.Broadcast, err = r.Algorithm.Broadcast(r.State); err != nil {
		return err
	}
	asked := len(r.round.Clients())
	if r.round.Summed() {
		r.round.Continue()
	}
	r.Each(asked, r.respond)
	if r.failed.Swap(false) {
		return r.firstError(asked)
	}
	if err := r.interrupted(); err != nil {
		return err
	}
	if r.Releases, err = r.round.Close(); err != nil {
		return err
	}
	r.Outcome = r.Algorithm.Aggregate(r.State, r.Releases)
	return r.Outcome.Err
}

// before is what a participant held before the answer that its worker is at.
type before struct {
	data           *data.Client
	scaled         bool
	account        account.Metric
	switched       float64
	kept           fl.Kept
	personal, last []float64 // which answers write over
	training       [2][]float64
	watched        mech.StepTrace
	_              [128]byte // the next worker's fields lie on other cache lines
}

func (b *before) note(p *fl.Participant) {
	b.data, b.scaled, b.account, b.switched, b.kept = p.Data, p.Scaled, p.Account, p.Switch, p.Kept
	b.personal, b.last = append(b.personal[:0], p.Personal...), append(b.last[:0], p.Last...)
	if p.Watch != nil {
		b.watched = *p.Watch
	}
	b.training[0], b.training[1] = append(b.training[0][:0], p.Training.First...), append(b.training[1][:0], p.Training.Second...)
}

func (b *before) restore(p *fl.Participant) {
	p.Data, p.Scaled, p.Account, p.Switch, p.Kept, p.Mishap = b.data, b.scaled, b.account, b.switched, b.kept, nil
	copy(p.Personal, b.personal)
	copy(p.Last, b.last)
	if p.Watch != nil {
		*p.Watch = b.watched
	}
	copy(p.Training.First, b.training[0])
	copy(p.Training.Second, b.training[1])
	// Steps have written elsewhere, and may write here once they are opened again.
	clip := &p.Training.Clip
	clip.Gradient, clip.Direction = slices.Clone(clip.Gradient), slices.Clone(clip.Direction)
}

// respondOne has the i-th client respond; in a round that is summed up, the next one in
// client order, whatever i is.
func (r *Rounds) respondOne(worker, i int) {
	if !r.round.Summed() {
		if !r.round.Answered(i) { // or before the round was interrupted
			r.respondTo(worker, i, r.round.Slot(i))
		}
		return
	}
	if i, slot, ok := r.next(); ok {
		r.respondTo(worker, i, slot)
	}
}

// next waits for a client's turn in a round that is summed up; false: nobody is left, or
// the round was halted.
func (r *Rounds) next() (i int, slot []float64, ok bool) {
	r.turn.Lock()
	defer r.turn.Unlock()
	for {
		i, slot, turn := r.round.Next()
		if turn != fl.TurnLater {
			return i, slot, turn == fl.TurnReady
		}
		r.freed.Wait()
	}
}

// settle notes a client's answer.
func (r *Rounds) settle(i int, released bool) error {
	if r.round.Summed() {
		r.turn.Lock()
		defer r.turn.Unlock()
		defer r.freed.Broadcast()
	}
	if released {
		return r.round.Released(i)
	}
	return r.round.Declined(i)
}

// halt has nobody begin any more in a round that is summed up: the i-th client gives no
// answer for now.
func (r *Rounds) halt(i int) {
	if r.round.Summed() {
		r.turn.Lock()
		defer r.turn.Unlock()
		defer r.freed.Broadcast()
		r.round.Halt(i)
	}
}

func (r *Rounds) respondTo(worker, i int, slot []float64) {
	p, err := r.participant(worker, r.round.Clients()[i])
	if err != nil {
		r.fail(i, err)
		return
	}
	r.before[worker].note(p)
	released, err := fl.RespondOpenly(r.Algorithm, &r.workers[worker], r.Broadcast, p, slot)
	if r.stop.Load() { // perhaps before the answer was whole
		r.before[worker].restore(p)
		r.halt(i)
		return
	}
	if err == nil && r.crowd != nil {
		err = r.crowd.leave(p)
	}
	switch {
	case err != nil:
	case released:
		if r.after != nil {
			r.after(p)
		}
		if r.liars != nil {
			r.liars.forge(&r.Broadcast, p, slot)
		}
		err = r.settle(i, true)
	default:
		err = r.settle(i, false)
	}
	if err != nil {
		r.fail(i, err)
	}
}

// participant is a client, in a worker's seat if it is not held.
func (r *Rounds) participant(worker, client int) (*fl.Participant, error) {
	if r.crowd != nil {
		return r.crowd.enter(worker, client)
	}
	return &r.Participants[client], nil
}

// Count is how many participants there are.
func (r *Rounds) Count() int {
	if r.crowd != nil {
		return r.crowd.clients.Len()
	}
	return len(r.Participants)
}

// fail ends the round with the i-th client's error.
func (r *Rounds) fail(i int, err error) {
	r.errs[i] = err
	r.failed.Store(true)
	r.halt(i)
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

// Step makes one round, or what is left of it after an interruption. When the run has
// ended it does nothing and returns false. If Until's context ends it returns
// ErrInterrupted: finished answers are kept, the others' participants are as before.
func (s *Simulation) Step() (bool, error) {
	if s.progress.Stopped != "" {
		return false, nil
	}
	if !s.made.Whole {
		if err := s.makeRound(); err != nil {
			return false, err
		}
	}
	judged := s.rounds.State.Round%s.run.Algorithm.Stop.Every == 0 || s.rounds.State.Round >= s.run.Algorithm.Rounds
	if judged = judged && !s.unjudged; judged {
		if err := s.judgeRound(); err != nil {
			return false, err
		}
	} else {
		s.tally()
	}
	s.settle(s.made.Released, judged)
	s.record.add(s, s.made)
	s.made = made{}
	s.publish()
	return s.progress.Stopped == "", nil
}

// made is what is known of a round between its aggregation and its judgement.
type made struct {
	Whole                         bool // the server's models are those after the round
	Tallied                       bool
	Released, Declined, Relocated int
}

// Round is the number of rounds made, and the judge's last figure: the share of wrong
// answers of own examples' classes, the loss otherwise.
func (s *Simulation) Round() (made int, figure float64) {
	if s.run.Judge.By != "clients" && s.classes() > 0 && s.rounds.State.Round > 0 {
		return s.rounds.State.Round, s.progress.Error
	}
	return s.rounds.State.Round, s.progress.Loss
}

// projects says that the run finds a projection, which gives no answers.
func (s *Simulation) projects() bool { return s.run.Model.Kind == "projection" }

// classes is how many the run's answers are of; 0: there are none.
func (s *Simulation) classes() int {
	if s.projects() {
		return 0
	}
	return s.federation.Shape().Classes
}

// publish says how far the run is to whoever asks meanwhile.
func (s *Simulation) publish() {
	_, figure := s.Round()
	s.at.rounds.Store(int64(s.rounds.State.Round))
	s.at.figure.Store(math.Float64bits(figure))
	s.at.judged.Store(s.progress.BestRound > 0 || s.progress.Stalled > 0)
}

// makeRound goes up to the aggregation.
func (s *Simulation) makeRound() (err error) {
	s.at.steps.Store(0)
	s.at.doing.Store(int32(Training))
	if s.rounds.round.IsOpen() {
		err = s.rounds.complete()
	} else {
		err = s.rounds.Make(s.sampler.Sample(s.rounds.State.Round))
	}
	if err != nil {
		return err
	}
	for _, c := range s.rounds.round.Decliners() {
		if s.rounds.crowd != nil {
			s.rounds.crowd.of(c).Declined = true
		} else {
			s.progress.Declined[c] = true
		}
		s.progress.Requests++
	}
	r := s.rounds.Releases
	s.made = made{Whole: true, Released: len(r.Clients), Declined: r.Declined, Relocated: s.rounds.Outcome.Relocated}
	return nil
}

// judgeRound judges the round that was made, and tallies it beside that. An interruption
// loses the judge's work, and nothing else.
func (s *Simulation) judgeRound() error {
	s.at.doing.Store(int32(Judging))
	jobs, err := s.judge.open(s.rounds.State.Hypotheses)
	if err != nil {
		return err
	}
	s.rounds.Each(jobs+1, s.tallyOrJudgeOne)
	if err := s.rounds.interrupted(); err != nil {
		s.tally() // if there was no time for it
		var unused progress
		_ = s.judge.close(&unused) // of what some were asked when they were stopped
		return err
	}
	return s.judge.close(&s.progress)
}

// noteSpent is what follows a release.
func (s *Simulation) noteSpent(p *fl.Participant) {
	s.spent[p.ID] = spending{int(p.Account.Releases), p.Account.Epsilon()}
}

// spentBy is a client's account in short.
func (s *Simulation) spentBy(client int) spending {
	if c := s.rounds.crowd; c != nil {
		account := &c.of(client).Account
		return spending{int(account.Releases), account.Epsilon()}
	}
	return s.spent[client]
}

// tally notes, once, where the round's releases fell and what they cost.
func (s *Simulation) tally() {
	if s.made.Tallied {
		return
	}
	s.made.Tallied = true
	for i, j := range s.rounds.Outcome.Assigned {
		if c := s.rounds.Releases.Clients[i]; s.rounds.crowd != nil {
			s.rounds.crowd.of(c).Fell = j
		} else {
			s.progress.Cluster[c] = j
		}
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
	if c := s.rounds.crowd; c != nil && c.anyoneLeft(next, *s.run.Privacy.Ceiling) {
		return true
	}
	for i, declined := range s.progress.Declined {
		if !declined && s.rounds.Participants[i].Account.Allows(next, *s.run.Privacy.Ceiling) {
			return true
		}
	}
	return false
}
