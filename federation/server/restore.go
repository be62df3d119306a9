package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/fl"
)

// ErrStuck means that the store's last state cannot begin another round: to start the
// server again does not help.
var ErrStuck = errors.New("the run cannot go on from what the store holds")

// restore takes up the run where the store says it is.
func (c *Coordinator) restore(ctx context.Context) error {
	err := c.store.CreateRun(ctx, store.Run{
		ID: c.plan.Run, File: []byte(c.plan.RunFile), SHA256: fmt.Sprintf("%x", c.sum), Status: store.Running, Created: time.Now(),
	})
	if err != nil {
		return err
	}
	if err := c.store.AddParticipants(ctx, c.plan.Run, c.names); err != nil {
		return err
	}
	kept, err := c.store.Run(ctx, c.plan.Run)
	if err != nil {
		return err
	}
	if kept.Status == store.Finished {
		c.over = kept.Detail
	}
	if err := c.recall(ctx); err != nil {
		return err
	}
	c.state = c.algorithm.Start()
	last, err := c.store.LatestRound(ctx, c.plan.Run)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	number, raw, err := c.store.LatestState(ctx, c.plan.Run)
	switch {
	case err == nil && c.isEvaluation(number):
		if c.evaluated, err = decodeEvaluated(raw); err != nil {
			return err
		}
		c.state, c.learnt = &c.evaluated.State, true
	case err == nil:
		if c.state, err = decodeState(raw); err != nil {
			return err
		}
		c.learnt = true
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	if err := transfer.DecodeGob(last.Sampler, &c.sampler.State); err != nil {
		return fmt.Errorf("the sampler's state: %w", err)
	}
	c.reached = last.Number
	c.state.Round = last.Number // abandoned rounds leave no state behind, but they count
	switch {
	case last.Status == store.RoundOpen:
	case !c.isEvaluation(last.Number):
		c.state.Round++
	case c.evaluated == nil:
		c.evaluated = &evaluated{Asked: len(last.Clients), Reason: last.Reason}
	}
	if err := c.checkOpens(c.state); err != nil {
		return fmt.Errorf("%w: run %s, round %d: %w: a version before releases were bounded took a release that was out of range, and what it replaced is gone; begin the run again with --new, which leaves this one's receipts in the store", ErrStuck, c.plan.Run, c.state.Round+1, err)
	}
	if last.Status != store.RoundOpen {
		return nil
	}
	return c.resume(ctx, last)
}

// checkOpens says why a state cannot begin another round, if that is so: it is asked
// before the state is made durable. The state is left as it is.
func (c *Coordinator) checkOpens(s *fl.State) error {
	b, err := c.algorithm.Broadcast(s.Clone())
	if err != nil {
		return err
	}
	most := fl.LargestValue(c.run)
	for _, part := range []struct {
		what   string
		values []float64
		most   float64
	}{
		{"a hypothesis", b.Hypotheses, most},
		{"what is sent beside the hypotheses", b.Memory, math.MaxFloat64},
		{"the radius or the spread", []float64{b.Radius, b.Spread}, math.MaxFloat64},
	} {
		for _, v := range part.values {
			if !(math.Abs(v) <= part.most) {
				return fmt.Errorf("%s has the value %v; participants take magnitudes up to %v", part.what, v, part.most)
			}
		}
	}
	return nil
}

func decodeState(raw []byte) (*fl.State, error) {
	var s fl.State
	if err := transfer.DecodeGob(raw, &s); err != nil {
		return nil, fmt.Errorf("the server's state: %w", err)
	}
	return &s, nil
}

// resume goes on with a round that was open when the server was killed. Everybody
// gets the whole time again: they, too, must find their way back.
func (c *Coordinator) resume(ctx context.Context, last store.Round) error {
	b, err := c.beginning()
	if err != nil {
		return err
	}
	answers, err := c.store.Answers(ctx, c.plan.Run, last.Number)
	if err != nil {
		return err
	}
	r := newRound(last.Number, last.Clients, newContent(transfer.EncodeBroadcast(b)), c.deadline())
	r.opened = last.Opened
	for _, a := range answers {
		r.settle(a.Participant, a.Kind, a.Reason)
	}
	c.log.Info("going on with a round", "round", r.number+1, "asked", len(r.clients))
	c.ask(r)
	return nil
}
