package participant

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
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
	if m, err := identity.OpenMember(dir); err == nil {
		switch {
		case m.Enrolled() && m.EnrolledBy(i):
			return m, nil
		case m.Name() != i.Name:
			return nil, fmt.Errorf("%s is the identity of %s: choose another folder for %s", dir, m.Name(), i.Name)
		}
	}
	client, way := newClient(i.Server, func() (*tls.Config, error) { return i.TLS(), nil }, nil)
	defer way.next.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, enrolTime)
	defer cancel()
	// Before a key is made: whether the invitation is for the federation of this folder.
	all, err := Retry(ctx, log, "ask how the federation came to its authority", func(ctx context.Context) ([]identity.Succession, error) {
		return way.successions(ctx, i.Server)
	})
	if err != nil {
		return nil, fmt.Errorf("enrol at %s: %w", i.Server, err)
	}
	m, err := identity.NewMember(dir, i, all...)
	if err != nil {
		return nil, err
	}
	request, err := m.Request()
	if err != nil {
		return nil, err
	}
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
