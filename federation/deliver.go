package federation

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
)

// send brings a stored release to the server: always the same bytes.
func (p *Participant) send(ctx context.Context, s *session, slot ledger.Slot) error {
	noised, err := p.o.Ledger.Load(slot)
	if err != nil {
		return err
	}
	receipt, err := p.deliver(ctx, s, slot, noised)
	switch reasonOf(err) {
	case ReasonLate, ReasonNotAsked, ReasonAnswered:
		p.report.Late++
		p.o.Log.Warn("the release came too late; what it cost stays spent", "round", slot.Round+1, "error", err)
		return p.o.Ledger.Abandon(slot, err.Error())
	}
	if err != nil {
		return err
	}
	signed, err := ledger.ParseSignedReceipt(receipt)
	if err != nil {
		return err
	}
	if err := p.o.Ledger.Commit(slot, signed); err != nil {
		return err
	}
	p.report.Released++
	p.o.Log.Info("release accepted", "round", slot.Round+1)
	return nil
}

// deliver offers and uploads until the server has signed or refused.
func (p *Participant) deliver(ctx context.Context, s *session, slot ledger.Slot, noised []byte) ([]byte, error) {
	draft, err := p.o.Ledger.Draft(slot)
	if err != nil {
		return nil, err
	}
	statement, err := json.Marshal(draft)
	if err != nil {
		return nil, fmt.Errorf("write the statement: %w", err)
	}
	sum := sha256.Sum256(noised)
	name := &wire.Slot{Run: s.plan.Run, PlanSha256: s.sum[:], Round: int64(slot.Round)}
	offer := &wire.OfferRequest{
		Slot: name, Content: &wire.Content{Size: int64(len(noised)), Sha256: sum[:]}, Statement: statement,
	}
	return retry(ctx, p.o.Log, "send the release", func(ctx context.Context) ([]byte, error) {
		short, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		standing, err := p.o.Client.Offer(short, offer)
		if err != nil {
			return nil, err
		}
		if standing.GetAccepted() {
			return standing.GetReceipt(), nil
		}
		if at := standing.GetOffset(); at < 0 || at > int64(len(noised)) {
			return nil, fmt.Errorf("the server says that it has %d of %d bytes", at, len(noised))
		}
		receipt, err := upload(ctx, p.o.Client, name, noised, standing.GetOffset())
		if reasonOf(fromWire(err)) == ReasonNotOffered {
			return nil, refuse(ReasonBusy, "the server was started anew: %w", err)
		}
		return receipt, err
	})
}

// settleEarlier finds out what became of a release whose acknowledgement was lost.
func (p *Participant) settleEarlier(ctx context.Context, s *session, round int) error {
	for r := s.settled; r < round; r++ {
		slot := ledger.Slot{Federation: s.plan.Federation, Run: s.plan.Run, Round: r}
		if e, ok := p.o.Ledger.Entry(slot); ok && e.Status == ledger.Stored {
			if err := p.send(ctx, s, slot); err != nil {
				return err
			}
		}
	}
	s.settled = round
	return nil
}

// takeHome fetches the models of a finished run.
func (p *Participant) takeHome(ctx context.Context, s *session, f *wire.Finished) error {
	if err := p.settleEarlier(ctx, s, s.run.Algorithm.Rounds); err != nil {
		return err
	}
	if f.GetModels() == nil {
		return fmt.Errorf("%w: the server says that no round had enough releases (the run ended for lack of %q), so there is no model; what was released stays spent", ErrNothing, f.GetStopped())
	}
	var err error
	if p.report.Personal, err = p.personal(ctx, s, f); err != nil {
		return err
	}
	// The models last: then the server knows that this participant needs it no more.
	most := 8*int64(len(s.began.Hypotheses)) + overhead + 256*int64(s.run.Algorithm.Hypotheses)
	models, err := fetch(ctx, p.o.Client, p.o.Log, s.plan.Run, f.GetModels(), most)
	if err != nil {
		return err
	}
	p.report.Models = models
	p.report.Rounds, p.report.Stopped = int(f.GetRounds()), f.GetStopped()
	p.report.ModelSHA256, err = model.TensorsSHA256(models)
	return err
}

// personal is the model that the method leaves this participant to use.
func (p *Participant) personal(ctx context.Context, s *session, f *wire.Finished) ([]float64, error) {
	raw, err := fetch(ctx, p.o.Client, p.o.Log, s.plan.Run, f.GetBroadcast(), s.mostBroadcast())
	if err != nil {
		return nil, err
	}
	b, err := DecodeBroadcast(raw)
	if err != nil {
		return nil, err
	}
	if len(b.Hypotheses) != len(s.began.Hypotheses) {
		return nil, fmt.Errorf("the run ends with %d values; the plan has %d", len(b.Hypotheses), len(s.began.Hypotheses))
	}
	me, err := s.recall(math.MaxInt)
	if err != nil {
		return nil, err
	}
	own := make([]float64, s.parameters)
	s.half.Algorithm.Adopt(own, b, me, s.half.Learner)
	p.report.Centre, p.report.Scale, _ = me.Moments()
	return own, nil
}
