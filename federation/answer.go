package federation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
)

// answer makes one round: the stored release again if there is one, a new one if the
// ledger pays for it, or none.
func (p *Participant) answer(ctx context.Context, s *session, w *wire.Work) error {
	round := w.GetSlot().GetRound()
	if round < 0 || round >= int64(s.run.Algorithm.Rounds) || w.GetSlot().GetRun() != s.plan.Run {
		return fmt.Errorf("the server asks for round %d of run %q; the plan has %d rounds of run %q",
			round+1, w.GetSlot().GetRun(), s.run.Algorithm.Rounds, s.plan.Run)
	}
	p.o.Log.Info("asked", "round", round+1, "cohort", w.GetCohort(), "seconds_left", w.GetMillisecondsLeft()/1000)
	if err := p.settleEarlier(ctx, s, int(round)); err != nil {
		return err
	}
	slot := ledger.Slot{Federation: s.plan.Federation, Run: s.plan.Run, Round: int(round)}
	entry, known := p.o.Ledger.Entry(slot)
	switch {
	case known && entry.Status == ledger.Stored:
		return p.send(ctx, s, slot)
	case known && (entry.Status == ledger.Committed || entry.Status == ledger.Abandoned):
		p.o.Log.Warn("the server asks again for a round that is settled here", "round", round+1, "status", entry.Status)
		p.decline(ctx, s, round, false, "failure")
		return nil
	}
	b, err := p.begin(ctx, s, w)
	if reasonOf(err) == ReasonLate {
		return nil // the round ended before it was begun here: nothing was spent
	}
	if err != nil {
		if errors.Is(err, fl.ErrRefused) {
			p.decline(ctx, s, round, true, "policy")
		}
		return err
	}
	released, err := p.respond(s, slot, b)
	switch {
	case errors.Is(err, fl.ErrRefused):
		p.report.Declined++
		p.decline(ctx, s, round, true, "budget")
		return err
	case err != nil && ledgerFailed(err):
		return err // fail closed: nothing is sent until the ledger can be trusted again
	case err != nil || !released:
		p.report.Declined++
		p.o.Log.Error("no release in this round", "round", round+1, "error", err)
		p.decline(ctx, s, round, false, "failure")
		return nil
	}
	return p.send(ctx, s, slot)
}

// ledgerFailed says whether an error is the ledger's own.
func ledgerFailed(err error) bool {
	for _, e := range []error{ledger.ErrPoisoned, ledger.ErrCorrupt, ledger.ErrRollback, ledger.ErrStranger, errPersist} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// errPersist marks what could not be made durable.
var errPersist = errors.New("cannot be made durable")

// mostBroadcast bounds the bytes of a broadcast.
func (s *session) mostBroadcast() int64 {
	return broadcastHead + 8*int64(len(s.began.Hypotheses)+2*s.memorySent) + overhead
}

// begin fetches the round's broadcast and holds it against the plan.
func (p *Participant) begin(ctx context.Context, s *session, w *wire.Work) (fl.Broadcast, error) {
	raw, err := fetch(ctx, p.o.Client, p.o.Log, s.plan.Run, w.GetBroadcast(), s.mostBroadcast())
	if err != nil {
		return fl.Broadcast{}, err
	}
	b, err := DecodeBroadcast(raw)
	if err != nil {
		return b, err
	}
	return b, s.expects(b, int(w.GetSlot().GetRound()))
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

// respond makes the release and keeps it, noised, before anything is sent.
func (p *Participant) respond(s *session, slot ledger.Slot, b fl.Broadcast) (bool, error) {
	if err := p.affords(s, slot, b); err != nil {
		return false, err
	}
	me, err := s.recall(slot.Round)
	if err != nil {
		return false, err
	}
	pay := &purse{
		ledger: p.o.Ledger, policy: p.o.Policy, slot: slot, plan: ledger.Hash(s.sum), enforcement: s.half.Enforcement,
		log: p.o.Log,
	}
	me.Purse = pay
	me.Keep = func(me *fl.Participant) error { // what the round draws for all later ones, as if it had held before it
		if err := s.memory.Save(s.plan.Run, slot.Round-1, me); err != nil {
			return fmt.Errorf("%w: %w", errPersist, err)
		}
		return nil
	}
	released, err := s.half.respond(&s.worker, b, me, s.out)
	switch {
	case pay.refused != nil:
		return false, fmt.Errorf("%w: %w", fl.ErrRefused, pay.refused)
	case err != nil:
		return false, err
	case !released:
		return false, fmt.Errorf("%w: the run's own ceiling is reached", fl.ErrRefused)
	case !pay.paid:
		return false, errors.New("the method made a release that it did not pay for; it is not sent")
	}
	if i := firstNotFinite(s.out); i >= 0 {
		return false, fmt.Errorf("value %d of the release is %v", i, s.out[i])
	}
	if err := s.memory.Save(s.plan.Run, slot.Round, me); err != nil {
		return false, fmt.Errorf("%w: %w", errPersist, err)
	}
	if err := p.o.Ledger.Store(slot, appendVector(make([]byte, 0, 8*len(s.out)), s.out)); err != nil {
		return false, fmt.Errorf("%w: %w", errPersist, err)
	}
	return true, nil
}

// recall is the participant as it was before a round.
func (s *session) recall(round int) (*fl.Participant, error) {
	me := s.first
	me.Personal = slices.Clone(me.Personal)
	if err := s.memory.Recall(s.plan.Run, round, &me); err != nil {
		return nil, fmt.Errorf("%w: %w", errPersist, err)
	}
	return &me, nil
}

func (h *Half) respond(w *fl.Worker, b fl.Broadcast, me *fl.Participant, out []float64) (bool, error) {
	var released bool
	var err error
	if h.Respond != nil {
		released, err = h.Respond(b, me, out)
	} else {
		released, err = h.Algorithm.Respond(w, b, me, out)
	}
	if h.Failure != nil {
		if failure := h.Failure(); failure != nil {
			return false, errors.Join(failure, err)
		}
	}
	return released, err
}

// decline tells the server that nothing will come. If it cannot be told, it finds
// out at the deadline.
func (p *Participant) decline(ctx context.Context, s *session, round int64, whole bool, code string) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := p.o.Client.Decline(ctx, &wire.DeclineRequest{
		Slot: &wire.Slot{Run: s.plan.Run, PlanSha256: s.sum[:], Round: round}, WholeRun: whole, Code: code,
	})
	if err != nil {
		p.o.Log.Warn("the server could not be told that this participant declines", "error", err)
	}
}
