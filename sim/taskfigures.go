package sim

import (
	"errors"

	"github.com/coterie-fl/coterie/dp/event"
)

// taskFigures are the metrics of the task, over what the judge asks.
func (s *Simulation) taskFigures(m *Metrics, jobs int) error {
	if s.federation.Shape().Classes == 0 {
		return nil
	}
	wrong, sizes, errs := make([]int, jobs), make([]int, jobs), make([]error, jobs)
	s.rounds.Each(jobs, func(worker, i int) {
		theta, held, err := s.judge.judged(worker, i)
		if err == nil {
			_, wrong[i], err = s.learners[worker].Judge(theta, held)
			sizes[i] = held.Len()
		}
		errs[i] = err
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var sum, total float64
	for i := range jobs {
		sum, total = sum+float64(wrong[i]), total+float64(sizes[i])
	}
	m.Error = numberIf(true, sum/total)
	m.Accuracy = &Figure{Value: event.Number(1 - sum/total)}
	return nil
}
