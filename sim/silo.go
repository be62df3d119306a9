package sim

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/pool"
	"github.com/coterie-fl/coterie/model"
)

// Silos is one federation of silos in memory: every silo takes part in every round
// and is judged on its own held-out examples.
type Silos struct {
	run          config.Run
	federation   *data.Federation
	algorithm    *fl.Silo
	participants []fl.Participant
	workers      []fl.Worker
	judges       []model.SiloLearner // one a worker
	models       [][]float64         // one a worker
	held         []*data.Client      // held-out examples as their silos scale them; nil before the first judgement
	pool         *pool.Pool

	state  *fl.State
	round  fl.Round
	sent   fl.Broadcast
	all    []int
	errs   []error
	losses []float64
	wrong  []int
	record siloRecord
}

// siloRecord is how the run went: what a checkpoint keeps beside the models.
type siloRecord struct {
	Rounds []int
	Loss   []float64 // mean test loss, weighted by test examples
	Error  []float64 // share of wrong answers; classes only
	Lambda []float64 // that the server set; auto only
	Shared []float64 // share of the coordinates that all share; auto only
	Sizes  [][]int   // silos in every cluster
}

// NewSilos loads the data and finds every silo's noise. Close it after use.
func NewSilos(run config.Run, folder *data.Folder) (*Silos, error) {
	federation, err := folder.Load(run.Data, run.Seed)
	if err != nil {
		return nil, err
	}
	if len(federation.Test) != len(federation.Train) || len(federation.Names) != len(federation.Train) {
		return nil, fmt.Errorf("data.kind %s: its silos hold out no examples", run.Data.Kind)
	}
	m, err := model.Of(run, federation.Shape())
	if err != nil {
		return nil, err
	}
	for i, own := range run.Privacy.Silos {
		if !slices.Contains(federation.Names, own.Name) {
			return nil, config.Faults{{Path: fmt.Sprintf("privacy.silos.%d.name", i), Message: fmt.Sprintf(
				"%q is no silo of data.kind %s; the first ones are %q", own.Name, run.Data.Kind, federation.Names[:min(3, len(federation.Names))])}}
		}
	}
	k := len(federation.Train)
	algorithm, err := fl.NewSilo(run, m, k)
	if err != nil {
		return nil, err
	}
	workers := run.Run.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	s := &Silos{
		run: run, federation: federation, algorithm: algorithm,
		participants: make([]fl.Participant, k), workers: make([]fl.Worker, workers), pool: pool.New(workers),
		state: algorithm.Start(), errs: make([]error, k), losses: make([]float64, k), wrong: make([]int, k),
	}
	for range workers {
		s.judges = append(s.judges, m.Learner().(model.SiloLearner)) // NewSilo asked
		s.models = append(s.models, make([]float64, m.Parameters()))
	}
	for i := range s.participants {
		s.all = append(s.all, i)
		s.participants[i] = fl.Participant{ID: i, Name: federation.Names[i], Data: &federation.Train[i], Uncovered: federation.NotCovered}
	}
	s.pool.Each(k, func(_, i int) { s.errs[i] = algorithm.Prepare(&s.participants[i]) })
	if err := s.firstError(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Run is the run file.
func (s *Silos) Run() config.Run { return s.run }

// Federation is the data that the run is made on.
func (s *Silos) Federation() *data.Federation { return s.federation }

// Close ends the simulation's goroutines.
func (s *Silos) Close() { s.pool.Close() }

// firstError is the lowest silo's, whichever worker met one first.
func (s *Silos) firstError() error {
	for i, err := range s.errs {
		if err != nil {
			s.errs[i] = nil
			return err
		}
	}
	return nil
}

// ended says that all rounds are made.
func (s *Silos) ended() bool { return s.state.Round >= s.run.Algorithm.Rounds }

// Step makes one round. When the run has ended it does nothing and returns false.
func (s *Silos) Step() (bool, error) {
	if s.ended() {
		return false, nil
	}
	if err := s.round.Open(s.state.Round, s.all, s.algorithm.ReleaseLength()); err != nil {
		return false, err
	}
	var err error
	if s.sent, err = s.algorithm.Broadcast(s.state); err != nil {
		return false, err
	}
	s.pool.Each(len(s.all), s.respond)
	if err := s.firstError(); err != nil {
		return false, err
	}
	releases, err := s.round.Close()
	if err != nil {
		return false, err
	}
	outcome := s.algorithm.Aggregate(s.state, releases)
	if outcome.Err != nil {
		return false, outcome.Err
	}
	if s.state.Round%s.run.Algorithm.Stop.Every == 0 || s.ended() {
		if err := s.judge(); err != nil {
			return false, err
		}
		s.note(outcome)
	}
	return !s.ended(), nil
}

func (s *Silos) respond(worker, i int) {
	released, err := fl.RespondOpenly(s.algorithm, &s.workers[worker], s.sent, &s.participants[i], s.round.Slot(i))
	switch {
	case err != nil:
	case released:
		err = s.round.Released(i)
	default:
		err = s.round.Declined(i)
	}
	s.errs[i] = err
}

// judge has every silo's model of now on the silo's held-out examples. A real
// federation would have to pay for these figures.
func (s *Silos) judge() error {
	var err error
	if s.sent, err = s.algorithm.Broadcast(s.state); err != nil {
		return err
	}
	for i := len(s.held); i < len(s.all); i++ { // no silo scales otherwise once it has been asked
		s.held = append(s.held, s.algorithm.Standardised(&s.participants[i], &s.federation.Test[i]))
	}
	s.pool.Each(len(s.all), func(worker, i int) {
		theta := s.models[worker]
		s.algorithm.Adopt(theta, s.sent, &s.participants[i])
		s.losses[i], s.wrong[i], s.errs[i] = s.judges[worker].Judge(theta, s.held[i])
	})
	return s.firstError()
}

// testFigures are the mean loss and the share of wrong answers, over test examples.
func (s *Silos) testFigures() (loss, wrong float64) {
	total := 0.0
	for i := range s.federation.Test {
		n := float64(s.federation.Test[i].Len())
		loss += n * s.losses[i]
		wrong += float64(s.wrong[i])
		total += n
	}
	return loss / total, wrong / total
}

func (s *Silos) note(outcome fl.Outcome) {
	r := &s.record
	loss, wrong := s.testFigures()
	r.Rounds, r.Loss, r.Error = append(r.Rounds, s.state.Round), append(r.Loss, loss), append(r.Error, wrong)
	if l, shared, ok := s.lambda(); ok {
		r.Lambda, r.Shared = append(r.Lambda, l), append(r.Shared, shared)
	}
	if clusters := len(s.state.Hypotheses) / len(s.models[0]); clusters > 1 {
		sizes := make([]int, clusters)
		for _, c := range outcome.Assigned {
			if c >= 0 {
				sizes[c]++
			}
		}
		r.Sizes = append(r.Sizes, sizes)
	}
}

// lambda is the median over silos, and the mean share of what they share with all,
// where the server sets it.
func (s *Silos) lambda() (median, shared float64, ok bool) {
	var all []float64
	for i := range s.participants {
		l, part, ok := s.algorithm.Lambda(s.sent, &s.participants[i])
		if !ok {
			return 0, 0, false
		}
		all = append(all, l)
		shared += part / float64(len(s.participants))
	}
	median, _ = fl.MedianAndMax(all)
	return median, shared, true
}

// Round is the number of rounds made, and the last test figure.
func (s *Silos) Round() (made int, figure float64) {
	switch n := len(s.record.Rounds); {
	case n == 0:
		return s.state.Round, math.NaN()
	case s.federation.Classes > 0:
		return s.state.Round, s.record.Error[n-1]
	default:
		return s.state.Round, s.record.Loss[n-1]
	}
}

// personal are all silos' models of now, in silo order.
func (s *Silos) personal() ([][]float64, error) {
	b, err := s.algorithm.Broadcast(s.state)
	if err != nil {
		return nil, err
	}
	out := make([][]float64, len(s.participants))
	for i := range out {
		s.algorithm.Adopt(s.models[0], b, &s.participants[i])
		out[i] = slices.Clone(s.models[0])
	}
	return out, nil
}

// tensors are the server's models and every silo's own, and the constants that silos
// scale their features by, where they paid for them.
func (s *Silos) tensors() []model.Tensor[float64] {
	var out []model.Tensor[float64]
	for j, v := range vectors(s.state.Hypotheses, len(s.models[0])) {
		out = append(out, model.Tensor[float64]{Name: fmt.Sprintf("server.%d", j), Shape: []int{len(v)}, Values: v})
	}
	own, err := s.personal()
	if err != nil {
		return out // Broadcast has nothing that could fail after the last round
	}
	for i, v := range own {
		out = append(out, model.Tensor[float64]{Name: fmt.Sprintf("silo.%d", i), Shape: []int{len(v)}, Values: v})
	}
	for i := range s.participants {
		if centre, scale, ok := s.algorithm.Moments(&s.participants[i]); ok {
			out = append(out,
				model.Tensor[float64]{Name: fmt.Sprintf("silo.%d.centre", i), Shape: []int{len(centre)}, Values: centre},
				model.Tensor[float64]{Name: fmt.Sprintf("silo.%d.scale", i), Shape: []int{len(scale)}, Values: scale})
		}
	}
	return out
}

// errNotEnded means that a result was asked for too early.
var errNotEnded = errors.New("the run has not ended")
