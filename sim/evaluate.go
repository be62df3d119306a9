package sim

import (
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl/evaluate"
)

// evaluate makes the round after the last one, if the run file asks for it: everybody
// releases noised counts, as in a federation in which all policies allow it. It is made
// once, and not if budgets ended the run before.
func (s *Simulation) evaluate() (*evaluate.Figures, error) {
	if s.evaluation == nil || s.evaluated != nil || s.progress.Stopped != StoppedRounds {
		return s.evaluated, nil
	}
	b, err := s.rounds.Algorithm.Broadcast(s.rounds.State.Clone()) // which may round the models
	if err != nil {
		return nil, err
	}
	n, k := s.evaluation.Length(), len(s.rounds.Participants)
	releases, claim := make([]float64, n*k), event.ClaimProved
	s.rounds.Each(k, func(worker, i int) {
		p := &s.rounds.Participants[i]
		_, s.rounds.errs[i] = s.evaluation.Answer(b, p, s.federation.Train[i].Held, s.learners[worker], releases[i*n:(i+1)*n])
		if s.rounds.errs[i] == nil {
			s.rounds.errs[i] = p.Mishap
		}
	})
	if err := s.rounds.firstError(k); err != nil {
		return nil, err
	}
	sums := make([]float64, n)
	for i := range k {
		for j := range n {
			sums[j] += releases[i*n+j]
		}
		if s.evaluation.Price(&s.rounds.Participants[i]).Claim != event.ClaimProved {
			claim = event.ClaimHeuristic
		}
	}
	f, err := s.evaluation.Figures(sums, k, k, claim)
	if err != nil {
		return nil, err
	}
	s.evaluated = &f
	return s.evaluated, nil
}
