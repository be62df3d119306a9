package sim

import (
	"errors"
	"math"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// judge scores a round's models, job by job on the workers. A real federation would have
// to pay for these figures.
type judge interface {
	// open prepares the jobs for some hypotheses and says how many there are.
	open(hypotheses []float64) (jobs int, err error)
	// score does one of them.
	score(worker, i int)
	// close sums the jobs up.
	close(p *progress) error
	// all has the judge ask everybody from now on: for the figures of returned models.
	all()
	// judged is a client's held-out examples and the model that it is judged with. The
	// model is valid until the worker's next call.
	judged(worker, i int) (theta []float64, held *data.Client, err error)
	// participant is who holds those examples; -1: nobody that trains.
	participant(i int) int
	// trained is the mean loss on training examples.
	trained() (float64, error)
}

func newJudge(s *Simulation) (judge, error) {
	if s.run.Judge.By == "own" {
		j := &ownJudge{s: s, losses: make([]float64, len(s.rounds.Participants)), wrong: make([]int, len(s.rounds.Participants))}
		for range s.rounds.workers {
			j.models = append(j.models, make([]float64, s.parameters))
		}
		return j, nil
	}
	if s.run.Judge.By == "test" {
		return newTestJudge(s)
	}
	j := &clientJudge{s: s, losses: make([]float64, max(min(listed, s.rounds.Count()), len(s.federation.Validation))), faults: make([]error, len(s.rounds.workers))}
	if v := s.run.Algorithm.Stop.ValidationClients; v > 0 && v < len(s.federation.Validation) {
		j.sampler = fl.NewSampler(s.run.Seed, "validation sampling", len(s.federation.Validation), v, false)
	}
	return j, nil
}

// someClients are up to so many of those that train, drawn by the seed: their figures stand
// for everybody's.
func (s *Simulation) someClients() []int {
	k := s.rounds.Count()
	return fl.NewSampler(s.run.Seed, "clients whose figures stand for all", k, min(k, listed), false).Sample(0)
}

// examples are what a client trains on, in a worker's seat if it is not held.
func (s *Simulation) examples(worker, client int) (*data.Client, error) {
	if c := s.rounds.crowd; c != nil {
		own := &c.seats[worker].client
		return own, c.clients.Read(own, client)
	}
	return s.rounds.Participants[client].Data, nil
}

// clientJudge asks clients that take no part in training, each with the model that fits
// it best.
type clientJudge struct {
	s       *Simulation
	sampler *fl.Sampler // nil: all of them, every time
	models  []float64
	asked   []int // nil: all
	jobs    int
	losses  []float64
	faults  []error // by worker
}

func (j *clientJudge) open(hypotheses []float64) (int, error) {
	j.models, j.asked, j.jobs = hypotheses, nil, len(j.s.federation.Validation)
	if j.sampler != nil {
		j.asked = j.sampler.Sample(j.s.rounds.State.Round)
		j.jobs = len(j.asked)
	}
	return j.jobs, nil
}

func (j *clientJudge) all() { j.sampler = nil }

func (j *clientJudge) score(worker, i int) {
	client := i
	if j.asked != nil {
		client = j.asked[i]
	}
	j.losses[i], _ = j.best(worker, &j.s.federation.Validation[client])
}

// best is the model that fits a client best, and its loss.
func (j *clientJudge) best(worker int, c *data.Client) (loss float64, index int) {
	loss, index, err := model.Best(j.s.learners[worker], j.s.parameters, j.models, c)
	if err != nil {
		j.faults[worker] = err
	}
	return loss, index
}

func (j *clientJudge) close(p *progress) error {
	p.Loss = mean(j.losses[:j.jobs])
	err := errors.Join(j.faults...)
	clear(j.faults)
	return err
}

func (j *clientJudge) judged(worker, i int) ([]float64, *data.Client, error) {
	c, n := &j.s.federation.Validation[i], j.s.parameters
	_, best := j.best(worker, c)
	err := j.faults[worker]
	return j.models[best*n : (best+1)*n], c, err
}

func (j *clientJudge) participant(int) int { return -1 }

// trainPictures is how many of a client's pictures its training loss is taken of:
// all of them would cost more than the training.
const trainPictures = 20

func (j *clientJudge) trained() (float64, error) {
	s := j.s
	some := s.someClients()
	s.rounds.Each(len(some), func(worker, i int) {
		c, err := s.examples(worker, some[i])
		if err != nil {
			j.faults[worker] = err
			return
		}
		if c.Images != nil && len(c.Index) > trainPictures {
			c = &data.Client{Pictures: data.Pictures{Images: c.Images, Index: c.Index[:trainPictures]}}
		}
		j.losses[i], _ = j.best(worker, c)
	})
	return mean(j.losses[:len(some)]), errors.Join(j.faults...)
}

// ownJudge has every participant's model of now on its own held-out examples.
type ownJudge struct {
	s      *Simulation
	sent   fl.Broadcast
	models [][]float64    // one a worker
	held   []*data.Client // as participants scale them; nil before the first judgement
	losses []float64
	wrong  []int
}

func (j *ownJudge) open([]float64) (int, error) {
	s := j.s
	var err error
	if j.sent, err = s.rounds.Algorithm.Broadcast(s.rounds.State); err != nil {
		return 0, err
	}
	for i := len(j.held); i < len(s.rounds.Participants); i++ { // nobody scales otherwise once it has been asked
		j.held = append(j.held, s.rounds.Participants[i].Standardised(s.federation.Train[i].Held))
	}
	return len(s.rounds.Participants), nil
}

func (j *ownJudge) all() {}

func (j *ownJudge) adopted(worker, i int) []float64 {
	theta := j.models[worker]
	j.s.rounds.Algorithm.Adopt(theta, j.sent, &j.s.rounds.Participants[i], j.s.learners[worker])
	return theta
}

func (j *ownJudge) score(worker, i int) {
	j.losses[i], j.wrong[i], j.s.rounds.errs[i] = j.s.learners[worker].Judge(j.adopted(worker, i), j.held[i])
}

func (j *ownJudge) close(p *progress) error {
	var loss, wrong, total float64
	for i, held := range j.held {
		n := float64(held.Len())
		loss += n * j.losses[i]
		wrong += float64(j.wrong[i])
		total += n
	}
	if total == 0 {
		return errors.New("nobody holds out examples; set data.test_share")
	}
	p.Loss, p.Error = loss/total, wrong/total
	if l, shared, ok := j.lambda(); ok {
		p.Lambda, p.Shared = l, shared
	}
	return j.s.rounds.firstError(len(j.s.rounds.Participants))
}

func (j *ownJudge) judged(worker, i int) ([]float64, *data.Client, error) {
	return j.adopted(worker, i), j.held[i], nil
}

func (j *ownJudge) participant(i int) int { return i }

func (j *ownJudge) trained() (float64, error) {
	s := j.s
	losses := make([]float64, len(s.rounds.Participants))
	s.rounds.pool.Each(len(losses), func(worker, i int) {
		p := &s.rounds.Participants[i]
		losses[i], _, s.rounds.errs[i] = s.learners[worker].Judge(j.adopted(worker, i), p.Standardised(&s.federation.Train[i]))
	})
	sum, total := 0.0, 0.0
	for i, l := range losses {
		n := float64(s.federation.Train[i].Len())
		sum += n * l
		total += n
	}
	return sum / total, s.rounds.firstError(len(losses))
}

// regularised is a method whose server sets a lambda.
type regularised interface {
	Lambda(b *fl.Broadcast, p *fl.Participant) (median, shared float64, ok bool)
}

// lambda is the median over participants, and the mean share of what they share with
// all, where the server sets it.
func (j *ownJudge) lambda() (median, shared float64, ok bool) {
	m, ok := j.s.rounds.Algorithm.Method().(regularised)
	if !ok {
		return 0, 0, false
	}
	var all []float64
	for i := range j.s.rounds.Participants {
		l, part, ok := m.Lambda(&j.sent, &j.s.rounds.Participants[i])
		if !ok {
			return 0, 0, false
		}
		all = append(all, l)
		shared += part / float64(len(j.s.rounds.Participants))
	}
	median, _ = fl.MedianAndMax(all)
	return median, shared, true
}

// lambdaSet says whether the server sets a lambda.
func (s *Simulation) lambdaSet() bool {
	_, ok := s.rounds.Algorithm.Method().(regularised)
	return ok && math.IsNaN(s.run.Algorithm.Lambda.Value())
}
