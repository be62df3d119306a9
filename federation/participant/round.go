package participant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"runtime/debug"
	"slices"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
)

// work makes rounds until the run ends.
func (p *Participant) work(ctx context.Context) error {
	s := p.session
	for {
		if p.o.Renew != nil {
			if err := p.o.Renew(ctx); err != nil {
				return err
			}
		}
		reply, err := Retry(ctx, p.o.Log, "ask for work", func(ctx context.Context) (*wire.NextReply, error) {
			ctx, cancel := context.WithTimeout(ctx, pollTime+callTime)
			defer cancel()
			return p.o.Client.Next(ctx, &wire.NextRequest{Run: s.plan.Run, PlanSha256: s.sum[:], WaitMilliseconds: pollTime.Milliseconds()})
		})
		if err != nil {
			return err
		}
		switch work := reply.GetWork(); {
		case work != nil && s.over != nil && !p.repeats(s, int(work.GetSlot().GetRound())):
			p.decline(ctx, s, work.GetSlot().GetRound(), true, "budget")
		case work != nil:
			err = p.answer(ctx, s, work)
		case reply.GetFinished() != nil:
			return errors.Join(s.over, p.takeHome(ctx, s, reply.GetFinished()))
		}
		if err != nil && !p.retire(s, err) {
			return err
		}
	}
}

// pollTime is how long one request for work may wait at the server.
const pollTime = 30 * time.Second

// answer makes one round: the stored release again if there is one, a new one if the
// ledger pays for it, or none.
func (p *Participant) answer(ctx context.Context, s *session, w *wire.Work) error {
	round := w.GetSlot().GetRound()
	if round < 0 || round >= int64(s.allRounds()) || w.GetSlot().GetRun() != s.plan.Run {
		return fmt.Errorf("the server asks for round %d of run %q; the plan has %d rounds of run %q",
			round+1, w.GetSlot().GetRun(), s.allRounds(), s.plan.Run)
	}
	asked := time.Now()
	p.o.Log.Info("asked", "round", round+1, "cohort", w.GetCohort(), "seconds_left", w.GetMillisecondsLeft()/1000)
	if err := p.settleEarlier(ctx, s, int(round)); err != nil {
		return err
	}
	slot := s.slot(int(round))
	entry, known := p.o.Ledger.Entry(slot)
	switch {
	case known && entry.Status == ledger.Stored:
		return p.sendAfter(ctx, s, slot, asked)
	case known && entry.Status == ledger.Committed:
		return p.sendAgain(ctx, s, entry)
	case known && entry.Status == ledger.Abandoned, int(round) < p.latest(s):
		// Rounds go forward: after a later one, or after the evaluation, nothing is trained.
		p.o.Log.Warn("the server asks for a round that lies behind this participant; nothing is sent", "round", round+1, "status", entry.Status)
		p.declinePast(ctx, s, round)
		return nil
	}
	if s.isEvaluation(int(round)) {
		if err := p.willEvaluate(s); err != nil {
			p.declineEvaluation(ctx, s, err)
			return nil
		}
	}
	b, err := p.begin(ctx, s, w)
	if transfer.ReasonOf(err) == transfer.ReasonLate {
		return nil // the round ended before it was begun here: nothing was spent
	}
	if err != nil {
		if errors.Is(err, fl.ErrRefused) {
			p.decline(ctx, s, round, true, "policy")
		}
		return err
	}
	if s.isEvaluation(int(round)) {
		return p.evaluate(ctx, s, slot, b, asked)
	}
	released, err := p.respond(s, slot, b)
	switch {
	case errors.Is(err, fl.ErrRefused):
		p.report.Declined++
		p.decline(ctx, s, round, true, "budget")
		if errors.Is(err, errSpent) { // it says so
			return err
		}
		return fmt.Errorf("%w: %w", errSpent, err)
	case err != nil && ledgerFailed(err):
		return err // fail closed: nothing is sent until the ledger can be trusted again
	case err != nil || !released: // not even noise could be drawn: it has nothing to do with the data
		p.report.Declined++
		p.o.Log.Error("no release in this round", "round", round+1, "error", err)
		p.decline(ctx, s, round, false, "failure")
		return nil
	}
	return p.sendAfter(ctx, s, slot, asked)
}

// begin fetches the round's broadcast and holds it against the plan.
func (p *Participant) begin(ctx context.Context, s *session, w *wire.Work) (fl.Broadcast, error) {
	raw, err := fetch(ctx, p.o.Client, p.o.Log, s.plan.Run, w.GetBroadcast(), s.mostBroadcast())
	if err != nil {
		return fl.Broadcast{}, err
	}
	b, err := transfer.DecodeBroadcast(raw)
	if err != nil {
		return b, err
	}
	if err := s.expects(b, int(w.GetSlot().GetRound())); err != nil {
		return b, err
	}
	return b, p.bounds(s, b)
}

// mostBroadcast bounds the bytes of a broadcast.
func (s *session) mostBroadcast() int64 {
	return transfer.BroadcastSize(len(s.began.Hypotheses)+2*s.memorySent) + transfer.Overhead
}

// expects refuses a broadcast that does not follow from the plan: a server must not
// change radius or lattice from one round to the next.
func (s *session) expects(b fl.Broadcast, round int) error {
	if b.Round != round || len(b.Hypotheses) != len(s.began.Hypotheses) {
		return fmt.Errorf("a broadcast of round %d with %d values; round %d with %d was announced",
			b.Round+1, len(b.Hypotheses), round+1, len(s.began.Hypotheses))
	}
	state := fl.State{
		Round: round, Hypotheses: append([]float64(nil), b.Hypotheses...),
		Idle: make([]int, len(s.began.Idle)), Memory: append([]float64(nil), s.began.Memory...),
	}
	want, err := s.half.Algorithm.Broadcast(&state)
	if err != nil {
		return fmt.Errorf("round %d cannot begin as the server says: %w", round+1, err)
	}
	if want.Radius != b.Radius || want.Spread != b.Spread {
		return fmt.Errorf("%w: round %d has radius %v and spread %v by the plan, the server says %v and %v",
			fl.ErrRefused, round+1, want.Radius, want.Spread, b.Radius, b.Spread)
	}
	for i, v := range want.Hypotheses {
		if math.Float64bits(v) != math.Float64bits(b.Hypotheses[i]) {
			return fmt.Errorf("%w: round %d begins off the plan's lattice: what is left below it would tell which hypothesis was chosen", fl.ErrRefused, round+1)
		}
	}
	return nil
}

// bounds refuses values that no honest training needs, before data is touched: those
// beyond the plan's, and, since the plan is the server's, beyond this participant's own
// bound. What a server sends beside the models are at most squares and products of them.
func (p *Participant) bounds(s *session, b fl.Broadcast) error {
	most := fl.LargestValue(s.run)
	if own := p.o.Policy.MaximumValue; own > 0 {
		most = min(most, own)
	}
	for _, part := range []struct {
		values []float64
		most   float64
	}{{b.Hypotheses, most}, {b.Memory, most * most}} {
		for _, v := range part.values {
			if !(math.Abs(v) <= part.most) {
				return fmt.Errorf("%w: round %d begins with a value of %v; this participant takes up to %v (maximum_value of its policy, and the plan)", fl.ErrRefused, b.Round+1, v, part.most)
			}
		}
	}
	return nil
}

// affords prices a round from the plan and its broadcast, before data is touched: a
// server that broadcasts hypotheses far apart, or plans a tiny radius, would read from
// the release which of them was chosen. So whether this participant declines follows
// from public and paid numbers alone.
func (p *Participant) affords(s *session, slot ledger.Slot, b fl.Broadcast) error {
	if _, known := p.o.Ledger.Entry(slot); known {
		return nil // paid for before: Reserve sees to it that it is the same release
	}
	var r event.Release
	switch {
	case s.half.Planned != nil:
		r = *s.half.Planned
	case s.half.Respond != nil:
		return nil
	default:
		one, ok, err := s.half.Algorithm.Price(b)
		if err != nil {
			return fmt.Errorf("%w: what the server broadcast has no price: %w", fl.ErrRefused, err)
		}
		if !ok || b.Round >= s.half.Algorithm.Outline().Sends {
			return nil // rounds are priced by the plan alone, all at once (see fits), or nothing is sent
		}
		r = one
	}
	if err := p.o.Policy.AllowsRelease(r); err != nil {
		return err
	}
	return refusal(p.o.Ledger.Check(r))
}

// respond makes the release and keeps it, noised, before anything is sent.
func (p *Participant) respond(s *session, slot ledger.Slot, b fl.Broadcast) (bool, error) {
	if err := p.affords(s, slot, b); err != nil {
		return false, err
	}
	me, err := s.begin(slot.Round)
	if err != nil {
		return false, err
	}
	pay := &purse{
		ledger: p.o.Ledger, policy: p.o.Policy, slot: slot, plan: ledger.Hash(s.sum), enforcement: s.half.Enforcement,
		log: p.o.Log,
	}
	me.Purse = pay
	me.Keep = func(me *fl.Participant) error { // what the round draws for all later ones, as if it had held before it
		if err := s.memory.Save(slot.Round-1, me); err != nil {
			return fmt.Errorf("%w: %w", errPersist, err)
		}
		return nil
	}
	s.blank = false
	defer func() {
		if s.blank {
			p.report.Blank++
		}
	}()
	released, err := p.attempt(s, b, me)
	if err != nil && pay.refused == nil && !ledgerFailed(err) {
		// A missing answer would tell of the data what nobody has paid for: what is sent is
		// noise around a fixed vector.
		p.o.Log.Error("TRAINING FAILED: what this participant releases in this round says nothing of its data", "round", slot.Round+1, "error", err)
		s.blank = true
		blank, recalled := s.recall(slot.Round)
		if recalled != nil {
			return false, recalled
		}
		blank.Purse, blank.Keep, blank.Blank = pay, me.Keep, true
		me = blank
		released, err = p.attempt(s, b, me)
	}
	switch {
	case pay.refused != nil:
		return false, refusal(pay.refused)
	case err != nil:
		return false, err
	case !released:
		return false, fmt.Errorf("%w: the run's own privacy.ceiling is reached", fl.ErrRefused)
	case !pay.paid && b.Round < s.half.Algorithm.Outline().Sends:
		return false, errors.New("the method made a release that it did not pay for; it is not sent")
	case !pay.paid:
		if err := s.sayNothing(pay, me); err != nil {
			return false, err
		}
	}
	fl.Clamp(s.out, s.half.Algorithm.ReleaseBounds())
	if i := transfer.FirstNotFinite(s.out); i >= 0 {
		return false, fmt.Errorf("value %d of the release is %v", i, s.out[i])
	}
	if err := s.memory.Save(slot.Round, me); err != nil {
		return false, fmt.Errorf("%w: %w", errPersist, err)
	}
	if err := p.o.Ledger.Store(slot, transfer.AppendVector(make([]byte, 0, 8*len(s.out)), s.out)); err != nil {
		return false, fmt.Errorf("%w: %w", errPersist, err)
	}
	return true, nil
}

// begin is recall before anything is paid for: what was drawn for the plan stays the same from here on.
func (s *session) begin(round int) (*fl.Participant, error) {
	if err := s.memory.Begin(); err != nil {
		return nil, fmt.Errorf("%w: %w", errPersist, err)
	}
	return s.recall(round)
}

// recall is the participant as it was before a round.
func (s *session) recall(round int) (*fl.Participant, error) {
	me := s.first
	me.Personal, me.Last = slices.Clone(me.Personal), slices.Clone(me.Last)
	if err := s.memory.Recall(round, &me); err != nil {
		return nil, fmt.Errorf("%w: %w", errForgotten, err)
	}
	return &me, nil
}

// attempt has the half respond, and tells the participant's owner, and nobody else,
// what went wrong on the way.
func (p *Participant) attempt(s *session, b fl.Broadcast, me *fl.Participant) (released bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			released, err = false, fmt.Errorf("training panicked: %v\n%s", r, debug.Stack())
			s.worker = fl.Worker{} // it may be in the middle of something
		}
	}()
	h := s.half
	if h.Respond != nil {
		released, err = h.Respond(b, me, s.out)
	} else {
		released, err = h.Algorithm.Respond(&s.worker, b, me, s.out)
	}
	if h.Failure != nil {
		if failure := h.Failure(); failure != nil {
			s.blank = true
			p.o.Log.Error("THE TRAINER FAILED: what this participant releases in this round says little or nothing of its data", "round", b.Round+1, "error", failure)
		}
	}
	if err == nil && me.Mishap != nil {
		s.blank = true
		p.o.Log.Error("TRAINING LEFT THE FINITE NUMBERS: a fixed vector was released in its place, with noise", "round", b.Round+1, "error", me.Mishap)
	}
	return released, err
}

// purse pays for one slot from the ledger.
type purse struct {
	ledger      Ledger
	policy      plan.Policy
	slot        ledger.Slot
	plan        ledger.Hash
	enforcement ledger.Enforcement
	log         *slog.Logger // nil: nothing is said
	paid        bool
	release     event.Release // that was paid for
	refused     error         // why the ledger would not pay
}

// Reserve is durable when it returns nil.
func (p *purse) Reserve(round int, r event.Release) error {
	if round != p.slot.Round {
		return fmt.Errorf("a release of round %d is to be paid in round %d", round+1, p.slot.Round+1)
	}
	if p.paid { // the round is made once more, without the data
		if !reflect.DeepEqual(r, p.release) {
			return fmt.Errorf("round %d was paid for %s, not for %s", round+1, event.Describe(p.release.What), event.Describe(r.What))
		}
		return nil
	}
	if err := p.policy.AllowsRelease(r); err != nil {
		p.refused = err
		return err
	}
	err := p.ledger.Reserve(ledger.Charge{Slot: p.slot, Plan: p.plan, Release: r, Enforcement: p.enforcement})
	if errors.Is(err, ledger.ErrRefused) {
		p.refused = err
		return fmt.Errorf("%w: %w", fl.ErrRefused, err)
	}
	if err != nil && !errors.Is(err, ledger.ErrConflict) {
		return fmt.Errorf("%w: %w", errPersist, err) // fail closed
	}
	p.paid, p.release = err == nil, r
	if p.paid && p.log != nil {
		p.log.Info("paid for a release", append([]any{"round", round + 1}, spelled(r)...)...)
	}
	return err
}

// errPersist marks what could not be made durable.
var errPersist = errors.New("cannot be made durable")

// errForgotten marks what was made durable and cannot be read.
var errForgotten = errors.New("what this participant keeps of the run cannot be read")

// ledgerFailed says whether an error is the ledger's own, or the memory's.
func ledgerFailed(err error) bool {
	for _, e := range []error{ledger.ErrPoisoned, ledger.ErrCorrupt, ledger.ErrRollback, ledger.ErrStranger, errPersist, errForgotten} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
