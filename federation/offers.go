package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/ledger"
)

// offer is a release that was announced and may be uploaded.
type offer struct {
	update store.Update
	draft  ledger.Receipt
}

// SlotName names a release as its sender does.
type SlotName struct {
	Run   string
	Plan  []byte
	Round int64
}

// Offered is what a participant announces.
type Offered struct {
	Slot      SlotName
	Size      int64
	SHA256    []byte
	Statement []byte // the receipt to sign
}

// Standing is how far an offered release has come.
type Standing struct {
	Offset  int64
	Receipt []byte // not nil: it was accepted
}

// Offer checks everything about a release that can be checked before its bytes.
func (c *Coordinator) Offer(ctx context.Context, name string, o Offered) (Standing, error) {
	i, err := c.place(name)
	if err != nil {
		return Standing{}, err
	}
	if err := c.checkPlan(o.Slot.Run, o.Slot.Plan); err != nil {
		return Standing{}, err
	}
	if want := 8 * int64(c.algorithm.ReleaseLength()); o.Size != want || len(o.SHA256) != 32 {
		return Standing{}, refuse(ReasonMalformed, "a release of %d bytes with a hash of %d; this run's have %d and 32", o.Size, len(o.SHA256), want)
	}
	fresh := offer{update: store.Update{
		Run: c.plan.Run, Round: int(o.Slot.Round), Participant: i, SHA256: [32]byte(o.SHA256), Size: o.Size, At: time.Now(),
	}}
	if fresh.draft, err = c.checkStatement(name, o); err != nil {
		return Standing{}, err
	}
	c.gate.RLock()
	defer c.gate.RUnlock()
	if err := c.isOpen(o.Slot.Round); err != nil {
		// The round may be over because this very release was accepted: then the
		// acknowledgement was lost, and the receipt is repeated.
		return c.acknowledged(ctx, name, fresh.update, err)
	}
	up, err := c.direct.Upload(ctx, fresh.update)
	if err != nil {
		return Standing{}, fromStore(err)
	}
	defer up.Close()
	if up.Offset() == o.Size && !c.round.waitsFor(i) {
		return c.acknowledged(ctx, name, fresh.update, refuse(ReasonAnswered, "round %d was answered", o.Slot.Round+1))
	}
	c.round.mu.Lock()
	c.round.offers[i] = fresh
	c.round.mu.Unlock()
	return Standing{Offset: up.Offset()}, nil
}

// isOpen refuses what belongs to another round than the open one.
func (c *Coordinator) isOpen(round int64) error {
	switch r := c.round; {
	case r != nil && int64(r.number) == round:
		return nil
	case r != nil && round > int64(r.number), round < 0, round >= int64(c.run.Algorithm.Rounds):
		return refuse(ReasonMalformed, "round %d was not asked for", round+1)
	}
	return refuse(ReasonLate, "round %d is over", round+1)
}

// acknowledged repeats the receipt of an accepted release, or gives the refusal.
func (c *Coordinator) acknowledged(ctx context.Context, name string, u store.Update, otherwise error) (Standing, error) {
	answers, err := c.direct.Answers(ctx, u.Run, u.Round)
	if err != nil {
		return Standing{}, otherwise
	}
	for _, a := range answers {
		if a.Participant != u.Participant || a.Kind != store.Released {
			continue
		}
		if a.SHA256 != u.SHA256 {
			up, err := c.direct.Upload(ctx, u) // refuses it as well, and records it
			if err == nil {
				up.Close()
				err = store.ErrEquivocation
			}
			return Standing{}, fromStore(err)
		}
		r, err := c.direct.Receipt(ctx, u.Run, u.Round, name)
		if err != nil {
			return Standing{}, err
		}
		return Standing{Offset: u.Size, Receipt: r.Signed}, nil
	}
	return Standing{}, otherwise
}

// checkStatement reads the receipt that the participant wants signed, and holds it
// against what the server knows.
func (c *Coordinator) checkStatement(name string, o Offered) (ledger.Receipt, error) {
	r, err := ledger.ParseReceipt(o.Statement)
	if err != nil {
		return r, refuse(ReasonMalformed, "the statement: %w", err)
	}
	slot := ledger.Slot{Federation: c.plan.Federation, Run: c.plan.Run, Round: int(o.Slot.Round)}
	for _, check := range []struct {
		ok   bool
		what string
	}{
		{r.Participant == name, "another participant"},
		{r.Slot == slot, "another slot"},
		{r.Plan == ledger.Hash(c.sum), "another plan"},
		{r.Content == ledger.Hash(o.SHA256) && r.Size == o.Size, "other bytes"},
	} {
		if !check.ok {
			return r, refuse(ReasonMalformed, "the statement is about %s", check.what)
		}
	}
	return r, nil
}

// Receive opens the upload of an offered release.
func (c *Coordinator) Receive(ctx context.Context, name string, s SlotName) (*Receiving, error) {
	i, err := c.place(name)
	if err != nil {
		return nil, err
	}
	if err := c.checkPlan(s.Run, s.Plan); err != nil {
		return nil, err
	}
	c.gate.RLock()
	defer c.gate.RUnlock()
	if err := c.isOpen(s.Round); err != nil {
		return nil, err
	}
	c.round.mu.Lock()
	o, ok := c.round.offers[i]
	c.round.mu.Unlock()
	if !ok {
		return nil, refuse(ReasonNotOffered, "the release of round %d was not offered", s.Round+1)
	}
	up, err := c.direct.Upload(ctx, o.update)
	if err != nil {
		return nil, fromStore(err)
	}
	return &Receiving{c: c, round: c.round, index: i, name: name, offer: o, upload: up}, nil
}

// Receiving is one release on its way in. It belongs to one goroutine.
type Receiving struct {
	c      *Coordinator
	round  *openRound
	index  int
	name   string
	offer  offer
	upload store.Upload
}

// time is how long the rest may take to come in: the time of a part for every part
// that is left, and for the end.
func (r *Receiving) time() time.Duration {
	left := r.offer.update.Size - r.upload.Offset()
	return partTime * time.Duration(1+(left+PartBytes-1)/PartBytes)
}

// Write takes the part at an offset.
func (r *Receiving) Write(offset int64, part []byte) error {
	at := r.upload.Offset()
	switch {
	case offset != at:
		return refuse(ReasonMalformed, "a part at offset %d where %d was due", offset, at)
	case len(part)%8 != 0 || at+int64(len(part)) > r.offer.update.Size:
		return refuse(ReasonMalformed, "a part of %d bytes at offset %d of %d", len(part), at, r.offer.update.Size)
	}
	if err := checkBounds(part, at, r.c.bounds); err != nil {
		return err
	}
	r.c.metrics.received(len(part))
	_, err := r.upload.Write(part)
	return fromStore(err)
}

// Accept signs for a release that is complete and makes it part of its round.
func (r *Receiving) Accept(ctx context.Context) (receipt []byte, err error) {
	c := r.c
	c.gate.RLock()
	defer c.gate.RUnlock()
	if c.round != r.round {
		return nil, refuse(ReasonLate, "round %d ended while the release was on its way", r.round.number+1)
	}
	signed, err := ledger.Sign(r.offer.draft, c.signer)
	if err != nil {
		return nil, refuse(ReasonMalformed, "the statement cannot be signed: %w", err)
	}
	text, err := json.Marshal(signed)
	if err != nil {
		return nil, fmt.Errorf("write a receipt: %w", err)
	}
	repeated, err := r.upload.Commit(ctx, &store.Receipt{
		Run: c.plan.Run, Round: r.round.number, Participant: r.name,
		Counter: uint64(signed.Receipt.Counter), Head: signed.Receipt.Head, Signed: text,
	})
	if err != nil {
		return nil, fromStore(err)
	}
	if repeated {
		r.round.settle(r.index, store.Released) // the word that it was recorded may have been lost
		c.progress.ring()
		standing, err := c.acknowledged(ctx, r.name, r.offer.update, refuse(ReasonAnswered, "round %d was answered", r.round.number+1))
		return standing.Receipt, err
	}
	r.round.settle(r.index, store.Released)
	c.metrics.answered("released")
	c.progress.ring()
	return text, nil
}

// Close lets go of the upload; it can be continued later.
func (r *Receiving) Close() error { return r.upload.Close() }

// Decline records that a participant makes no release in a round, or in all that
// follow.
func (c *Coordinator) Decline(ctx context.Context, name string, s SlotName, whole bool, code string) error {
	i, err := c.place(name)
	if err != nil {
		return err
	}
	if err := c.checkPlan(s.Run, s.Plan); err != nil {
		return err
	}
	switch code {
	case "budget", "policy", "failure":
	default:
		return refuse(ReasonMalformed, "a code that is none of budget, policy, failure")
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
	r.settle(i, store.Declined)
	c.metrics.answered("declined")
	c.progress.ring()
	return nil
}
