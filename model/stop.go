package model

import "errors"

// ErrStopped: a learner was asked to stop before its work was done.
var ErrStopped = errors.New("stopped")

// Stoppable is the model with learners that give up soon after stopped says true, with
// ErrStopped: within milliseconds, for they ask between chunks of examples and not at
// every one. What they compute is the same. A model that is not of this package is
// returned as it is, and its learners are never asked to stop.
func Stoppable(m Model, stopped func() bool) Model {
	switch m := m.(type) {
	case Linear:
		m.stopped = stopped
		return m
	case Softmax:
		m.stopped = stopped
		return m
	case Projection:
		m.stopped = stopped
		return m
	case Risk:
		m.stopped = stopped
		return m
	case *network[float32]:
		return m.stoppable(stopped)
	case *network[float64]:
		return m.stoppable(stopped)
	}
	return m
}

func (m *network[F]) stoppable(stopped func() bool) Model {
	own := *m
	own.stopped = stopped
	return &own
}

// Spread is the model with learners that spread the chunks of a batch over a runner's
// workers: for one client that holds everything. Usually clients are what is spread, and
// within one there is nothing to share. What is computed is the same, bit by bit. The
// learners of one model must not work at the same time, for they share the runner.
// Models of rows are returned as they are: their steps are short.
func Spread(m Model, r Runner) Model {
	switch m := m.(type) {
	case *network[float32]:
		own := *m
		own.runner = r
		return &own
	case *network[float64]:
		own := *m
		own.runner = r
		return &own
	case Risk:
		m.runner = r
		return m
	}
	return m
}

// stopValues is how many values of examples a learner of rows reads before it asks
// whether to stop: about a millisecond's work, beside which asking costs nothing.
const stopValues = 1 << 20

// pause asks whether to stop, now and then; nil: go on.
type pause struct{ read int }

func (p *pause) after(values int, stopped func() bool) error {
	if p.read += values; p.read < stopValues {
		return nil
	}
	p.read = 0
	if stopped != nil && stopped() {
		return ErrStopped
	}
	return nil
}
