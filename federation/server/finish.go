package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/model"
)

// finish records the end of the run and lets participants fetch its models.
func (c *Coordinator) finish(ctx context.Context, stopped string) (Finished, error) {
	abandoned, closed, err := c.history(ctx)
	if err != nil {
		return Finished{}, err
	}
	if closed == 0 {
		return c.fail(ctx, Finished{Rounds: c.state.Round, Abandoned: abandoned, Stopped: stopped})
	}
	returned := slices.Clone(c.state.Hypotheses)
	b, err := c.algorithm.Broadcast(c.state) // which may round the models
	if err != nil {
		return Finished{}, err
	}
	if c.algorithm.OwnModels() {
		returned = b.Hypotheses
	}
	models, err := transfer.ModelFile(returned, c.model.Parameters())
	if err != nil {
		return Finished{}, err
	}
	f := Finished{Rounds: c.state.Round, Abandoned: abandoned, Stopped: stopped, models: newContent(models), broadcast: newContent(transfer.EncodeBroadcast(b))}
	if f.ModelSHA256, err = model.TensorsSHA256(models); err != nil {
		return Finished{}, err
	}
	if err := c.store.SetRunStatus(ctx, c.plan.Run, store.Finished, stopped); err != nil {
		return Finished{}, err
	}
	if c.over != "" {
		c.log.Info("the run had finished before; its models are handed out again", "run", c.plan.Run)
	}
	c.log.Info("run finished", "rounds", f.Rounds, "abandoned", f.Abandoned, "stopped", stopped, "model_sha256", f.ModelSHA256)
	c.announce(&f)
	return f, nil
}

// fail records that a run has ended and that there is no model: the one that it began
// with was learnt from nobody.
func (c *Coordinator) fail(ctx context.Context, f Finished) (Finished, error) {
	if err := c.store.SetRunStatus(ctx, c.plan.Run, store.Failed, f.Stopped); err != nil {
		return Finished{}, err
	}
	c.announce(&f)
	return f, fmt.Errorf("%w: none of %d rounds had the %d releases that one needs (the run ended for lack of %s), so there is no model; see the log for who declined and why, and begin another run with --new",
		transfer.ErrNothing, f.Rounds, max(1, c.plan.Minimum), f.Stopped)
}

// announce tells everybody who waits that the run has ended.
func (c *Coordinator) announce(f *Finished) {
	c.gate.Lock()
	c.finished = f
	c.gate.Unlock()
	c.news.ring()
}

// history counts how rounds ended, and notes who ever released: whoever has paid for the
// models is waited for.
func (c *Coordinator) history(ctx context.Context) (abandoned, closed int, err error) {
	rounds, err := c.store.Rounds(ctx, c.plan.Run)
	if err != nil {
		return 0, 0, err
	}
	for _, r := range rounds {
		switch {
		case c.isEvaluation(r.Number): // it is told by itself
		case r.Status == store.RoundAbandoned:
			abandoned++
		case r.Status == store.RoundClosed:
			closed++
		}
		answers, err := c.store.Answers(ctx, c.plan.Run, r.Number)
		if err != nil {
			return 0, 0, err
		}
		for _, a := range answers {
			if a.Kind == store.Released {
				c.presence.paid(a.Participant)
			}
		}
	}
	return abandoned, closed, nil
}

// Models are the returned models of a finished run, as safetensors.
func (f Finished) Models() []byte { return f.models.bytes }
