package participant

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/ledger"
)

// renewer keeps a participant's certificate from ending, and learns of new authorities.
type renewer struct {
	member *identity.Member
	server string
	client wire.FederationClient
	way    *passage
	log    *slog.Logger

	mu    sync.Mutex // one renewal at a time
	next  time.Time  // no attempt before
	fresh bool       // a connection may still show the certificate of before
}

// newRenewer connects a member to its server, or to another address of it.
func newRenewer(m *identity.Member, server string, log *slog.Logger) *renewer {
	if server == "" {
		server = m.Server()
	}
	client, way := newClient(server, m.ClientTLS, nil)
	return &renewer{member: m, server: server, client: client, way: way, log: log}
}

// Connect is a member's way to its server, for somebody who does not take part: renew is
// to be called now and then, and keeps the certificate as a participant's is kept.
func Connect(m *identity.Member, server string, log *slog.Logger) (way http.RoundTripper, under *http.Transport, renew func(context.Context) error, err error) {
	if _, err := m.ClientTLS(); err != nil {
		return nil, nil, nil, err
	}
	r := newRenewer(m, server, log)
	return r.way, r.way.next, r.renew, nil
}

// renewPause is how often a renewal that fails is tried, about; short-lived certificates
// are in more of a hurry.
const renewPause = time.Minute

func (r *renewer) pause() time.Duration {
	return min(renewPause, max(time.Second, r.member.Lifetime()/12))
}

// renew renews the certificate if two thirds of its life are over, or if the federation
// has a new authority. A server that cannot be reached is no reason to stop: the old one
// still holds, and it is tried again.
func (r *renewer) renew(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fresh {
		r.way.next.CloseIdleConnections() // the next request shows the new one
		r.fresh = false
	}
	if err := r.learn(ctx); err != nil {
		return err
	}
	now := time.Now()
	if now.Before(r.member.RenewAt()) && !r.member.Outdated() || now.Before(r.next) {
		return nil
	}
	// Jitter, so that a crowd that was all refused does not come back all at once.
	r.next = now.Add(r.pause()/2 + rand.N(r.pause()))
	request, accept, err := r.member.Renewal()
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	reply, err := r.client.Renew(short, &wire.RenewRequest{SigningRequest: request})
	if err != nil {
		r.complain(now, err)
		return nil
	}
	if err := r.ask(ctx); err != nil { // the keys may have been rotated while it was answered
		return err
	}
	if err := accept(reply.GetCertificates()); err != nil {
		return err
	}
	r.way.next.CloseIdleConnections()
	r.fresh = true
	r.log.Info("the certificate was renewed, with a new key", "expires", r.member.Expires())
	return nil
}

// complain says that a renewal has failed: as a warning once less than a sixth of the
// certificate's life is left.
func (r *renewer) complain(now time.Time, err error) {
	left := r.member.Expires().Sub(now)
	if left > r.member.Lifetime()/6 {
		r.log.Info("the certificate could not be renewed yet; it is tried again", "expires", r.member.Expires(), "error", err)
		return
	}
	r.log.Warn("the certificate ends soon and could not be renewed; it is tried again, and without success those who run the federation have to send a new invitation",
		"expires", r.member.Expires(), "left", left.Round(time.Second).String(), "error", err)
}

// learn asks for the federation's successions if the server tells of more than are known.
func (r *renewer) learn(ctx context.Context) error {
	if announced := r.way.announced.Load(); announced > int64(r.member.Known()) {
		if err := r.ask(ctx); err != nil {
			return err
		}
		if announced > int64(r.member.Known()) {
			return fmt.Errorf("%w: the server tells of %d successions and shows %d", identity.ErrSuccession, announced, r.member.Known())
		}
	}
	return nil
}

// ask has the server show the federation's successions.
func (r *renewer) ask(ctx context.Context) error {
	all, err := Retry(ctx, r.log, "ask how the federation came to its new authority", func(ctx context.Context) ([]identity.Succession, error) {
		return r.way.successions(ctx, r.server)
	})
	if err != nil {
		return err
	}
	before := r.member.Known()
	if err := r.member.Learn(all); err != nil {
		return fmt.Errorf("the server says that the federation's keys were rotated. Nothing more is sent to it: ask those who run the federation, by another way: %w", err)
	}
	if r.member.Known() == before {
		return nil
	}
	r.next = time.Time{} // renew at once
	r.log.Info("the federation has a new authority and a new key for receipts; the old ones have signed it", "number", r.member.Known())
	return nil
}

// successions are those that the key of a receipt may have, the newest included.
func (r *renewer) successions(ctx context.Context) ([]ledger.SignedSuccession, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.learn(ctx)
	return r.member.Successions(), err
}

// keep renews in the background, for as long as ctx lives: training may take longer than
// a certificate lasts. What fails for good the participant's next request tells.
func (r *renewer) keep(ctx context.Context) {
	for wait := time.Duration(0); ; wait = r.pause() {
		if transfer.Wait(ctx, nil, max(wait, time.Until(r.member.RenewAt()))) != nil {
			return
		}
		if err := r.renew(ctx); err != nil && ctx.Err() == nil {
			r.log.Error("the certificate cannot be renewed", "error", err)
			return
		}
	}
}

// successions asks the server how its federation came to its authority. Servers from
// before there were rotations have nothing there, and have had none.
func (d *passage) successions(ctx context.Context, server string) ([]identity.Succession, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+server+identity.SuccessionPath, nil)
	if err != nil {
		return nil, err
	}
	reply, err := d.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	switch reply.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusUnauthorized:
		return nil, nil
	default:
		return nil, fmt.Errorf("the server answers %s", reply.Status)
	}
	text, err := io.ReadAll(io.LimitReader(reply.Body, identity.MaxSuccessionBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the federation's successions: %w", err)
	}
	return identity.ParseSuccessions(text)
}
