package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
)

// storePatience is how long a server waits for a store that does not answer: long
// enough for a database that is started anew or moved, and not for ever, so that
// whoever watches over the server hears of it.
const storePatience = 10 * time.Minute

// The waits between two attempts double.
const (
	firstStoreWait = 100 * time.Millisecond
	mostStoreWait  = 10 * time.Second
)

// patient is a store for the loop that makes the rounds: when it cannot be read or
// written it is asked again, since a round must not be lost because a database was
// restarted. What participants ask for goes to the store itself: they try again.
//
// An attempt that failed may have been recorded all the same, if the answer was lost.
// The next one then finds it done, and is content if what is there is what it wanted.
type patient struct {
	store.Store
	log  *slog.Logger
	most time.Duration
}

// forGood are errors that another attempt does not change.
var forGood = []error{
	store.ErrNotFound, store.ErrExists, store.ErrRoundClosed, store.ErrNotAssigned, store.ErrEquivocation,
	store.ErrAnswered, store.ErrMismatch, store.ErrReceiptOrder, store.ErrSuperseded, store.ErrDamaged,
}

// again repeats an attempt until it succeeds or fails for good, ctx ends, or patience
// does. The attempt is told whether an earlier one may have been recorded.
func (p patient) again(ctx context.Context, what string, attempt func(repeated bool) error) error {
	var began time.Time
	for tries, pause := 0, firstStoreWait; ; tries, pause = tries+1, min(2*pause, mostStoreWait) {
		err := attempt(tries > 0)
		switch {
		case err == nil && tries > 0:
			p.log.Info("the store answers again", "what", what, "after", time.Since(began).Round(time.Millisecond).String(), "attempts", tries+1)
			return nil
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w: %w", transfer.ErrInterrupted, context.Cause(ctx), err)
		case slices.ContainsFunc(forGood, func(known error) bool { return errors.Is(err, known) }):
			return err
		}
		if tries == 0 {
			began = time.Now()
		}
		if time.Since(began)+pause > p.most {
			return fmt.Errorf("%s: the store has not answered for %v, in %d attempts; nothing that was recorded is lost: start the server again once it does: %w",
				what, time.Since(began).Round(time.Second), tries+1, err)
		}
		p.log.Warn("the store does not answer; trying again", "what", what, "wait", pause.String(), "error", err)
		if err := transfer.Wait(ctx, nil, pause); err != nil {
			return err
		}
	}
}

// ask is again for what changes nothing.
func ask[T any](ctx context.Context, p patient, what string, attempt func() (T, error)) (out T, err error) {
	err = p.again(ctx, what, func(bool) (err error) {
		out, err = attempt()
		return err
	})
	return out, err
}

// OpenRound first makes sure that the store is still this server's.
func (p patient) OpenRound(ctx context.Context, r store.Round) error {
	return p.again(ctx, "open a round", func(repeated bool) error {
		if err := p.Store.Ping(ctx); err != nil {
			return err
		}
		err := p.Store.OpenRound(ctx, r)
		if !repeated || !errors.Is(err, store.ErrExists) {
			return err
		}
		kept, look := p.Store.Round(ctx, r.Run, r.Number)
		if look != nil {
			return look
		}
		if kept.Status != store.RoundOpen || !slices.Equal(kept.Clients, r.Clients) || !bytes.Equal(kept.Sampler, r.Sampler) {
			return err
		}
		return nil
	})
}

func (p patient) CloseRound(ctx context.Context, run string, number int, state []byte, at time.Time) error {
	return p.again(ctx, "close a round", func(repeated bool) error {
		err := p.Store.CloseRound(ctx, run, number, state, at)
		if !repeated || !errors.Is(err, store.ErrRoundClosed) {
			return err
		}
		last, kept, look := p.Store.LatestState(ctx, run)
		if look != nil {
			return look
		}
		if last != number || !bytes.Equal(kept, state) {
			return err
		}
		return nil
	})
}

func (p patient) AbandonRound(ctx context.Context, run string, number int, reason string, at time.Time) error {
	return p.again(ctx, "abandon a round", func(repeated bool) error {
		err := p.Store.AbandonRound(ctx, run, number, reason, at)
		if !repeated || !errors.Is(err, store.ErrRoundClosed) {
			return err
		}
		kept, look := p.Store.Round(ctx, run, number)
		if look != nil {
			return look
		}
		if kept.Status != store.RoundAbandoned || kept.Reason != reason {
			return err
		}
		return nil
	})
}

// Decline is the same if it is recorded twice.
func (p patient) Decline(ctx context.Context, run string, round, participant int, reason string, at time.Time) error {
	return p.again(ctx, "record a decline", func(bool) error { return p.Store.Decline(ctx, run, round, participant, reason, at) })
}

// SetRunStatus is the same if it is recorded twice.
func (p patient) SetRunStatus(ctx context.Context, id string, status store.RunStatus, detail string) error {
	return p.again(ctx, "record how the run stands", func(bool) error { return p.Store.SetRunStatus(ctx, id, status, detail) })
}

func (p patient) Answers(ctx context.Context, run string, round int) ([]store.Answer, error) {
	return ask(ctx, p, "read a round's answers", func() ([]store.Answer, error) { return p.Store.Answers(ctx, run, round) })
}

func (p patient) SmallUpdates(ctx context.Context, run string, round, after, most int) ([]store.Small, error) {
	return ask(ctx, p, "read releases back", func() ([]store.Small, error) {
		return p.Store.SmallUpdates(ctx, run, round, after, most)
	})
}

func (p patient) Rounds(ctx context.Context, run string) ([]store.Round, error) {
	return ask(ctx, p, "read the rounds", func() ([]store.Round, error) { return p.Store.Rounds(ctx, run) })
}

func (p patient) Equivocations(ctx context.Context, run string) ([]store.Equivocation, error) {
	return ask(ctx, p, "read the equivocations", func() ([]store.Equivocation, error) { return p.Store.Equivocations(ctx, run) })
}

func (p patient) Receipts(ctx context.Context, run string) ([]store.Receipt, error) {
	return ask(ctx, p, "read the receipts", func() ([]store.Receipt, error) { return p.Store.Receipts(ctx, run) })
}
