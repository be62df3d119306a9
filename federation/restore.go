package federation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coterie-fl/coterie/federation/store"
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
	for i, name := range c.names {
		if _, err := c.store.AddParticipant(ctx, c.plan.Run, name, i); err != nil {
			return err
		}
	}
	kept, err := c.store.Run(ctx, c.plan.Run)
	if err != nil {
		return err
	}
	if kept.Status == store.Finished {
		c.over = kept.Detail
	}
	if err := c.recallLeavers(ctx); err != nil {
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
	_, raw, err := c.store.LatestState(ctx, c.plan.Run)
	switch {
	case err == nil:
		if c.state, err = decodeState(raw); err != nil {
			return err
		}
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	if err := decodeGob(last.Sampler, &c.sampler.State); err != nil {
		return fmt.Errorf("the sampler's state: %w", err)
	}
	c.state.Round = last.Number // abandoned rounds leave no state behind, but they count
	if last.Status != store.RoundOpen {
		c.state.Round++
	}
	if err := c.checkOpens(c.state); err != nil {
		return fmt.Errorf("%w: run %s, round %d: %w: a version before releases were bounded took a release that was out of range, and what it replaced is gone; begin the run again with --new, which leaves this one's receipts in the store", ErrStuck, c.plan.Run, c.state.Round+1, err)
	}
	if last.Status != store.RoundOpen {
		return nil
	}
	return c.resume(ctx, last)
}

// leftRun is recorded for those who decline a round because they declined them all.
const leftRun = "left the run"

// recallLeavers finds out who had left before the server was killed: nobody waits
// for them.
func (c *Coordinator) recallLeavers(ctx context.Context) error {
	rounds, err := c.store.Rounds(ctx, c.plan.Run)
	if err != nil {
		return err
	}
	for _, r := range rounds {
		answers, err := c.store.Answers(ctx, c.plan.Run, r.Number)
		if err != nil {
			return err
		}
		for _, a := range answers {
			if a.Kind == store.Declined && a.Reason == leftRun {
				c.presence.leaves(a.Participant)
			} else if a.Kind != store.Waiting {
				c.presence.joined(a.Participant)
			}
		}
	}
	return nil
}
