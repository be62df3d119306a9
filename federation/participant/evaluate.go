package participant

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/evaluate"
	"github.com/coterie-fl/coterie/ledger"
)

// isEvaluation says whether a round is the evaluation: the one after the last one.
func (s *session) isEvaluation(round int) bool {
	return s.evaluation != nil && round == s.run.Algorithm.Rounds
}

// allRounds counts the evaluation.
func (s *session) allRounds() int {
	if s.evaluation != nil {
		return s.run.Algorithm.Rounds + 1
	}
	return s.run.Algorithm.Rounds
}

func (s *session) evaluationSlot() ledger.Slot {
	return s.slot(s.run.Algorithm.Rounds)
}

// willEvaluate says why this participant declines the evaluation, if it does. Every reason
// is public: the policy, who trains, and what the ledger has recorded.
func (p *Participant) willEvaluate(s *session) error {
	switch {
	case !p.o.Policy.Evaluation:
		return errors.New("the policy does not say evaluation: true")
	case s.half.Trained || s.half.Learner == nil:
		return errors.New("a trainer does the work, and cannot be asked about held-out examples")
	}
	if _, known := p.o.Ledger.Entry(s.evaluationSlot()); known {
		return nil // paid for before: Reserve sees to it that it is the same release
	}
	price := s.evaluation.Price(&s.first)
	if err := p.o.Policy.AllowsRelease(price); err != nil {
		return err
	}
	return p.o.Ledger.Check(price)
}

// explainEvaluation says in the log, before training, what will become of the evaluation.
func (p *Participant) explainEvaluation(s *session) {
	if s.evaluation == nil {
		return
	}
	if err := p.willEvaluate(s); err != nil {
		p.o.Log.Info("the plan asks for an evaluation, which will be declined", "reason", err)
		return
	}
	p.o.Log.Info("the plan asks for an evaluation: one more release after the last round", append(spelled(s.evaluation.Price(&s.first)), "epsilon", s.run.Judge.Evaluate.Epsilon)...)
}

// declineEvaluation says no to the one round; training was not affected.
func (p *Participant) declineEvaluation(ctx context.Context, s *session, reason error) {
	code := "policy"
	if errors.Is(reason, ledger.ErrRefused) {
		code = "budget"
	}
	p.report.Declined++
	p.o.Log.Info("the evaluation is declined", "reason", reason)
	p.decline(ctx, s, int64(s.run.Algorithm.Rounds), false, code)
}

// evaluate makes the evaluation's release, keeps it, noised, before anything is sent, and
// sends it. Held-out examples that cannot be asked count nowhere; no failure that comes
// from data keeps the release back.
func (p *Participant) evaluate(ctx context.Context, s *session, slot ledger.Slot, b fl.Broadcast, asked time.Time) error {
	err := p.count(s, slot, b)
	switch {
	case errors.Is(err, fl.ErrRefused):
		p.declineEvaluation(ctx, s, err)
		return nil
	case err != nil && ledgerFailed(err):
		return err // fail closed
	case err != nil:
		p.report.Declined++
		p.o.Log.Error("no release in the evaluation", "error", err)
		p.decline(ctx, s, int64(slot.Round), false, "failure")
		return nil
	}
	return p.sendAfter(ctx, s, slot, asked)
}

// count pays, counts, and stores.
func (p *Participant) count(s *session, slot ledger.Slot, b fl.Broadcast) error {
	me, err := s.begin(slot.Round)
	if err != nil {
		return err
	}
	pay := &purse{
		ledger: p.o.Ledger, policy: p.o.Policy, slot: slot, plan: ledger.Hash(s.sum), enforcement: s.half.Enforcement,
		log: p.o.Log,
	}
	me.Purse = pay
	out := make([]float64, s.evaluation.Length())
	released, err := s.evaluation.Answer(b, me, s.half.Data.Held, s.half.Learner, out)
	switch {
	case pay.refused != nil:
		return fmt.Errorf("%w: %w", fl.ErrRefused, pay.refused)
	case err != nil:
		return err
	case !released || !pay.paid:
		return errors.New("counts that were not paid for; they are not sent")
	}
	if me.Mishap != nil {
		p.report.Blank++
		p.o.Log.Error("HELD-OUT EXAMPLES CANNOT BE ASKED: they count nowhere in this participant's evaluation", "error", me.Mishap)
	}
	sum := sha256.Sum256(transfer.EncodeBroadcast(b))
	me.Evaluated = sum[:]
	if err := s.memory.Save(slot.Round, me); err != nil {
		return fmt.Errorf("%w: %w", errPersist, err)
	}
	if err := p.o.Ledger.Store(slot, transfer.AppendVector(make([]byte, 0, 8*len(out)), out)); err != nil {
		return fmt.Errorf("%w: %w", errPersist, err)
	}
	return nil
}

// judge is what this participant's own model says of its own held-out examples. It is for
// the owner alone; what fails is logged.
func (p *Participant) judge(s *session) (own *evaluate.Local) {
	defer func() {
		if r := recover(); r != nil {
			own = nil
			p.o.Log.Warn("no local figures", "error", r)
		}
	}()
	if s.half.Trained || s.half.Learner == nil || s.half.Data == nil || s.half.Data.Held == nil || p.report.Personal == nil {
		return nil
	}
	held := s.half.Data.Held
	if p.report.Scale != nil {
		me := fl.Participant{Kept: fl.Kept{Scaling: append(append([]float64(nil), p.report.Centre...), p.report.Scale...)}}
		held = me.Standardised(held)
	}
	own, err := evaluate.Locally(s.run, p.report.Personal, held, s.plan.Shape, s.half.Learner)
	if err != nil {
		p.o.Log.Warn("no local figures", "error", err)
	}
	return own
}
