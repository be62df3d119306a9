package sim

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// Result is the finished run; the caller adds names and places.
func (s *Simulation) Result() (Result, error) {
	if s.progress.Stopped == "" {
		return Result{}, fmt.Errorf("the run has not ended: round %d", s.state.Round)
	}
	returned := s.Returned()
	s.validators = nil // the figures of the returned models are over all clients
	validation := s.validationLoss(returned)
	s.each(len(s.participants), s.trainLossOne)
	train := mean(s.losses[:len(s.participants)])
	var declined []int
	for i, d := range s.progress.Declined {
		if d {
			declined = append(declined, i)
		}
	}
	a := s.run.Algorithm
	res := Result{
		Summary: Summary{
			Name: s.run.Name, Algorithm: a.Kind, Mode: a.Mode, Seed: s.run.Seed,
			Rounds: s.state.Round, BestRound: s.progress.BestRound, Returned: a.Stop.Return, Stopped: s.progress.Stopped,
			Clients: len(s.participants), Hypotheses: a.Hypotheses, Parameters: s.parameters,
			Metrics: Metrics{
				ValidationLoss: event.Number(validation), TrainLoss: event.Number(train),
				Accuracy: s.accuracy(returned), HonestLoss: s.honestLoss(returned), WorstDistance: s.worstDistance(returned),
			},
			Privacy: fl.StatePrivacy(s.run, s.participants, s.parameters, len(declined), s.progress.Requests),
			Kernel:  model.Kernel(),
		},
		History: s.record.history(),
	}
	if g, ok := s.algorithm.(*fl.Group); ok {
		g.DescribeLayers(&res.Privacy)
	}
	res.History.Declined = declined
	res.History.Truth = s.truth()
	res.History.Returned = vectors(returned, s.parameters)
	res.History.Clusters = s.clusterBudgets()
	for i := range s.participants {
		res.History.Budgets = append(res.History.Budgets, event.Number(s.participants[i].Account.Epsilon()))
	}
	if err := s.judgeError(); err != nil {
		return Result{}, err
	}
	return res, nil
}

// accuracy counts pictures over all validation clients, in client order.
func (s *Simulation) accuracy(hypotheses []float64) *event.Number {
	if s.federation.Validation[0].Images == nil {
		return nil
	}
	s.broadcast.Hypotheses = hypotheses
	s.each(len(s.federation.Validation), func(worker, i int) {
		c, l := &s.federation.Validation[i], s.learners[worker].(*model.PictureLearner)
		_, best := s.best(worker, hypotheses, c)
		right, err := l.Right(hypotheses[best*s.parameters:(best+1)*s.parameters], c)
		if err != nil {
			s.misjudged[worker] = err
		}
		s.losses[i] = float64(right)
	})
	var right float64
	pictures := 0
	for i := range s.federation.Validation {
		right += s.losses[i]
		pictures += s.federation.Validation[i].Len()
	}
	n := event.Number(right / float64(pictures))
	return &n
}

// honestLoss is the mean over the validation clients that have other rows to
// choose by.
func (s *Simulation) honestLoss(hypotheses []float64) *event.Number {
	var sum float64
	clients := 0
	for i := range s.federation.Validation {
		loss, ok, err := model.HonestRMSE(s.learners[0], s.parameters, hypotheses, &s.federation.Validation[i])
		if err != nil {
			s.misjudged[0] = err
		}
		if ok {
			sum += loss
			clients++
		}
	}
	if clients == 0 {
		return nil
	}
	n := event.Number(sum / float64(clients))
	return &n
}

// truth is every group's parameters, where the model has the same ones.
func (s *Simulation) truth() [][]float64 {
	if s.run.Model.Kind != "linear" || len(s.federation.Truth) == 0 {
		return nil
	}
	return s.federation.Truth
}

// worstDistance compares only the coordinates that the truth has: an intercept
// is left out.
func (s *Simulation) worstDistance(hypotheses []float64) *event.Number {
	if s.truth() == nil {
		return nil
	}
	worst := 0.0
	for _, truth := range s.truth() {
		least := math.Inf(1)
		for _, h := range vectors(hypotheses, s.parameters) {
			var sum float64
			for i, x := range truth {
				sum += (h[i] - x) * (h[i] - x)
			}
			least = min(least, math.Sqrt(sum))
		}
		worst = max(worst, least)
	}
	d := event.Number(worst)
	return &d
}

func (s *Simulation) clusterBudgets() []ClusterBudget {
	members := make([][]float64, s.run.Algorithm.Hypotheses)
	for i, j := range s.progress.Cluster {
		if j >= 0 {
			members[j] = append(members[j], s.participants[i].Account.Epsilon())
		}
	}
	out := make([]ClusterBudget, len(members))
	for j, totals := range members {
		median, most := fl.MedianAndMax(totals)
		out[j] = ClusterBudget{Clients: len(totals), Median: event.Number(median), Max: event.Number(most)}
	}
	return out
}

func vectors(flat []float64, n int) [][]float64 {
	var out [][]float64
	for i := 0; i < len(flat); i += n {
		out = append(out, slices.Clone(flat[i:i+n]))
	}
	return out
}
