package sim

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/pool"
	"github.com/coterie-fl/coterie/model"
)

// Simulation is one federation in memory.
type Simulation struct {
	run          config.Run
	federation   *data.Federation
	parameters   int
	examples     int             // of a client, on average
	learners     []model.Learner // one a worker
	workers      []fl.Worker
	algorithm    *fl.Algorithm
	sampler      *fl.Sampler
	participants []fl.Participant
	pool         *pool.Pool
	judge        judge

	state    *fl.State
	progress progress
	record   recorder

	round     fl.Round
	broadcast fl.Broadcast
	releases  fl.Releases
	outcome   fl.Outcome
	errs      []error // by client, looked at if one failed
	failed    atomic.Bool
	spent     []spending // by client, as of its last release; nil where epsilon is not added up
	// Method values are made once: a closure a round would be garbage a round.
	respondOne, tallyOrJudgeOne func(worker, i int)
}

// spending is a client's account in short. Its worker writes it, so that counting does
// not fetch every account from another core's cache.
type spending struct {
	releases int
	epsilon  float64
}

// progress is what decides when to stop and what to return.
type progress struct {
	Best      []float64 // hypotheses with the lowest loss so far
	BestLoss  float64
	BestRound int
	Loss      float64 // by the judge
	Error     float64 // share of wrong answers; classes only
	Lambda    float64 // that the server set; auto only
	Shared    float64 // share of the coordinates that all share; auto only
	Stalled   int     // judgements since BestRound
	Stopped   string
	Requests  int    // declined
	Declined  []bool // by client: declined at least once
	Cluster   []int  // by client: where its last release fell; -1 before
}

// Checks are all packages' checks of a run file.
func Checks() []func(config.Run) config.Faults {
	return []func(config.Run) config.Faults{data.Check, model.Check, fl.Check}
}

// New draws or loads the data, from the folder of real data if the run needs it,
// and prepares the first round. Close it after use.
func New(run config.Run, folder *data.Folder) (*Simulation, error) {
	federation, err := folder.Load(run.Data, run.Seed)
	if err != nil {
		return nil, err
	}
	if err := fits(run, federation); err != nil {
		return nil, err
	}
	if run.Algorithm.ClientsPerRound == 0 {
		run.Algorithm.ClientsPerRound = len(federation.Train)
	}
	m, err := model.Of(run, federation.Shape())
	if err != nil {
		return nil, err
	}
	if err := fl.Affordable(run, m.Parameters()); err != nil {
		return nil, err
	}
	algorithm, err := fl.New(run, m, len(federation.Train))
	if err != nil {
		return nil, err
	}
	workers := run.Run.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	a, k := run.Algorithm, len(federation.Train)
	s := &Simulation{
		run: run, federation: federation, parameters: m.Parameters(), algorithm: algorithm,
		sampler:      fl.NewSampler(run.Seed, "client sampling", k, a.ClientsPerRound, a.Sampling == "balanced"),
		participants: make([]fl.Participant, k),
		pool:         pool.New(workers),
		workers:      make([]fl.Worker, workers),
		state:        algorithm.Start(),
		errs:         make([]error, k),
	}
	if run.Privacy.Protects == "update" || run.Privacy.Protects == "nothing" {
		s.spent = make([]spending, k)
	}
	for range workers {
		learner, err := m.Learner()
		if err != nil {
			s.Close()
			return nil, err
		}
		s.learners = append(s.learners, learner)
	}
	for i := range s.participants {
		s.examples += federation.Train[i].Len()
		s.participants[i] = fl.Participant{ID: i, Data: &federation.Train[i], Name: federation.Train[i].Name, Uncovered: federation.NotCovered}
	}
	s.examples = max(1, s.examples/k)
	s.pool.Each(k, func(_, i int) { s.errs[i] = algorithm.Prepare(&s.participants[i]) })
	if err := s.firstError(k); err != nil {
		s.Close()
		return nil, err
	}
	s.judge = newJudge(s)
	s.progress = progress{
		Loss: math.Inf(1), BestLoss: math.Inf(1), Best: slices.Clone(s.state.Hypotheses),
		Declined: make([]bool, k), Cluster: slices.Repeat([]int{-1}, k),
	}
	s.record = newRecorder(len(s.state.Hypotheses)/s.parameters, s.parameters, k, s.state.Hypotheses)
	s.respondOne, s.tallyOrJudgeOne = s.respond, s.tallyOrJudge
	return s, nil
}

// fits holds the run file against the data, once they are known.
func fits(run config.Run, f *data.Federation) error {
	var c config.Checker
	fl.CheckCounts(&c, run, len(f.Train), len(f.Validation))
	held, names := 0, f.Names()
	for i := range f.Train {
		if f.Train[i].Held != nil {
			held += f.Train[i].Held.Len()
		}
	}
	c.Require(run.Judge.By != "own" || held > 0, "judge.by", "is own, but nobody holds out examples; set data.test_share, or judge by clients")
	for i, own := range run.Privacy.Silos {
		c.Require(slices.Contains(names, own.Name), fmt.Sprintf("privacy.silos.%d.name", i),
			"%q is no participant of data.kind %s; the first ones are %q", own.Name, run.Data.Kind, names[:min(3, len(names))])
	}
	if faults := c.Faults(); faults != nil {
		return faults
	}
	return nil
}

// Run is the run file.
func (s *Simulation) Run() config.Run { return s.run }

// Federation is the data that the run is made on.
func (s *Simulation) Federation() *data.Federation { return s.federation }

// Close ends the simulation's goroutines.
func (s *Simulation) Close() { s.pool.Close() }

// each does a job for so many clients; a few cheap ones are less work than waking
// a goroutine.
func (s *Simulation) each(clients int, job func(worker, i int)) {
	if clients*len(s.state.Hypotheses)*s.examples < 10_000 {
		s.pool.Serial(clients, job)
		return
	}
	s.pool.Each(clients, job)
}

// Step makes one round. When the run has ended it does nothing and returns false.
func (s *Simulation) Step() (bool, error) {
	if s.progress.Stopped != "" {
		return false, nil
	}
	if err := s.round.Open(s.state.Round, s.sampler.Sample(s.state.Round), s.algorithm.ReleaseLength()); err != nil {
		return false, err
	}
	var err error
	if s.broadcast, err = s.algorithm.Broadcast(s.state); err != nil {
		return false, err
	}
	n := len(s.round.Clients())
	s.each(n, s.respondOne)
	if s.failed.Swap(false) {
		return false, s.firstError(n)
	}
	s.noteDeclined()
	if s.releases, err = s.round.Close(); err != nil {
		return false, err
	}
	if s.outcome = s.algorithm.Aggregate(s.state, s.releases); s.outcome.Err != nil {
		return false, s.outcome.Err
	}
	judged := s.state.Round%s.run.Algorithm.Stop.Every == 0 || s.state.Round >= s.run.Algorithm.Rounds
	if judged {
		jobs, err := s.judge.open(s.state.Hypotheses)
		if err != nil {
			return false, err
		}
		s.each(jobs+1, s.tallyOrJudgeOne)
		if err := s.judge.close(&s.progress); err != nil {
			return false, err
		}
	} else {
		s.tally()
	}
	s.settle(len(s.releases.Clients), judged)
	s.record.add(s, s.releases, s.outcome)
	return s.progress.Stopped == "", nil
}

func (s *Simulation) respond(worker, i int) {
	p := &s.participants[s.round.Clients()[i]]
	released, err := fl.RespondOpenly(s.algorithm, &s.workers[worker], s.broadcast, p, s.round.Slot(i))
	switch {
	case err != nil:
	case released:
		if s.spent != nil {
			s.spent[p.ID] = spending{int(p.Account.Releases), p.Account.Epsilon()}
		}
		err = s.round.Released(i)
	default:
		err = s.round.Declined(i)
	}
	if err != nil {
		s.errs[i] = err
		s.failed.Store(true)
	}
}

// firstError is the lowest client's, whichever worker met one first.
func (s *Simulation) firstError(clients int) (first error) {
	for i, err := range s.errs[:clients] {
		if first == nil {
			first = err
		}
		s.errs[i] = nil
	}
	return first
}

func (s *Simulation) noteDeclined() {
	if s.run.Privacy.Ceiling == nil {
		return
	}
	for i, c := range s.round.Clients() {
		if s.round.HasDeclined(i) {
			s.progress.Declined[c] = true
			s.progress.Requests++
		}
	}
}

// tally notes where the round's releases fell and what they cost.
func (s *Simulation) tally() {
	for i, j := range s.outcome.Assigned {
		s.progress.Cluster[s.releases.Clients[i]] = j
	}
	s.record.tally(s, s.releases, s.outcome)
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
		p.BestLoss, p.BestRound, p.Stalled = p.Loss, s.state.Round, 0
		copy(p.Best, s.state.Hypotheses)
	default:
		p.Stalled++
	}
	switch {
	case released == 0 && !s.anyoneLeft():
		p.Stopped = StoppedBudget
	case stop.Patience > 0 && p.Stalled >= stop.Patience:
		p.Stopped = StoppedPatience
	case s.state.Round >= s.run.Algorithm.Rounds:
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
		if !declined && s.participants[i].Account.Allows(next, *s.run.Privacy.Ceiling) {
			return true
		}
	}
	return false
}

// Round is the number of rounds made, and the judge's last figure: the share of wrong
// answers of own examples' classes, the loss otherwise.
func (s *Simulation) Round() (made int, figure float64) {
	if s.run.Judge.By == "own" && s.federation.Shape().Classes > 0 && s.state.Round > 0 {
		return s.state.Round, s.progress.Error
	}
	return s.state.Round, s.progress.Loss
}

// Returned are the hypotheses that the run returns, one after another.
func (s *Simulation) Returned() []float64 {
	if s.run.Algorithm.Stop.Return == "last" {
		return s.state.Hypotheses
	}
	return s.progress.Best
}

// ownModels says that every participant's own model is part of what the run returns.
func (s *Simulation) ownModels() bool {
	return s.run.Judge.By == "own" || s.algorithm.Outline().Personal
}

// tensors are the returned models in index order: the server's; every participant's
// own, where it is judged or kept; and the constants that participants scale their
// features by, where they paid for them.
func (s *Simulation) tensors() ([]model.Tensor[float64], error) {
	var out []model.Tensor[float64]
	add := func(values []float64, name string, i int, part string) {
		out = append(out, model.Tensor[float64]{Name: fmt.Sprintf("%s.%d%s", name, i, part), Shape: []int{len(values)}, Values: values})
	}
	for j, v := range vectors(s.Returned(), s.parameters) {
		add(v, "hypothesis", j, "")
	}
	if !s.ownModels() {
		return out, nil
	}
	b, err := s.algorithm.Broadcast(s.state)
	if err != nil {
		return nil, err
	}
	for i := range s.participants {
		own := make([]float64, s.parameters)
		s.algorithm.Adopt(own, b, &s.participants[i], s.learners[0])
		add(own, "client", i, "")
	}
	for i := range s.participants {
		if centre, scale, ok := s.participants[i].Moments(); ok {
			add(centre, "client", i, ".centre")
			add(scale, "client", i, ".scale")
		}
	}
	return out, nil
}
