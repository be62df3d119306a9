package sim

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/model"
)

// judgement is what the returned models say of everybody's held-out examples, and how
// good that is. It is known in simulation only.
type judgement struct {
	task    metrics.Task
	answers []metrics.Answers  // by participant; empty: it is not judged by its own examples
	figures []*metrics.Figures // by participant; nil: it has none
	curves  *metrics.Curves
	// untrained are all people's, and untrainedOwn those of every participant's own, where
	// several hold people; nil: there are no people.
	untrained    *Untrained
	untrainedOwn []*Untrained
}

// taskFigures are the metrics of the task, over everything that the judge asks.
func (s *Simulation) taskFigures(m *Metrics, jobs int) error {
	loss, err := model.ParseLoss(s.run.Algorithm.Local.Loss)
	if err != nil {
		return err
	}
	task := metrics.Task{Classes: s.classes(), Loss: loss, Projection: s.projects(), Unit: s.federation.Unit, Reconstruct: s.federation.Reconstruct, Words: s.federation.Vocabulary > 0}
	parts, held, errs := make([]metrics.Answers, jobs), make([]*data.Client, jobs), make([]error, jobs)
	s.rounds.Each(jobs, func(worker, i int) {
		theta, own, err := s.judge.judged(worker, i)
		if err == nil {
			held[i] = own
			parts[i], err = task.Ask(s.learners[worker], theta, own)
		}
		errs[i] = err
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	k := len(s.rounds.Participants)
	j := judgement{
		task:    task,
		answers: make([]metrics.Answers, k), figures: make([]*metrics.Figures, k), untrainedOwn: make([]*Untrained, k),
	}
	if j.untrained, err = s.compareUntrained(held, parts); err != nil {
		return err
	}
	if m.Figures, err = metrics.Overall(j.task, parts); err != nil {
		return fmt.Errorf("judge: %w", err)
	}
	if j.curves, err = metrics.CurvesOf(j.task, parts); err != nil {
		return fmt.Errorf("judge: %w", err)
	}
	for i, part := range parts {
		if p := s.judge.participant(i); p >= 0 && p < k && len(part.Targets) > 0 { // of a crowd nobody is listed
			j.answers[p] = part
			if j.untrained != nil && k > 1 {
				if j.untrainedOwn[p], err = s.compareUntrained(held[i:i+1], parts[i:i+1]); err != nil {
					return err
				}
			}
		}
	}
	errs = make([]error, k)
	s.rounds.Each(k, func(_, i int) {
		if len(j.answers[i].Targets) > 0 {
			var own metrics.Figures
			own, errs[i] = metrics.OfClient(j.task, j.answers[i])
			if u := cmp.Or(j.untrainedOwn[i], j.untrained); u != nil { // over households instead
				own.AveragePrecision, own.AUC = u.AveragePrecision, u.AUC
			}
			j.figures[i] = &own
		}
	})
	s.judgement = j
	if m.Accuracy != nil {
		m.Error = numberIf(true, 1-float64(m.Accuracy.Value))
	}
	return errors.Join(errs...)
}
