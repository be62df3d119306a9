package sim

import (
	"errors"

	"github.com/coterie-fl/coterie/data"
)

// testJudge has the server's model on all examples that anybody holds out, as one test
// set: of several models, the one that fits it best. It is the judge for one model that
// is to serve everybody.
type testJudge struct {
	s      *Simulation
	held   []*data.Client
	of     []int // whose they are; -1: of nobody that trains
	models []float64
	best   int       // model of the last judgement
	losses []float64 // by model, then by part
	wrong  []int
	errs   []error // by part
}

func newTestJudge(s *Simulation) (*testJudge, error) {
	j := &testJudge{s: s}
	for i := range s.federation.Validation {
		j.held, j.of = append(j.held, &s.federation.Validation[i]), append(j.of, -1)
	}
	for _, i := range s.someClients() {
		held, err := s.heldBy(i)
		if err != nil {
			return nil, err
		}
		if held != nil && held.Len() > 0 {
			j.held, j.of = append(j.held, held), append(j.of, i)
		}
	}
	if len(j.held) == 0 {
		return nil, errors.New("judge.by is test, but none of the clients that are asked holds out examples; set data.test_share")
	}
	k := len(s.rounds.State.Hypotheses) / s.parameters
	j.losses, j.wrong, j.errs = make([]float64, k*len(j.held)), make([]int, k*len(j.held)), make([]error, len(j.held))
	return j, nil
}

// heldBy is what a client holds out, in memory of its own.
func (s *Simulation) heldBy(client int) (*data.Client, error) {
	c := s.rounds.crowd
	if c == nil {
		return s.federation.Train[client].Held, nil
	}
	var own data.Client
	err := c.clients.Read(&own, client)
	return own.Held, err
}

func (j *testJudge) open(hypotheses []float64) (int, error) {
	j.models = hypotheses
	return len(j.held), nil
}

func (j *testJudge) all() {}

func (j *testJudge) score(worker, i int) {
	n, parts := j.s.parameters, len(j.held)
	for at := 0; (at+1)*n <= len(j.models) && j.errs[i] == nil; at++ {
		j.losses[at*parts+i], j.wrong[at*parts+i], j.errs[i] = j.s.learners[worker].Judge(j.models[at*n:(at+1)*n], j.held[i])
	}
}

func (j *testJudge) close(p *progress) error {
	parts := len(j.held)
	for at := range len(j.losses) / parts {
		var loss, wrong, total float64
		for i, held := range j.held {
			n := float64(held.Len())
			loss += n * j.losses[at*parts+i]
			wrong += float64(j.wrong[at*parts+i])
			total += n
		}
		if at == 0 || loss/total < p.Loss {
			p.Loss, p.Error, j.best = loss/total, wrong/total, at
		}
	}
	err := errors.Join(j.errs...)
	clear(j.errs)
	return err
}

func (j *testJudge) judged(_, i int) ([]float64, *data.Client, error) {
	n := j.s.parameters
	return j.models[j.best*n : (j.best+1)*n], j.held[i], nil
}

func (j *testJudge) participant(i int) int { return j.of[i] }

// pooledPictures is how many pictures, where all are in one place, the training loss is
// taken of.
const pooledPictures = 2000

func (j *testJudge) trained() (float64, error) {
	s, n := j.s, j.s.parameters
	some := s.someClients()
	losses, sizes, errs := make([]float64, len(some)), make([]float64, len(some)), make([]error, len(some))
	s.rounds.Each(len(some), func(worker, i int) {
		c, err := s.examples(worker, some[i])
		if err != nil {
			errs[i] = err
			return
		}
		sizes[i] = float64(c.Len())
		if len(losses) == 1 && c.Images != nil && len(c.Index) > pooledPictures {
			c = &data.Client{Pictures: data.Pictures{Images: c.Images, Index: c.Index[:pooledPictures]}}
		}
		losses[i], _, errs[i] = s.learners[worker].Judge(j.models[j.best*n:(j.best+1)*n], c)
	})
	var sum, total float64
	for i, l := range losses {
		sum, total = sum+sizes[i]*l, total+sizes[i]
	}
	return sum / total, errors.Join(errs...)
}
