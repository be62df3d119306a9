package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/pool"
)

// pivot is the one run that is sent: every silo trains at the public setting, and
// trials follow the means that it leaves (paper 002, appendix E.3).
type pivot struct {
	algorithm *fl.Algorithm
	silos     []fl.Participant
	sent      []fl.Broadcast // of every round, and of the end
}

// train makes the pivot's rounds and keeps what the server sent in each.
func (p *pivot) train(ctx context.Context, workers *pool.Pool, memory []fl.Worker, rounds int) error {
	state := p.algorithm.Start()
	all := make([]int, len(p.silos))
	for i := range all {
		all[i] = i
	}
	errs := make([]error, len(all))
	var round fl.Round
	for range rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := p.note(state)
		if err != nil {
			return err
		}
		if err := round.Open(state.Round, all, p.algorithm.ReleaseLength()); err != nil {
			return err
		}
		workers.Each(len(all), func(worker, i int) { errs[i] = p.respond(&memory[worker], b, &round, i) })
		if err := errors.Join(errs...); err != nil {
			return err
		}
		releases, err := round.Close()
		if err != nil {
			return err
		}
		if outcome := p.algorithm.Aggregate(state, releases); outcome.Err != nil {
			return outcome.Err
		}
	}
	_, err := p.note(state)
	return err
}

// note keeps a copy of what is sent: the state goes on to change.
func (p *pivot) note(state *fl.State) (fl.Broadcast, error) {
	b, err := p.algorithm.Broadcast(state)
	if err != nil {
		return b, err
	}
	b.Hypotheses, b.Memory = slices.Clone(b.Hypotheses), slices.Clone(b.Memory)
	p.sent = append(p.sent, b)
	return b, nil
}

func (p *pivot) respond(w *fl.Worker, b fl.Broadcast, round *fl.Round, i int) error {
	released, err := fl.RespondOpenly(p.algorithm, w, b, &p.silos[i], round.Slot(i))
	if err != nil {
		return err
	}
	if !released {
		return fmt.Errorf("silo %s declined", p.silos[i].Name)
	}
	return round.Released(i)
}

// end is what the server sent last: a public model.
func (p *pivot) end() fl.Broadcast { return p.sent[len(p.sent)-1] }
