package federation

import (
	"context"
	"crypto/tls"
	"errors"
	"hash/crc32"
	"log/slog"
	"time"

	"connectrpc.com/connect"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/wire"
)

// PartBytes is the size of the pieces in which models and releases travel.
const PartBytes = 1 << 20

// partTime is how long a part of a release may take to come in. Who sends slower has
// to go on later, and lets others come first.
const partTime = 30 * time.Second

// longestTransfer is more than every transfer's own limit.
const longestTransfer = 24 * time.Hour

// longestWait bounds how long a server holds a request for work.
const longestWait = time.Minute

// castagnoli is CRC-32C.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// handlers are the calls of the service: check, call the coordinator, convert.
type handlers struct {
	c         *Coordinator
	authority *identity.Authority
	uploads   tokens // for releases of which something has come
	firsts    tokens // for those whose first part is awaited or in hand
	shares    *shares
}

// firstsPerUpload is how many first parts the server may hold for every release that
// it takes at once. They cost memory, and those who send none cost their time.
const firstsPerUpload = 8

func newHandlers(c *Coordinator, a *identity.Authority, uploads int) *handlers {
	return &handlers{
		c: c, authority: a, uploads: make(tokens, uploads), firsts: make(tokens, firstsPerUpload*uploads), shares: newShares(),
	}
}

// tokens are so many as the channel has room for; whoever waits longest is next.
type tokens chan struct{}

func (t tokens) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t tokens) give() { <-t }

// caller is the admitted participant. The guard has checked its certificate; a call
// that slips past it has no peer and is refused.
func caller(ctx context.Context) (string, error) {
	p, ok := identity.PeerFrom(ctx)
	if !ok {
		return "", refuse(ReasonForeign, "no participant's certificate")
	}
	return p.Name, nil
}

func (h *handlers) Enrol(_ context.Context, q *wire.EnrolRequest) (*wire.EnrolReply, error) {
	grant, err := h.authority.Redeem(q.GetToken(), q.GetSigningRequest())
	if err != nil {
		h.c.seldom.write(slog.LevelWarn, "", "enrolment refused", "error", err)
		return nil, enrolment(err)
	}
	h.c.log.Info("enrolled", "participant", grant.Peer.Name, "serial", grant.Peer.Serial)
	return &wire.EnrolReply{Certificates: grant.Chain}, nil
}

func (h *handlers) Renew(ctx context.Context, q *wire.RenewRequest) (*wire.RenewReply, error) {
	name, err := caller(ctx)
	if err != nil {
		return nil, h.refused(ctx, err)
	}
	if err := h.shares.renewal(name); err != nil {
		return nil, h.refused(ctx, err)
	}
	state, _ := ctx.Value(connectionKey{}).(*tls.ConnectionState)
	grant, err := h.authority.Renew(state, q.GetSigningRequest())
	if err != nil {
		return nil, enrolment(err)
	}
	h.c.log.Info("certificate renewed", "participant", grant.Peer.Name, "serial", grant.Peer.Serial)
	return &wire.RenewReply{Certificates: grant.Chain}, nil
}

// enrolment says why no certificate was given, if that is the caller's business.
func enrolment(err error) error {
	for _, known := range []error{
		identity.ErrInvite, identity.ErrRequest, identity.ErrName, identity.ErrRevoked, identity.ErrOutdated,
		identity.ErrNoCertificate, identity.ErrWrongCertificate,
	} {
		if errors.Is(err, known) {
			return connect.NewError(connect.CodePermissionDenied, err)
		}
	}
	return toWire(err)
}

func (h *handlers) Join(ctx context.Context, _ *wire.JoinRequest) (*wire.JoinReply, error) {
	name, err := caller(ctx)
	if err != nil {
		return nil, h.refused(ctx, err)
	}
	text, index, receipt, err := h.c.Join(ctx, name)
	if err != nil {
		return nil, h.refused(ctx, err)
	}
	return &wire.JoinReply{Plan: text, Index: int64(index), Receipt: receipt}, nil
}

func (h *handlers) Next(ctx context.Context, q *wire.NextRequest) (*wire.NextReply, error) {
	name, err := caller(ctx)
	if err != nil {
		return nil, h.refused(ctx, err)
	}
	wait := min(longestWait, max(0, time.Duration(q.GetWaitMilliseconds())*time.Millisecond))
	work, end, err := h.c.Next(ctx, name, q.GetRun(), q.GetPlanSha256(), wait)
	switch {
	case err != nil:
		return nil, h.refused(ctx, err)
	case work != nil:
		return &wire.NextReply{What: &wire.NextReply_Work{Work: &wire.Work{
			Slot:      &wire.Slot{Run: q.GetRun(), PlanSha256: q.GetPlanSha256(), Round: int64(work.Round)},
			Broadcast: named(work.Broadcast), MillisecondsLeft: work.Left.Milliseconds(), Cohort: int64(work.Cohort),
		}}}, nil
	case end != nil:
		return &wire.NextReply{What: &wire.NextReply_Finished{Finished: &wire.Finished{
			Rounds: int64(end.Rounds), Models: named(end.models), Stopped: end.Stopped, Broadcast: named(end.broadcast),
		}}}, nil
	}
	return &wire.NextReply{What: &wire.NextReply_Nothing{Nothing: &wire.Nothing{}}}, nil
}

func named(c content) *wire.Content {
	if c.bytes == nil {
		return nil // a run that ended without a model
	}
	return &wire.Content{Size: int64(len(c.bytes)), Sha256: c.sum[:]}
}

func (h *handlers) Broadcast(ctx context.Context, q *wire.BroadcastRequest, out *connect.ServerStream[wire.Part]) error {
	name, err := caller(ctx)
	if err != nil {
		return h.refused(ctx, err)
	}
	all, err := h.c.Content(name, q.GetRun(), q.GetSha256())
	if err != nil {
		return h.refused(ctx, err)
	}
	at := q.GetOffset()
	if at < 0 || at > int64(len(all)) {
		return h.refused(ctx, refuse(ReasonMalformed, "offset %d of %d bytes", at, len(all)))
	}
	for at < int64(len(all)) {
		piece := all[at:min(at+PartBytes, int64(len(all)))]
		if err := out.Send(newPart(at, piece)); err != nil {
			return err
		}
		at += int64(len(piece))
	}
	return nil
}

func newPart(offset int64, data []byte) *wire.Part {
	return &wire.Part{Offset: offset, Data: data, Crc32C: crc32.Checksum(data, castagnoli)}
}

// checkPart refuses a part that was damaged on its way.
func checkPart(p *wire.Part) error {
	if crc32.Checksum(p.GetData(), castagnoli) != p.GetCrc32C() {
		return refuse(ReasonMalformed, "the part at offset %d is not what was sent", p.GetOffset())
	}
	return nil
}

func (h *handlers) Offer(ctx context.Context, q *wire.OfferRequest) (*wire.OfferReply, error) {
	name, err := caller(ctx)
	if err != nil {
		return nil, h.refused(ctx, err)
	}
	s, err := h.c.Offer(ctx, name, Offered{
		Slot: slotName(q.GetSlot()), Size: q.GetContent().GetSize(), SHA256: q.GetContent().GetSha256(), Statement: q.GetStatement(),
	})
	if err != nil {
		return nil, h.refused(ctx, err)
	}
	return &wire.OfferReply{Offset: s.Offset, Accepted: s.Receipt != nil, Receipt: s.Receipt}, nil
}

func slotName(s *wire.Slot) SlotName {
	return SlotName{Run: s.GetRun(), Plan: s.GetPlanSha256(), Round: s.GetRound()}
}

func (h *handlers) Upload(ctx context.Context, in *connect.ClientStream[wire.UploadPart]) (*wire.UploadReply, error) {
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

func (h *handlers) receive(ctx context.Context, name string, in *connect.ClientStream[wire.UploadPart]) ([]byte, error) {
	if err := h.begin(ctx, in); err != nil {
		return nil, err
	}
	defer h.uploads.give()
	r, err := h.c.Receive(ctx, name, slotName(in.Msg().GetSlot()))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	hurry(ctx, r.time())
	for more := true; more; more = in.Receive() {
		p := in.Msg().GetPart()
		if err := checkPart(p); err != nil {
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
	// What has arrived is recorded, even if the caller is gone by now.
	return r.Accept(context.WithoutCancel(ctx))
}

// begin waits for the first part, and only then for a token: whoever sends nothing
// must not keep others waiting.
func (h *handlers) begin(ctx context.Context, in *connect.ClientStream[wire.UploadPart]) error {
	if err := h.firsts.take(ctx); err != nil {
		return broken(err)
	}
	defer h.firsts.give()
	hurry(ctx, partTime)
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
		return refuse(ReasonMalformed, "an upload without a part")
	}
	return refuse(ReasonBusy, "the upload broke off: %w", err)
}

func (h *handlers) Decline(ctx context.Context, q *wire.DeclineRequest) (*wire.DeclineReply, error) {
	name, err := caller(ctx)
	if err != nil {
		return nil, h.refused(ctx, err)
	}
	if err := h.c.Decline(ctx, name, slotName(q.GetSlot()), q.GetWholeRun(), q.GetCode()); err != nil {
		return nil, h.refused(ctx, err)
	}
	return &wire.DeclineReply{}, nil
}

// refused counts and logs what is not the network's own doing.
func (h *handlers) refused(ctx context.Context, err error) error {
	who, _ := identity.PeerFrom(ctx)
	reason := reasonOf(err)
	if reason == "" {
		reason = ReasonInternal
		h.c.seldom.write(slog.LevelError, who.Name, "a request failed", "participant", who.Name, "error", err)
	}
	if reason == ReasonEquivocation {
		h.c.seldom.write(slog.LevelError, who.Name, "a participant sent other bytes for a slot that is taken", "participant", who.Name, "error", err)
	}
	h.c.metrics.refuse(reason)
	return toWire(err)
}
