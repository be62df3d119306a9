package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/evaluate"
	"github.com/coterie-fl/coterie/internal/compute"
	"github.com/coterie-fl/coterie/internal/pool"
	"github.com/coterie-fl/coterie/model"
)

// Simulation is one federation in memory.
type Simulation struct {
	run        config.Run
	asked      config.Run         // as the run file has it
	given      *data.Federation   // as it was loaded
	digest     func() data.Digest // of given, computed once somebody asks
	federation *data.Federation   // that is trained on: central training pools it
	parameters int
	learners   []model.Learner // one a worker
	rounds     *Rounds
	placed     compute.Placed // where networks are computed
	inner      *pool.Pool     // that one participant's batches are spread over; nil: there are several
	sampler    *fl.Sampler
	judge      judge
	progress   progress
	record     recorder
	evaluation *evaluate.Evaluation // nil: the run file asks for none
	evaluated  *evaluate.Figures    // once it was made
	followed   bool                 // others come after it, or it comes after another: its end is worth a checkpoint
	judgement  judgement            // of the returned models, once the run has ended
	unjudged   bool                 // nobody asks how good the models are: see Train
	spent      []spending           // by client, as of its last release; nil where epsilon is not added up
	made       made                 // the round that is yet to be judged
	traces     []mech.StepTrace     // by participant, since the last record; nil: nobody counts
	until      until
	at         whereabouts
	// A method value is made once: a closure a round would be garbage a round.
	tallyOrJudgeOne func(worker, i int)
	recordSteps     func() *StepsRecord // what watchSteps found worth it; nil: nothing
}

// spending is a client's account in short. Its worker writes it, so that counting does
// not fetch every account from another core's cache.
type spending struct {
	releases int
	epsilon  float64
}

// progress is what decides when to stop and what to return.
type progress struct {
	Best      []float64 // hypotheses with the lowest loss so far, if they are returned
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
	return []func(config.Run) config.Faults{data.Check, model.Check, fl.Check, checkCompare, checkHostile, checkHold, compute.Check}
}

// New draws or loads the data, from the folder of real data if the run needs it,
// and prepares the first round. Close it after use.
func New(run config.Run, folder *data.Folder) (*Simulation, error) {
	federation, err := load(run, folder)
	if err != nil {
		return nil, err
	}
	for _, name := range run.Judge.Compare {
		if err := fits(Variant(run, name), federation); err != nil {
			return nil, fmt.Errorf("judge.compare %s: %w", name, err)
		}
	}
	s, err := NewOn(run, federation, nil)
	if err != nil && federation.Crowd != nil {
		err = errors.Join(err, federation.Crowd.Close())
	}
	return s, err
}

// load draws or reads the data of a run.
func load(run config.Run, folder *data.Folder) (*data.Federation, error) {
	if holdsAsked(run) {
		return folder.LoadCrowd(run.Data, run.Seed)
	}
	return folder.Load(run.Data, run.Seed)
}

// NewOn prepares a run on data that are there. Wrap, if there is one, stands between the
// run and its model: for audits, which look at steps or change them. Close it after use.
func NewOn(run config.Run, federation *data.Federation, wrap func(model.Model) model.Model) (made *Simulation, err error) {
	asked, given := run, federation
	if fl.IsCentral(run.Algorithm.Kind) {
		federation = federation.Pooled()
	}
	if err := fits(run, federation); err != nil {
		return nil, err
	}
	if run.Algorithm.ClientsPerRound == 0 {
		run.Algorithm.ClientsPerRound = federation.Clients()
	}
	m, err := model.Of(run, federation.Shape())
	if err != nil {
		return nil, err
	}
	if start := run.Model.Start; start != "" {
		theta, err := readStart(start, run.Model, federation)
		if err != nil {
			return nil, fmt.Errorf("model.start: %s: %w", start, err)
		}
		if m, err = model.Starting(m, theta); err != nil {
			return nil, err
		}
	}
	stop := new(atomic.Bool)
	m = model.Stoppable(m, stop.Load)
	s := &Simulation{followed: len(run.Judge.Compare) > 0, until: until{stop: stop}}
	if s.placed, err = compute.On(run, m, data.PictureCount(federation.Train, federation.Validation)); err != nil {
		return nil, err
	}
	m = s.placed.Model
	defer func() {
		if err != nil {
			s.placed.Close()
		}
	}()
	if open := s.placed.NotCovered; len(open) > 0 {
		own := *federation // other runs may have it, too
		own.NotCovered = slices.Concat(own.NotCovered, open)
		federation = &own
	}
	workers := run.Run.Workers
	if federation.Clients() == 1 && federation.Crowd == nil { // its batches are what is shared among workers
		s.inner = pool.New(cmp.Or(workers, runtime.GOMAXPROCS(0)))
		m, workers = model.Spread(m, s.inner), 1
		defer func() {
			if err != nil {
				s.inner.Close()
			}
		}()
	}
	if wrap != nil {
		m = wrap(m)
	}
	if err := fl.Affordable(run, m.Parameters()); err != nil {
		return nil, err
	}
	algorithm, err := fl.New(run, m, federation.Clients())
	if err != nil {
		return nil, err
	}
	a, k := run.Algorithm, federation.Clients()
	participants := make([]fl.Participant, len(federation.Train))
	for i := range participants {
		participants[i] = fl.Participant{ID: i, Data: &federation.Train[i], Name: federation.Train[i].Name, Uncovered: federation.NotCovered}
	}
	hostile, err := newLiars(run, algorithm, m.Parameters(), len(participants))
	if err != nil {
		return nil, err
	}
	if hostile != nil {
		hostile.turn(participants, federation.Classes)
	}
	s.run, s.asked, s.given, s.federation, s.parameters = run, asked, given, federation, m.Parameters()
	s.digest = sync.OnceValue(given.Digest)
	s.sampler = fl.NewSampler(fl.DrawSeed(run), "client sampling", k, a.ClientsPerRound, a.Sampling == "balanced")
	if s.evaluation, err = evaluate.New(run, federation.Shape(), algorithm); err != nil {
		return nil, err
	}
	if federation.Crowd != nil {
		s.rounds = newCrowdRounds(newCrowd(federation, algorithm), a.ClientsPerRound, workers, stop)
	} else if s.rounds, err = NewRounds(algorithm, participants, workers, stop); err != nil {
		return nil, err
	}
	s.rounds.liars = hostile
	if run.Privacy.Protects == "update" || run.Privacy.Protects == "nothing" {
		s.spent = make([]spending, len(participants))
		if s.rounds.crowd == nil {
			s.rounds.after = s.noteSpent
		}
	}
	for i := range s.rounds.workers {
		learner, err := algorithm.Learner(&s.rounds.workers[i])
		if err != nil {
			s.Close()
			return nil, err
		}
		s.learners = append(s.learners, learner)
	}
	if err := s.readable(); err != nil {
		s.Close()
		return nil, err
	}
	if len(participants) == 1 {
		participants[0].Steps = &s.at.steps
	}
	s.watchSteps()
	if s.judge, err = newJudge(s); err != nil {
		s.Close()
		return nil, err
	}
	s.progress = progress{
		Loss: math.Inf(1), BestLoss: math.Inf(1), Error: math.NaN(),
		Declined: make([]bool, len(participants)), Cluster: slices.Repeat([]int{-1}, len(participants)),
	}
	if a.Stop.Return == "best" {
		s.progress.Best = slices.Clone(s.rounds.State.Hypotheses)
	}
	s.record = newRecorder(len(s.rounds.State.Hypotheses)/s.parameters, s.parameters, k, s.rounds.State.Hypotheses)
	s.tallyOrJudgeOne = s.tallyOrJudge
	s.publish()
	return s, nil
}

// NewUntil is New, and Until: when ctx ends it returns ErrInterrupted at once, also while
// data are read. What was begun then ends unseen.
func NewUntil(ctx context.Context, run config.Run, folder *data.Folder) (*Simulation, error) {
	s, err := pool.Await(ctx, func() (*Simulation, error) { return New(run, folder) }, (*Simulation).Close)
	switch {
	case err == nil:
		s.Until(ctx)
	case ctx.Err() != nil:
		err = fmt.Errorf("%w while data were read and the run was prepared: nothing was trained yet", ErrInterrupted)
	}
	return s, err
}

// Prepared are the participants before their first round, what they do in it, and what the
// data's preparation leaves uncovered: enough to say what the run will cost.
func (s *Simulation) Prepared() (*fl.Algorithm, []fl.Participant, []string) {
	return s.rounds.Algorithm, s.rounds.Participants, s.federation.NotCovered
}

// Until has the simulation stop soon after ctx ends, within milliseconds also in the
// middle of a round: Step and Result then return ErrInterrupted. It replaces the context
// that was given before, and must not be called while one of them is under way.
func (s *Simulation) Until(ctx context.Context) { s.until.set(ctx) }

// until is the context that ends a simulation's work. Whoever works looks at a flag: that
// is quicker than to ask a context.
type until struct {
	stop *atomic.Bool
	mu   sync.Mutex
	ctx  context.Context // nil: none
	end  func() bool     // waiting for it
}

func (u *until) set(ctx context.Context) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forget()
	u.ctx = ctx
	u.stop.Store(ctx.Err() != nil)
	u.end = context.AfterFunc(ctx, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.ctx == ctx { // and not another one meanwhile
			u.stop.Store(true)
		}
	})
}

func (u *until) forget() {
	if u.end != nil {
		u.end()
	}
}

// fits holds the run file against the data, once they are known.
func fits(run config.Run, f *data.Federation) error {
	var c config.Checker
	fl.CheckCounts(&c, run, f.Clients(), len(f.Validation))
	held, names := 0, f.Names()
	if f.Crowd != nil && run.Data.TestShare > 0 {
		held++
	}
	for i := range f.Train {
		if f.Train[i].Held != nil {
			held += f.Train[i].Held.Len()
		}
	}
	c.Require(run.Judge.By != "test" || held+len(f.Validation) > 0, "judge.by", "is test, but nobody holds out examples; set data.test_share")
	c.Require(run.Judge.By != "own" || held > 0, "judge.by", "is own, but nobody holds out examples; set data.test_share, or judge by clients")
	c.Require(run.Judge.Evaluate.Epsilon == 0 || held > 0, "judge.evaluate", "asks for an evaluation, but nobody holds out examples; set data.test_share")
	for i, own := range run.Privacy.Silos {
		c.Require(slices.Contains(names, own.Name), fmt.Sprintf("privacy.silos.%d.name", i),
			"%q is no participant of data.kind %s; the first ones are %q", own.Name, run.Data.Kind, names[:min(3, len(names))])
	}
	if faults := c.Faults(); faults != nil {
		return faults
	}
	return nil
}

// readable refuses examples that the model cannot read: steps that are private would leave them out
// without a word, as participants of a federation must.
func (s *Simulation) readable() error {
	for _, clients := range [][]data.Client{s.federation.Train, s.federation.Validation} {
		for i := range clients {
			c := &clients[i]
			if err := errors.Join(model.Unreadable(s.learners[0], c), model.Unreadable(s.learners[0], c.Held)); err != nil {
				return fmt.Errorf("client %s: %w", cmp.Or(c.Name, strconv.Itoa(i)), err)
			}
		}
	}
	return nil
}

// Computed is the kernel that the run's bits come from, and the device that it asks for;
// nil: none.
func (s *Simulation) Computed() (kernel string, used *compute.Used) {
	if used = s.placed.Used; used == nil {
		return model.Kernel(), nil
	}
	return used.Kernel(), used
}

// kernel names the arithmetic that the run's bits come from.
func (s *Simulation) kernel() string {
	kernel, _ := s.Computed()
	return kernel
}

// Run is the run file.
func (s *Simulation) Run() config.Run { return s.run }

// Federation is the data that the run is made on.
func (s *Simulation) Federation() *data.Federation { return s.federation }

// Close ends the simulation's goroutines.
func (s *Simulation) Close() {
	s.until.forget()
	s.rounds.Close()
	if c := s.rounds.crowd; c != nil {
		_ = c.clients.Close() // nothing was written that anybody reads again
	}
	s.placed.Close()
	if s.inner != nil {
		s.inner.Close()
	}
}

// Returned are the hypotheses that the run returns, one after another.
func (s *Simulation) Returned() []float64 {
	if s.run.Algorithm.Stop.Return == "last" {
		return s.rounds.State.Hypotheses
	}
	return s.progress.Best
}

// ModelOf is the model that a participant ends with: its own, or the server's that it
// uses.
func (s *Simulation) ModelOf(participant int) ([]float64, error) {
	if !s.rounds.Algorithm.OwnModels() {
		returned := vectors(s.Returned(), s.parameters)
		cluster := 0
		if c := s.rounds.crowd; c == nil {
			cluster = s.rounds.Participants[participant].Cluster
		} else if at, asked := c.place[participant]; asked {
			cluster = c.at(at).Cluster
		}
		return returned[min(max(0, cluster), len(returned)-1)], nil
	}
	b, err := s.rounds.Algorithm.Broadcast(s.rounds.State)
	if err != nil {
		return nil, err
	}
	own := make([]float64, s.parameters)
	s.rounds.Algorithm.Adopt(own, b, &s.rounds.Participants[participant], s.learners[0])
	return own, nil
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
	if !s.rounds.Algorithm.OwnModels() {
		return out, nil
	}
	b, err := s.rounds.Algorithm.Broadcast(s.rounds.State)
	if err != nil {
		return nil, err
	}
	for i := range s.rounds.Participants {
		own := make([]float64, s.parameters)
		s.rounds.Algorithm.Adopt(own, b, &s.rounds.Participants[i], s.learners[0])
		add(own, "client", i, "")
	}
	for i := range s.rounds.Participants {
		if centre, scale, ok := s.rounds.Participants[i].Moments(); ok {
			add(centre, "client", i, ".centre")
			add(scale, "client", i, ".scale")
		}
	}
	return out, nil
}
