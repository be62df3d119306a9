package participant

import (
	"context"
	"errors"

	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/ledger"
)

// A server that was restored from its backup is behind its participants: it asks again for
// rounds that they have paid for and that it has signed for. It gets the bytes that it had,
// or nothing: no noise is drawn for a round twice, whatever the round begins with now.

// pastCode is the word for a round that lies behind this participant: it has no bytes of it
// to send, and makes none. That follows from what the server has seen before.
const pastCode = "past"

// latest is the last round that the ledger knows, the evaluation counting; -1: none.
func (p *Participant) latest(s *session) int {
	for r := s.allRounds() - 1; r >= 0; r-- {
		if _, known := p.o.Ledger.Entry(s.slot(r)); known {
			return r
		}
	}
	return -1
}

func (s *session) slot(round int) ledger.Slot {
	return ledger.Slot{Federation: s.plan.Federation, Run: s.plan.Run, Round: round}
}

// repeats says whether a round's bytes are here, to be sent without a further charge.
func (p *Participant) repeats(s *session, round int) bool {
	e, known := p.o.Ledger.Entry(s.slot(round))
	return known && (e.Status == ledger.Stored || e.Status == ledger.Committed && p.o.Ledger.Keeps(s.slot(round)))
}

// repeatsAny says so of any round of the run.
func (p *Participant) repeatsAny(s *session) bool {
	for r := range s.allRounds() {
		if p.repeats(s, r) {
			return true
		}
	}
	return false
}

// declinePast says no to a round that lies behind this participant.
func (p *Participant) declinePast(ctx context.Context, s *session, round int64) {
	p.report.Declined++
	p.decline(ctx, s, round, false, pastCode)
}

// sendAgain brings a committed release to a server that asks for it again: the same bytes
// with the same statement, for the same receipt. Nothing is recorded.
func (p *Participant) sendAgain(ctx context.Context, s *session, e ledger.Entry) error {
	round := int64(e.Slot.Round)
	if e.Plan != ledger.Hash(s.sum) {
		p.o.Log.Warn("the server asks again for a round that was released under another plan; nothing is sent", "round", round+1)
		p.declinePast(ctx, s, round)
		return nil
	}
	noised, err := p.o.Ledger.Load(e.Slot)
	if errors.Is(err, ledger.ErrGone) {
		p.o.Log.Warn("the server asks again for a round that it has signed for, and its bytes are no longer kept (keep_megabytes); nothing is sent", "round", round+1, "error", err)
		p.declinePast(ctx, s, round)
		return nil
	}
	if err != nil {
		return err
	}
	receipt, err := p.deliver(ctx, s, e.Slot, noised)
	switch transfer.ReasonOf(err) {
	case transfer.ReasonLate, transfer.ReasonNotAsked, transfer.ReasonAnswered, transfer.ReasonEarly:
		p.o.Log.Warn("the server asked again for a round that it has signed for, and does not take it", "round", round+1, "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	signed, err := ledger.ParseSignedReceipt(receipt)
	if err != nil {
		return err
	}
	if err := p.o.Ledger.Commit(e.Slot, signed); err != nil { // checks it, and records nothing
		return err
	}
	p.o.Log.Warn("the server had signed for this round and asked again, as one does that was restored from a backup: it got the same bytes, and nothing was charged", "round", round+1)
	return nil
}
