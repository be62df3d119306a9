package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	"connectrpc.com/connect"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
)

// Handlers are the calls of the service: check, call the coordinator, convert. A Server
// puts the network around them; a network that is simulated calls them itself.
type Handlers struct {
	c         *Coordinator
	authority *identity.Authority
	uploads   tokens // for releases of which something has come
	firsts    tokens // for those whose first part is awaited or in hand
	shares    *shares
	// renewals are few at once, so that those whose askers have gone are not made: after a
	// rotation everybody comes.
	renewals tokens
}

// renewalsAtOnce is how many certificates are renewed at once; the registry takes one.
const renewalsAtOnce = 2

// firstsPerUpload is how many first parts the server may hold for every release that
// it takes at once. They cost memory, and those who send none cost their time.
const firstsPerUpload = 8

// NewHandlers take so many releases in at once.
func NewHandlers(c *Coordinator, a *identity.Authority, uploads int) *Handlers {
	return &Handlers{
		c: c, authority: a, uploads: make(tokens, uploads), firsts: make(tokens, firstsPerUpload*uploads), shares: newShares(),
		renewals: make(tokens, renewalsAtOnce),
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
// that slips past it has no peer, or an operator, and is refused.
func caller(ctx context.Context) (string, error) {
	p, ok := identity.PeerFrom(ctx)
	if !ok || p.Role != identity.Participant {
		return "", transfer.Refuse(transfer.ReasonForeign, "no participant's certificate")
	}
	return p.Name, nil
}

// refused counts and logs what is not the network's own doing.
func (h *Handlers) refused(ctx context.Context, err error) error {
	who, _ := identity.PeerFrom(ctx)
	reason := transfer.ReasonOf(err)
	if reason == "" {
		reason = transfer.ReasonInternal
		h.c.seldom.write(slog.LevelError, who.Name, "a request failed", "participant", who.Name, "error", err)
	}
	if reason == transfer.ReasonEquivocation {
		h.c.seldom.write(slog.LevelError, who.Name, "a participant sent other bytes for a slot that is taken", "participant", who.Name, "error", err)
	}
	h.c.metrics.refuse(reason)
	return transfer.ToWire(err)
}

// Enrol gives the invited a certificate.
func (h *Handlers) Enrol(_ context.Context, q *wire.EnrolRequest) (*wire.EnrolReply, error) {
	grant, err := h.authority.Redeem(q.GetToken(), q.GetSigningRequest())
	if err != nil {
		h.c.seldom.write(slog.LevelWarn, "", "enrolment refused", "error", err)
		return nil, enrolment(err)
	}
	h.c.log.Info("enrolled", string(grant.Peer.Role), grant.Peer.Name, "serial", grant.Peer.Serial)
	return &wire.EnrolReply{Certificates: grant.Chain}, nil
}

// Renew gives a participant or an operator another certificate before its own ends.
func (h *Handlers) Renew(ctx context.Context, q *wire.RenewRequest) (*wire.RenewReply, error) {
	p, ok := identity.PeerFrom(ctx)
	if !ok {
		return nil, h.refused(ctx, transfer.Refuse(transfer.ReasonForeign, "no member's certificate"))
	}
	if err := h.shares.renewal(p.Name); err != nil {
		return nil, h.refused(ctx, err)
	}
	if err := h.renewals.take(ctx); err != nil {
		return nil, h.refused(ctx, transfer.Refuse(transfer.ReasonBusy, "too many renew their certificates now: %w", err))
	}
	defer h.renewals.give()
	state, _ := ctx.Value(connectionKey{}).(*tls.ConnectionState)
	grant, err := h.authority.Renew(state, q.GetSigningRequest())
	if err != nil {
		return nil, enrolment(err)
	}
	h.c.log.Info("certificate renewed", string(grant.Peer.Role), grant.Peer.Name, "serial", grant.Peer.Serial)
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
	return transfer.ToWire(err)
}

// Join shows a participant the plan.
func (h *Handlers) Join(ctx context.Context, _ *wire.JoinRequest) (*wire.JoinReply, error) {
	name, err := caller(ctx)
	if err != nil {
		return nil, h.refused(ctx, err)
	}
	text, index, receipt, err := h.c.join(ctx, name)
	if err != nil {
		return nil, h.refused(ctx, err)
	}
	return &wire.JoinReply{Plan: text, Index: int64(index), Receipt: receipt}, nil
}

// join is what a participant is shown when it arrives.
func (c *Coordinator) join(ctx context.Context, name string) (text []byte, index int, receipt []byte, err error) {
	index, err = c.place(name)
	if err != nil {
		return nil, 0, nil, err
	}
	last, err := c.direct.LatestReceipt(ctx, name)
	switch {
	case err == nil:
		receipt = last.Signed
	case !errors.Is(err, store.ErrNotFound):
		return nil, 0, nil, err
	}
	if err := c.direct.Seen(ctx, c.plan.Run, name, time.Now()); err != nil {
		return nil, 0, nil, err
	}
	c.presence.joined(index)
	c.progress.ring()
	return c.text, index, receipt, nil
}

// place is the participant's index.
func (c *Coordinator) place(name string) (int, error) {
	i, ok := c.index[name]
	if !ok {
		return 0, transfer.Refuse(transfer.ReasonForeign, "%q has no part in this run", name)
	}
	c.presence.heard(i)
	return i, nil
}

// checkPlan refuses requests that belong to another run or plan.
func (c *Coordinator) checkPlan(run string, sum []byte) error {
	if run != c.plan.Run || string(sum) != string(c.sum[:]) {
		return transfer.Refuse(transfer.ReasonStale, "the run here is %q with plan %.8x; join again", c.plan.Run, c.sum)
	}
	return nil
}

// longestWait bounds how long a server holds a request for work.
const longestWait = time.Minute

// Next gives a participant work, once there is some.
func (h *Handlers) Next(ctx context.Context, q *wire.NextRequest) (*wire.NextReply, error) {
	name, err := caller(ctx)
	if err != nil {
		return nil, h.refused(ctx, err)
	}
	wait := min(longestWait, max(0, time.Duration(q.GetWaitMilliseconds())*time.Millisecond))
	began := time.Now()
	work, end, err := h.c.next(ctx, name, q.GetRun(), q.GetPlanSha256(), wait)
	switch {
	case err != nil:
		return nil, h.refused(ctx, err)
	case work != nil:
		h.c.handedOut(ctx, work.Round, began)
		return &wire.NextReply{What: &wire.NextReply_Work{Work: &wire.Work{
			Slot:      &wire.Slot{Run: q.GetRun(), PlanSha256: q.GetPlanSha256(), Round: int64(work.Round)},
			Broadcast: enclosed(work.Broadcast), MillisecondsLeft: work.Left.Milliseconds(), Cohort: int64(work.Cohort),
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

// enclosed names bytes, and sends them along if they are few: that saves a call.
func enclosed(c content) *wire.Content {
	out := named(c)
	if out != nil && len(c.bytes) <= transfer.EnclosedBytes {
		out.Data = c.bytes
	}
	return out
}

// work is one round that waits for a participant.
type work struct {
	Round     int
	Broadcast content
	Left      time.Duration
	Cohort    int
}

// next is a participant's work, or the end of the run, or nothing within the time.
// Exactly one of the results is not nil, or none.
func (c *Coordinator) next(ctx context.Context, name, run string, sum []byte, wait time.Duration) (*work, *Finished, error) {
	i, err := c.place(name)
	if err != nil {
		return nil, nil, err
	}
	if err := c.checkPlan(run, sum); err != nil {
		return nil, nil, err
	}
	c.presence.waits(i, +1)
	c.progress.ring() // a round may be waiting for enough to be there
	defer c.presence.waits(i, -1)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		rung := c.news.next() // before looking, so that no change is missed
		if c.draining.Load() {
			return nil, nil, transfer.Refuse(transfer.ReasonDraining, "the server is about to stop; try again")
		}
		if w, f := c.look(i); w != nil || f != nil {
			return w, f, nil
		}
		select {
		case <-rung:
		case <-timer.C:
			return nil, nil, nil
		case <-ctx.Done():
			return nil, nil, nil
		}
	}
}

func (c *Coordinator) look(i int) (*work, *Finished) {
	c.gate.RLock()
	defer c.gate.RUnlock()
	if c.finished != nil {
		if c.finished.models.bytes == nil { // being told is all that there is to have
			c.presence.served(i)
			c.progress.ring()
		}
		return nil, c.finished
	}
	r := c.round
	if r == nil || !r.waitsFor(i) {
		return nil, nil
	}
	return &work{Round: r.number, Broadcast: r.broadcast, Left: time.Until(r.deadline), Cohort: len(r.clients)}, nil
}

// Broadcast sends what a round begins with, or the models, in parts.
func (h *Handlers) Broadcast(ctx context.Context, q *wire.BroadcastRequest, out *connect.ServerStream[wire.Part]) (err error) {
	name, err := caller(ctx)
	if err != nil {
		return h.refused(ctx, err)
	}
	all, err := h.c.content(name, q.GetRun(), q.GetSha256())
	if err != nil {
		return h.refused(ctx, err)
	}
	if round, ok := h.c.roundOf(q.GetSha256()); ok {
		_, end := h.c.inRound(ctx, wire.FederationBroadcastProcedure, round)
		defer func() { end(err) }()
	}
	at := q.GetOffset()
	if at < 0 || at > int64(len(all)) {
		return h.refused(ctx, transfer.Refuse(transfer.ReasonMalformed, "offset %d of %d bytes", at, len(all)))
	}
	for at < int64(len(all)) {
		piece := all[at:min(at+transfer.PartBytes, int64(len(all)))]
		if err := out.Send(transfer.NewPart(at, piece)); err != nil {
			return err
		}
		at += int64(len(piece))
	}
	return nil
}

// content is a broadcast that is still of use, by its hash.
func (c *Coordinator) content(name, run string, sum []byte) ([]byte, error) {
	i, err := c.place(name)
	if err != nil {
		return nil, err
	}
	if run != c.plan.Run {
		return nil, transfer.Refuse(transfer.ReasonStale, "the run here is %q; join again", c.plan.Run)
	}
	c.gate.RLock()
	defer c.gate.RUnlock()
	if c.round != nil && string(c.round.broadcast.sum[:]) == string(sum) {
		return c.round.broadcast.bytes, nil
	}
	if c.finished != nil && string(c.finished.models.sum[:]) == string(sum) {
		c.presence.served(i)
		c.progress.ring()
		return c.finished.models.bytes, nil
	}
	if c.finished != nil && string(c.finished.broadcast.sum[:]) == string(sum) {
		return c.finished.broadcast.bytes, nil
	}
	return nil, transfer.Refuse(transfer.ReasonLate, "what the round began with is no longer kept: the round is over")
}
