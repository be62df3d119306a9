package server

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
)

// Offer takes the announcement of a release, and says how much of it is here already.
func (h *Handlers) Offer(ctx context.Context, q *wire.OfferRequest) (_ *wire.OfferReply, err error) {
	name, err := caller(ctx)
	if err != nil {
		return nil, h.refused(ctx, err)
	}
	ctx, end := h.c.inRound(ctx, wire.FederationOfferProcedure, q.GetSlot().GetRound())
	defer func() { end(err) }()
	s, err := h.c.offer(ctx, name, offered{
		Slot: slotOf(q.GetSlot()), Size: q.GetContent().GetSize(), SHA256: q.GetContent().GetSha256(), Statement: q.GetStatement(), Release: q.GetRelease(),
	})
	if err != nil {
		return nil, h.refused(ctx, err)
	}
	return &wire.OfferReply{Offset: s.Offset, Accepted: s.Receipt != nil, Receipt: s.Receipt}, nil
}

func slotOf(s *wire.Slot) slotKey {
	return slotKey{Run: s.GetRun(), Plan: s.GetPlanSha256(), Round: s.GetRound()}
}

// offer is a release that was announced and may be uploaded.
type offer struct {
	update store.Update
	draft  ledger.Draft
}

// slotKey names a release as its sender does.
type slotKey struct {
	Run   string
	Plan  []byte
	Round int64
}

// offered is what a participant announces.
type offered struct {
	Slot      slotKey
	Size      int64
	SHA256    []byte
	Statement []byte // the receipt to sign
	Release   []byte // if it came along
}

// standing is how far an offered release has come.
type standing struct {
	Offset  int64
	Receipt []byte // not nil: it was accepted
}

// offer checks everything about a release that can be checked before its bytes.
func (c *Coordinator) offer(ctx context.Context, name string, o offered) (standing, error) {
	i, err := c.place(name)
	if err != nil {
		return standing{}, err
	}
	if err := c.checkPlan(o.Slot.Run, o.Slot.Plan); err != nil {
		return standing{}, err
	}
	values, _ := c.expected(int(o.Slot.Round))
	if want := 8 * int64(values); o.Size != want || len(o.SHA256) != 32 {
		return standing{}, transfer.Refuse(transfer.ReasonMalformed, "a release of %d bytes with a hash of %d; this run's have %d and 32", o.Size, len(o.SHA256), want)
	}
	fresh := offer{update: store.Update{
		Run: c.plan.Run, Round: int(o.Slot.Round), Participant: i, SHA256: [32]byte(o.SHA256), Size: o.Size, At: time.Now(),
	}}
	if fresh.draft, err = c.checkStatement(name, o); err != nil {
		return standing{}, err
	}
	c.gate.RLock()
	defer c.gate.RUnlock()
	if err := c.isOpen(o.Slot.Round); err != nil {
		// The round may be over because this very release was accepted: then the
		// acknowledgement was lost, and the receipt is repeated.
		return c.acknowledged(ctx, name, fresh.update, err)
	}
	if c.isSmall(o.Size) && c.round.waitsFor(i) {
		return c.offerSmall(ctx, name, fresh, o.Release)
	}
	up, err := c.direct.Upload(ctx, fresh.update)
	if err != nil {
		return standing{}, fromStore(err)
	}
	defer up.Close()
	if up.Offset() == o.Size && !c.round.waitsFor(i) {
		return c.acknowledged(ctx, name, fresh.update, transfer.Refuse(transfer.ReasonAnswered, "round %d was answered", o.Slot.Round+1))
	}
	c.round.offered(fresh)
	return standing{Offset: up.Offset()}, nil
}

// isOpen refuses what belongs to another round than the open one.
func (c *Coordinator) isOpen(round int64) error {
	switch r := c.round; {
	case r != nil && int64(r.number) == round:
		return nil
	case round < 0, round >= int64(c.allRounds()):
		return transfer.Refuse(transfer.ReasonMalformed, "the run has no round %d", round+1)
	case round > int64(c.reached): // the server was restored from a backup, and the caller knows more
		return transfer.Refuse(transfer.ReasonEarly, "round %d was not opened yet; round %d was the last one", round+1, c.reached+1)
	}
	return transfer.Refuse(transfer.ReasonLate, "round %d is over", round+1)
}

// checkStatement reads the receipt that the participant wants signed, and holds it
// against what the server knows.
func (c *Coordinator) checkStatement(name string, o offered) (ledger.Draft, error) {
	d, err := ledger.ParseDraft(o.Statement)
	if err != nil {
		return d, transfer.Refuse(transfer.ReasonMalformed, "the statement: %w", err)
	}
	r := d.Receipt
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
			return d, transfer.Refuse(transfer.ReasonMalformed, "the statement is about %s", check.what)
		}
	}
	return d, nil
}

// acknowledged repeats the receipt of an accepted release, or gives the refusal.
func (c *Coordinator) acknowledged(ctx context.Context, name string, u store.Update, otherwise error) (standing, error) {
	a, err := c.direct.Answer(ctx, u.Run, u.Round, u.Participant)
	if err != nil || a.Kind != store.Released {
		return standing{}, otherwise
	}
	if a.SHA256 != u.SHA256 {
		up, err := c.direct.Upload(ctx, u) // refuses it as well, and records it
		if err == nil {
			up.Close()
			err = store.ErrEquivocation
		}
		return standing{}, fromStore(err)
	}
	r, err := c.direct.Receipt(ctx, u.Run, u.Round, name)
	if err != nil {
		return standing{}, err
	}
	return standing{Offset: u.Size, Receipt: r.Signed}, nil
}

// Upload takes the parts of a release that was offered, and returns the receipt.
func (h *Handlers) Upload(ctx context.Context, in *connect.ClientStream[wire.UploadPart]) (*wire.UploadReply, error) {
	name, err := caller(ctx)
	if err != nil {
		return nil, h.refused(ctx, err)
	}
	end, err := h.shares.upload(name)
	if err != nil {
		return nil, h.refused(ctx, err)
	}
	defer end()
	receipt, err := h.receive(ctx, name, in)
	if err != nil {
		return nil, h.refused(ctx, err)
	}
	return &wire.UploadReply{Receipt: receipt}, nil
}

// PartTime is how long a part of a release may take to come in. Who sends slower has
// to go on later, and lets others come first.
const PartTime = 30 * time.Second

// longestTransfer is more than every transfer's own limit.
const longestTransfer = 24 * time.Hour

// receive takes parts as they come; what is damaged or out of range ends the upload.
func (h *Handlers) receive(ctx context.Context, name string, in *connect.ClientStream[wire.UploadPart]) (receipt []byte, err error) {
	if err := h.begin(ctx, in); err != nil {
		return nil, err
	}
	give := sync.OnceFunc(h.uploads.give)
	defer give()
	ctx, end := h.c.inRound(ctx, wire.FederationUploadProcedure, in.Msg().GetSlot().GetRound())
	defer func() { end(err) }()
	r, err := h.c.receive(ctx, name, slotOf(in.Msg().GetSlot()))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	hurry(ctx, r.time())
	for more := true; more; more = in.Receive() {
		p := in.Msg().GetPart()
		if err := transfer.CheckPart(p); err != nil {
			return nil, err
		}
		err := r.Write(p.GetOffset(), p.GetData())
		recycle(p)
		if err != nil {
			return nil, err
		}
	}
	if err := in.Err(); err != nil {
		return nil, broken(err)
	}
	if r.upload == nil {
		give() // it is small, and here: others need not wait until it is recorded
	}
	// What has arrived is recorded, even if the caller is gone by now.
	return r.Accept(context.WithoutCancel(ctx))
}

// begin waits for the first part, and only then for a token: whoever sends nothing
// must not keep others waiting.
func (h *Handlers) begin(ctx context.Context, in *connect.ClientStream[wire.UploadPart]) error {
	if err := h.firsts.take(ctx); err != nil {
		return broken(err)
	}
	defer h.firsts.give()
	hurry(ctx, PartTime)
	if !in.Receive() {
		return broken(in.Err())
	}
	hurry(ctx, longestTransfer)
	if err := h.uploads.take(ctx); err != nil {
		return broken(err)
	}
	return nil
}

// broken is a stream that ended early.
func broken(err error) error {
	if err == nil {
		return transfer.Refuse(transfer.ReasonMalformed, "an upload without a part")
	}
	return transfer.Refuse(transfer.ReasonBusy, "the upload broke off: %w", err)
}

// receiving is one release on its way in. It belongs to one goroutine.
type receiving struct {
	c      *Coordinator
	round  *openRound
	index  int
	name   string
	offer  offer
	upload store.Upload // nil: it is small
	small  []byte       // what has come of a small one
}

// receive opens the upload of an offered release.
func (c *Coordinator) receive(ctx context.Context, name string, s slotKey) (*receiving, error) {
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
		return nil, transfer.Refuse(transfer.ReasonNotOffered, "the release of round %d was not offered", s.Round+1)
	}
	r := &receiving{c: c, round: c.round, index: i, name: name, offer: o}
	if c.isSmall(o.update.Size) {
		return r, nil
	}
	if r.upload, err = c.direct.Upload(ctx, o.update); err != nil {
		return nil, fromStore(err)
	}
	return r, nil
}

// offset is how much of it is here.
func (r *receiving) offset() int64 {
	if r.upload == nil {
		return int64(len(r.small))
	}
	return r.upload.Offset()
}

// time is how long the rest may take to come in: the time of a part for every part
// that is left, and for the end.
func (r *receiving) time() time.Duration {
	left := r.offer.update.Size - r.offset()
	return PartTime * time.Duration(1+(left+transfer.PartBytes-1)/transfer.PartBytes)
}

// Write takes the part at an offset.
func (r *receiving) Write(offset int64, part []byte) error {
	at := r.offset()
	switch {
	case offset != at:
		return transfer.Refuse(transfer.ReasonMalformed, "a part at offset %d where %d was due", offset, at)
	case len(part)%8 != 0 || at+int64(len(part)) > r.offer.update.Size:
		return transfer.Refuse(transfer.ReasonMalformed, "a part of %d bytes at offset %d of %d", len(part), at, r.offer.update.Size)
	}
	_, bounds := r.c.expected(r.round.number)
	if err := checkBounds(part, at, bounds); err != nil {
		return err
	}
	if r.upload == nil {
		r.small = append(r.small, part...)
		return nil
	}
	r.c.metrics.received(len(part))
	_, err := r.upload.Write(part)
	return fromStore(err)
}

// checkBounds refuses encoded values that a release may not have: no finite numbers,
// and numbers with which the server could not go on. The first of them stands at byte
// offset of its release. Bounds are in ascending order.
func checkBounds(raw []byte, offset int64, bounds []fl.Bound) error {
	first := int(offset / 8)
	for _, b := range bounds {
		least, most := math.Float64bits(b.Least), math.Float64bits(b.Most)
		for i := max(b.From, first); i < min(b.To, first+len(raw)/8); i++ {
			bits := binary.LittleEndian.Uint64(raw[8*(i-first):])
			// Without their sign, floats are in the order of their bits; what is not
			// finite comes last.
			if size := bits &^ (1 << 63); size > most || size < least && size != 0 {
				return transfer.Refuse(transfer.ReasonMalformed, "value %d is %v; this run's releases have magnitudes from %v to %v there, or 0",
					i, math.Float64frombits(bits), b.Least, b.Most)
			}
		}
	}
	return nil
}

// Accept signs for a release that is complete and makes it part of its round.
func (r *receiving) Accept(ctx context.Context) (receipt []byte, err error) {
	c := r.c
	c.gate.RLock()
	defer c.gate.RUnlock()
	if c.round != r.round {
		return nil, transfer.Refuse(transfer.ReasonLate, "round %d ended while the release was on its way", r.round.number+1)
	}
	if r.upload == nil {
		return c.takeSmall(ctx, r.round, r.name, r.offer, r.small)
	}
	signed, err := c.sign(r.offer)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	repeated, err := r.upload.Commit(ctx, signed.record(r.name))
	if err != nil {
		return nil, fromStore(err)
	}
	c.metrics.recorded(began)
	return c.accepted(ctx, r.round, r.name, r.offer, signed, repeated)
}

// signature is a receipt that is signed, and not yet given to anybody.
type signature struct {
	receipt ledger.Receipt
	text    []byte
}

// record is the receipt as the store keeps it.
func (s signature) record(name string) *store.Receipt {
	return &store.Receipt{
		Run: s.receipt.Slot.Run, Round: s.receipt.Slot.Round, Participant: name,
		Counter: uint64(s.receipt.Counter), Head: s.receipt.Head, Signed: s.text,
	}
}

// sign signs for an offered release.
func (c *Coordinator) sign(o offer) (signature, error) {
	key, err := c.signer()
	if err != nil {
		return signature{}, err
	}
	text, err := o.draft.Sign(key)
	if err != nil {
		return signature{}, transfer.Refuse(transfer.ReasonMalformed, "the statement cannot be signed: %w", err)
	}
	return signature{o.draft.Receipt, text}, nil
}

// accepted notes a release that is durable, and returns the receipt that is. The gate is
// held.
func (c *Coordinator) accepted(ctx context.Context, r *openRound, name string, o offer, s signature, repeated bool) ([]byte, error) {
	i := o.update.Participant
	if r.settle(i, store.Released, "") { // the word that it was recorded may have been lost before
		c.chronicle.released(i)
		c.chronicle.says(i, spendingOf(s.receipt))
	}
	defer c.progress.ring()
	if repeated {
		standing, err := c.acknowledged(ctx, name, o.update, transfer.Refuse(transfer.ReasonAnswered, "round %d was answered", r.number+1))
		return standing.Receipt, err
	}
	c.metrics.answered("released")
	return s.text, nil
}

// Close lets go of the upload; it can be continued later.
func (r *receiving) Close() error {
	if r.upload == nil {
		return nil
	}
	return r.upload.Close()
}

// fromStore says what the store's errors mean to the caller.
func fromStore(err error) error {
	for _, known := range []struct {
		is     error
		reason transfer.Reason
	}{
		{store.ErrRoundClosed, transfer.ReasonLate}, {store.ErrNotAssigned, transfer.ReasonNotAsked}, {store.ErrAnswered, transfer.ReasonAnswered},
		{store.ErrEquivocation, transfer.ReasonEquivocation}, {store.ErrMismatch, transfer.ReasonMalformed}, {store.ErrBusy, transfer.ReasonBusy},
		{store.ErrReceiptOrder, transfer.ReasonMalformed},
	} {
		if errors.Is(err, known.is) {
			return transfer.Refuse(known.reason, "%w", err)
		}
	}
	return err
}
