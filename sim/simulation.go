package sim

import (
	"errors"
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
	algorithm    fl.Algorithm
	sampler      *fl.Sampler
	validators   *fl.Sampler // nil: all of them, every time
	participants []fl.Participant
	pool         *pool.Pool

	state    *fl.State
	progress progress
	record   recorder

	round     fl.Round
	broadcast fl.Broadcast
	asked     []int
	releases  fl.Releases
	outcome   fl.Outcome
	losses    []float64
	errs      []error // by client of the round, looked at if one failed
	misjudged []error // by worker: why a figure is wrong
	failed    atomic.Bool
	spent     []spending // by client, as of its last release
	// Method values are made once: a closure a round would be garbage a round.
	respondOne, validateOne, tallyOrValidateOne, trainLossOne func(worker, i int)
}

// spending is a client's account in short. Its worker writes it, so that counting does
// not fetch every account from another core's cache.
type spending struct {
	releases int
	epsilon  float64
}

// progress is what decides when to stop and what to return.
type progress struct {
	Best      []float64 // hypotheses with the lowest validation loss so far
	BestLoss  float64
	BestRound int
	Loss      float64
	Stalled   int // validations since BestRound
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
	if run.Algorithm.ClientsPerRound == 0 {
		run.Algorithm.ClientsPerRound = len(federation.Train)
	}
	var c config.Checker
	fl.CheckCounts(&c, run.Algorithm, len(federation.Train), len(federation.Validation))
	if faults := c.Faults(); faults != nil {
		return nil, faults
	}
	m, err := model.Of(run, federation.Shape())
	if err != nil {
		return nil, err
	}
	if err := fl.Affordable(run, m.Parameters()); err != nil {
		return nil, err
	}
	group, err := fl.NewGroup(run, m)
	if err != nil {
		return nil, err
	}
	workers := run.Run.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	a := run.Algorithm
	s := &Simulation{
		run: run, federation: federation, parameters: group.Model().Parameters(), algorithm: group,
		sampler:      fl.NewSampler(run.Seed, "client sampling", len(federation.Train), a.ClientsPerRound, a.Sampling == "balanced"),
		participants: make([]fl.Participant, len(federation.Train)),
		pool:         pool.New(workers),
		workers:      make([]fl.Worker, workers),
		state:        group.Start(),
		losses:       make([]float64, max(len(federation.Train), len(federation.Validation))),
		errs:         make([]error, a.ClientsPerRound),
		misjudged:    make([]error, workers),
		spent:        make([]spending, len(federation.Train)),
	}
	for range workers {
		s.learners = append(s.learners, group.Model().Learner())
	}
	if v := a.Stop.ValidationClients; v > 0 && v < len(federation.Validation) {
		s.validators = fl.NewSampler(run.Seed, "validation sampling", len(federation.Validation), v, false)
	}
	for i := range s.participants {
		s.examples += federation.Train[i].Len()
		s.participants[i] = fl.Participant{ID: i, Data: &federation.Train[i]}
		if err := group.Prepare(&s.participants[i]); err != nil {
			return nil, err
		}
	}
	s.examples = max(1, s.examples/len(s.participants))
	s.progress = progress{
		Loss: math.Inf(1), BestLoss: math.Inf(1), Best: slices.Clone(s.state.Hypotheses),
		Declined: make([]bool, len(s.participants)), Cluster: slices.Repeat([]int{-1}, len(s.participants)),
	}
	s.record = newRecorder(a.Hypotheses, s.parameters, len(s.participants), s.state.Hypotheses)
	s.respondOne, s.validateOne, s.trainLossOne = s.respond, s.validate, s.trainLoss
	s.tallyOrValidateOne = s.tallyOrValidate
	return s, nil
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
	s.outcome = s.algorithm.Aggregate(s.state, s.releases)
	validated := s.state.Round%s.run.Algorithm.Stop.Every == 0 || s.state.Round >= s.run.Algorithm.Rounds
	if validated {
		n := s.askValidators(s.state.Hypotheses)
		s.each(n+1, s.tallyOrValidateOne)
		if err := s.judgeError(); err != nil {
			return false, err
		}
		s.progress.Loss = mean(s.losses[:n])
	} else {
		s.tally()
	}
	s.settle(len(s.releases.Clients), validated)
	s.record.add(s, s.releases, s.outcome)
	return s.progress.Stopped == "", nil
}

func (s *Simulation) respond(worker, i int) {
	p := &s.participants[s.round.Clients()[i]]
	released, err := fl.RespondOpenly(s.algorithm, &s.workers[worker], s.broadcast, p, s.round.Slot(i))
	switch {
	case err != nil:
	case released:
		s.spent[p.ID] = spending{int(p.Account.Releases), p.Account.Epsilon()}
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
	for i, c := range s.releases.Clients {
		s.progress.Cluster[c] = s.outcome.Assigned[i]
	}
	s.record.tally(s, s.releases, s.outcome)
}

// tallyOrValidate is the tally as the first job, and then the validators: neither
// needs anything of the other.
func (s *Simulation) tallyOrValidate(worker, i int) {
	if i == 0 {
		s.tally()
		return
	}
	s.validate(worker, i-1)
}

// validationLoss is the mean over the round's validation clients. A real
// federation would have to pay for these losses.
func (s *Simulation) validationLoss(hypotheses []float64) float64 {
	n := s.askValidators(hypotheses)
	s.each(n, s.validateOne)
	return mean(s.losses[:n])
}

// askValidators draws the round's validation clients and says how many they are.
func (s *Simulation) askValidators(hypotheses []float64) int {
	s.broadcast.Hypotheses, s.asked = hypotheses, nil
	if s.validators == nil {
		return len(s.federation.Validation)
	}
	s.asked = s.validators.Sample(s.state.Round)
	return len(s.asked)
}

func (s *Simulation) validate(worker, i int) {
	client := i
	if s.asked != nil {
		client = s.asked[i]
	}
	s.losses[i], _ = s.best(worker, s.broadcast.Hypotheses, &s.federation.Validation[client])
}

// best is the hypothesis that fits a client best, and its loss. What fails is kept for
// misjudged.
func (s *Simulation) best(worker int, hypotheses []float64, c *data.Client) (loss float64, index int) {
	loss, index, err := model.Best(s.learners[worker], s.parameters, hypotheses, c)
	if err != nil {
		s.misjudged[worker] = err
	}
	return loss, index
}

// judgeError is why figures are wrong, if something failed when they were made.
func (s *Simulation) judgeError() error {
	err := errors.Join(s.misjudged...)
	clear(s.misjudged)
	return err
}

// trainPictures is how many of a client's pictures its training loss is taken of:
// all of them would cost more than the training.
const trainPictures = 20

func (s *Simulation) trainLoss(worker, i int) {
	c := s.participants[i].Data
	if c.Images != nil && len(c.Index) > trainPictures {
		c = &data.Client{Pictures: data.Pictures{Images: c.Images, Index: c.Index[:trainPictures]}}
	}
	s.losses[i], _ = s.best(worker, s.broadcast.Hypotheses, c)
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
func (s *Simulation) settle(released int, validated bool) {
	p, stop := &s.progress, s.run.Algorithm.Stop
	switch {
	case !validated:
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

// Round is the number of rounds made, and Loss the last validation loss.
func (s *Simulation) Round() (made int, loss float64) { return s.state.Round, s.progress.Loss }

// Returned are the hypotheses that the run returns, one after another.
func (s *Simulation) Returned() []float64 {
	if s.run.Algorithm.Stop.Return == "last" {
		return s.state.Hypotheses
	}
	return s.progress.Best
}
