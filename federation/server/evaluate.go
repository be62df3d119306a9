package server

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/evaluate"
	"github.com/coterie-fl/coterie/ledger"
)

// The evaluation is the round after the last one, if the plan has it: everybody is asked,
// for counts instead of a model, and the state stays as it is.

// evaluated is what came of it; a store keeps it in a state's place.
type evaluated struct {
	State    fl.State // after the last round of training
	Sums     []float64
	Released int
	Asked    int
	Reason   string // why there are no sums
}

// isEvaluation says whether a round is the evaluation.
func (c *Coordinator) isEvaluation(round int) bool {
	return c.evaluation != nil && round == c.run.Algorithm.Rounds
}

// evaluating says whether the evaluation is what comes next, or is open: all rounds were
// made, and some of them came to something.
func (c *Coordinator) evaluating() bool {
	return c.isEvaluation(c.state.Round) && c.evaluated == nil && c.learnt
}

// allRounds counts the evaluation.
func (c *Coordinator) allRounds() int {
	if c.evaluation != nil {
		return c.run.Algorithm.Rounds + 1
	}
	return c.run.Algorithm.Rounds
}

// expected is how many values a release of a round has, and what they may be.
func (c *Coordinator) expected(round int) (values int, bounds []fl.Bound) {
	if c.isEvaluation(round) {
		return c.evaluation.Length(), c.evaluation.Bounds()
	}
	return c.algorithm.ReleaseLength(), c.bounds
}

// drawn are those that the next round asks: the evaluation asks all.
func (c *Coordinator) drawn() []int {
	if !c.evaluating() {
		return append([]int(nil), c.sampler.Sample(c.state.Round)...)
	}
	all := make([]int, len(c.names))
	for i := range all {
		all[i] = i
	}
	return all
}

// enough is with how many releases the open round is closed: an evaluation waits for all
// until its deadline.
func (c *Coordinator) enough() int {
	if c.evaluating() {
		return math.MaxInt
	}
	return c.plan.Quorum
}

// tally adds the counts up, in client order, and records the sums with the round's end.
func (c *Coordinator) tally(ctx context.Context, r *openRound, answers []store.Answer, released int) error {
	room, _, err := c.read(ctx, r, answers, released)
	if err != nil {
		return err
	}
	defer room.free()
	n := c.evaluation.Length()
	e := &evaluated{State: *c.state.Clone(), Sums: make([]float64, n), Released: released, Asked: len(r.clients)}
	for i, v := range room.values {
		e.Sums[i%n] += v
	}
	raw, err := transfer.EncodeGob(e)
	if err != nil {
		return err
	}
	if err := c.store.CloseRound(ctx, c.plan.Run, r.number, raw, time.Now()); err != nil {
		return err
	}
	c.evaluated = e
	c.metrics.closed(false)
	c.log.Info("evaluation closed", "released", released, "asked", len(r.clients))
	return nil
}

func decodeEvaluated(raw []byte) (*evaluated, error) {
	var e evaluated
	if err := transfer.DecodeGob(raw, &e); err != nil {
		return nil, fmt.Errorf("what came of the evaluation: %w", err)
	}
	return &e, nil
}

// figures are what the evaluation says; nil if there was none. Its claim is the weakest
// of those that participants' receipts have.
func (c *Coordinator) figures(ctx context.Context) (*evaluate.Figures, error) {
	if c.evaluation == nil || c.evaluated == nil {
		return nil, nil
	}
	claim := event.ClaimProved
	receipts, err := c.store.Receipts(ctx, c.plan.Run)
	if err != nil {
		return nil, err
	}
	for _, r := range receipts {
		if !c.isEvaluation(r.Round) {
			continue
		}
		signed, err := ledger.ParseSignedReceipt(r.Signed)
		if err != nil {
			return nil, fmt.Errorf("a receipt in the store: %w", err)
		}
		if signed.Receipt.Release.Claim != event.ClaimProved {
			claim = event.ClaimHeuristic
		}
	}
	e := c.evaluated
	f, err := c.evaluation.Figures(e.Sums, e.Released, e.Asked, claim)
	if err != nil {
		return nil, err
	}
	if e.Reason != "" {
		f.Reason = e.Reason
	}
	return &f, nil
}
