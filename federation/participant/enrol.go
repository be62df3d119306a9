package participant

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/wire"
)

// enrolTime is how long enrolment tries to reach the server.
const enrolTime = 2 * time.Minute

// Enrol makes a key for the invited in dir and has it certified. Called again with
// the same invitation it goes on where it was interrupted.
func Enrol(ctx context.Context, invite, dir string, log *slog.Logger) (*identity.Member, error) {
	invite = strings.TrimSpace(invite)
	i, err := identity.ParseInvite(invite)
	if err != nil {
		return nil, err
	}
	m, err := identity.NewMember(dir, i)
	if err != nil {
		return nil, err
	}
	if m.Enrolled() {
		return m, nil
	}
	request, err := m.Request()
	if err != nil {
		return nil, err
	}
	client, transport := NewClient(i.Server, i.TLS(), nil)
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, enrolTime)
	defer cancel()
	reply, err := Retry(ctx, log, "enrol", func(ctx context.Context) (*wire.EnrolReply, error) {
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		return client.Enrol(ctx, &wire.EnrolRequest{Token: invite, SigningRequest: request})
	})
	if err != nil {
		return nil, fmt.Errorf("enrol at %s: %w", i.Server, err)
	}
	return m, m.Accept(reply.GetCertificates())
}

// renewal renews the certificate when two thirds of its life are over. A server that
// cannot be reached is no reason to stop: the old one still holds.
func renewal(m *identity.Member, client wire.FederationClient, transport *http.Transport, log *slog.Logger) func(context.Context) error {
	var tried time.Time
	return func(ctx context.Context) error {
		now := time.Now()
		if now.Before(m.RenewAt()) || now.Sub(tried) < time.Minute {
			return nil
		}
		tried = now
		request, err := m.Request()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		reply, err := client.Renew(ctx, &wire.RenewRequest{SigningRequest: request})
		if err != nil {
			log.Warn("the certificate could not be renewed yet", "expires", m.Expires(), "error", err)
			return nil
		}
		if err := m.Accept(reply.GetCertificates()); err != nil {
			return err
		}
		transport.CloseIdleConnections() // the next request shows the new one
		log.Info("the certificate was renewed", "expires", m.Expires())
		return nil
	}
}

// Renew renews a member's certificate if it is time to.
func Renew(ctx context.Context, m *identity.Member, client wire.FederationClient, transport *http.Transport, log *slog.Logger) error {
	return renewal(m, client, transport, log)(ctx)
}
