package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
)

// Decline takes the word that no release will come.
func (h *Handlers) Decline(ctx context.Context, q *wire.DeclineRequest) (_ *wire.DeclineReply, err error) {
	name, err := caller(ctx)
	if err != nil {
		return nil, h.refused(ctx, err)
	}
	ctx, end := h.c.inRound(ctx, wire.FederationDeclineProcedure, q.GetSlot().GetRound())
	defer func() { end(err) }()
	if err := h.c.decline(ctx, name, slotOf(q.GetSlot()), q.GetWholeRun(), q.GetCode()); err != nil {
		return nil, h.refused(ctx, err)
	}
	return &wire.DeclineReply{}, nil
}

// decline records that a participant makes no release in a round, or in all that
// follow.
func (c *Coordinator) decline(ctx context.Context, name string, s slotKey, whole bool, code string) error {
	i, err := c.place(name)
	if err != nil {
		return err
	}
	if err := c.checkPlan(s.Run, s.Plan); err != nil {
		return err
	}
	switch code {
	case "budget", "policy", "failure", "past":
	default:
		return transfer.Refuse(transfer.ReasonMalformed, "a code that is none of budget, policy, failure, past")
	}
	if whole {
		c.presence.leaves(i)
		c.seldom.write(slog.LevelInfo, name, "a participant declines the rest of the run", "participant", name, "code", code)
		c.metrics.answered("left")
		c.progress.ring()
	}
	c.gate.RLock()
	defer c.gate.RUnlock()
	if whole {
		if r := c.round; r != nil && r.waitsFor(i) {
			return c.recordDecline(ctx, c.direct, r, i, leftRun)
		}
		return nil
	}
	if err := c.isOpen(s.Round); err != nil {
		return err
	}
	return c.recordDecline(ctx, c.direct, c.round, i, code)
}

// recordDecline is durable before it counts. A release that was accepted meanwhile
// stands.
func (c *Coordinator) recordDecline(ctx context.Context, s store.Store, r *openRound, i int, code string) error {
	if err := s.Decline(ctx, c.plan.Run, r.number, i, code, time.Now()); err != nil {
		return fromStore(err)
	}
	r.settle(i, store.Declined, code)
	c.metrics.answered("declined")
	c.progress.ring()
	return nil
}

// leftRun is recorded for those who decline a round because they declined them all.
const leftRun = "left the run"
