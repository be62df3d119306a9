package sim

import (
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
)

// taskFigures are the metrics of the task, over what the judge asks.
func (s *Simulation) taskFigures(m *Metrics, jobs int) error {
	if s.federation.Shape().Classes == 0 {
		return nil
	}
	wrong, total := make([]int, jobs), 0
	s.each(jobs, func(worker, i int) {
		theta, held, err := s.judge.judged(worker, i)
		if err == nil {
			if l, ok := s.learners[worker].(*model.PictureLearner); ok {
				var right int
				right, err = l.Right(theta, held)
				wrong[i] = held.Len() - right
			} else if l, ok := s.learners[worker].(model.SiloLearner); ok {
				_, wrong[i], err = l.Judge(theta, held)
			}
		}
		s.errs[i] = err
	})
	if err := s.firstError(min(jobs, len(s.errs))); err != nil {
		return err
	}
	sum := 0
	for i := range jobs {
		_, held, _ := s.judge.judged(0, i)
		sum, total = sum+wrong[i], total+held.Len()
	}
	m.Error = numberIf(true, float64(sum)/float64(total))
	m.Accuracy = &Figure{Value: event.Number(1 - float64(sum)/float64(total))}
	return nil
}
