package participant

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
)

// NewClient speaks to a server, over connections that dial makes: nil dials TCP.
func NewClient(server string, config *tls.Config, dial func(context.Context, string, string) (net.Conn, error)) (wire.FederationClient, *http.Transport) {
	client, way := newClient(server, func() (*tls.Config, error) { return config, nil }, dial)
	return client, way.next
}

// newClient is NewClient with settings that are asked for at every connection.
func newClient(server string, config func() (*tls.Config, error), dial func(context.Context, string, string) (net.Conn, error)) (wire.FederationClient, *passage) {
	way := newPassage(config, dial)
	client := wire.NewFederationClient(&http.Client{Transport: way}, "https://"+server,
		connect.WithReadMaxBytes(plan.MaxBytes+transfer.Overhead), connect.WithAcceptCompression("gzip", nil, nil))
	return client, way
}

// NewPassage is the way to a server. A connection stays open for as long as the server
// answers: by it the server knows that this member is there, also while it trains.
func NewPassage(config *tls.Config, dial func(context.Context, string, string) (net.Conn, error)) (http.RoundTripper, *http.Transport) {
	way := newPassage(func() (*tls.Config, error) { return config, nil }, dial)
	return way, way.next
}

func newPassage(config func() (*tls.Config, error), dial func(context.Context, string, string) (net.Conn, error)) *passage {
	var only http.Protocols
	only.SetHTTP2(true)
	if dial == nil {
		dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	}
	way := &passage{config: config}
	transport := &http.Transport{
		Protocols: &only, DialTLSContext: way.dialTLS(dial), DisableCompression: true,
		HTTP2: &http.HTTP2Config{
			MaxReadFrameSize: transfer.PartBytes, MaxReceiveBufferPerConnection: 4 * transfer.PartBytes, MaxReceiveBufferPerStream: 2 * transfer.PartBytes,
			SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second, WriteByteTimeout: time.Minute,
		},
	}
	way.next = transport
	return way
}

// ErrTurnedAway means that the server does not accept the participant's certificate,
// and will not until somebody has done something about it.
var ErrTurnedAway = errors.New("the server does not accept this participant's certificate")

// ErrStranger means that somebody else than the federation's server answers: nothing is
// sent to it, and asking again would change nothing.
var ErrStranger = errors.New("this is not the federation's server")

// greetTime is how long a handshake with the server may take.
const greetTime = 10 * time.Second

// passage is the way to a server. It says what a connection that fails means: whether it
// is worth knocking again, and what to do if not. Clocks may be wrong for a while, on
// either side, and that passes.
type passage struct {
	next   *http.Transport
	config func() (*tls.Config, error)
	// announced is how many successions of its authority the server tells of.
	announced atomic.Int64
}

// unfinished marks an error from before the server had made itself known: whoever is on
// the way can cause it, so it says nothing about this participant's certificate.
type unfinished struct{ error }

func (u unfinished) Unwrap() error { return u.error }

// dialTLS connects, and marks what fails before the handshake is over.
func (d *passage) dialTLS(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		config, err := d.config()
		if err != nil {
			return nil, err
		}
		config = config.Clone()
		config.NextProtos = []string{"h2"}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		secure := tls.Client(conn, config)
		ctx, cancel := context.WithTimeout(ctx, greetTime)
		defer cancel()
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, unfinished{err}
		}
		return secure, nil
	}
}

// RoundTrip makes one request.
func (d *passage) RoundTrip(q *http.Request) (*http.Response, error) {
	reply, err := d.next.RoundTrip(q)
	if err != nil {
		return nil, d.judge(err)
	}
	if n := int64(identity.Announced(reply.Header)); n > d.announced.Load() {
		d.announced.Store(n)
	}
	if reply.StatusCode != http.StatusForbidden {
		return reply, nil
	}
	switch reply.Header.Get(identity.ReasonHeader) {
	case identity.ReasonOutdated:
		err = d.outdated(identity.ErrOutdated)
	case identity.ReasonRevoked:
		err = revoked(identity.ErrRevoked)
	default:
		return reply, nil
	}
	reply.Body.Close()
	d.next.CloseIdleConnections() // the connection may be older than the certificate
	return nil, err
}

func revoked(err error) error {
	return fmt.Errorf("%w: it was revoked, or the server does not know it; ask those who run the federation for a new invitation: %w", ErrTurnedAway, err)
}

// The alerts by which a server says that it will not have a certificate. Our own sends
// the first for one that was revoked or that it does not know.
var finalAlerts = map[string]bool{
	"tls: bad certificate": true, "tls: revoked certificate": true, "tls: unknown certificate": true,
	"tls: unknown certificate authority": true,
}

// expiredAlert is about the time as the server's clock has it.
const expiredAlert = "tls: expired certificate"

// judge says what an error means.
func (d *passage) judge(err error) error {
	var invalid x509.CertificateInvalidError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("the server's certificate is not valid at %s, which is the time here: one of the two clocks is wrong, or the server has to renew it: %w",
			time.Now().UTC().Format(time.RFC3339), err)
	case errors.Is(err, identity.ErrOtherAuthority), errors.As(err, &invalid), errors.As(err, &authority), errors.As(err, &host):
		return fmt.Errorf("%w: check the address; if it is right, somebody is in between, or the federation has a new authority and you need a new invitation: %w", ErrStranger, err)
	}
	var early unfinished
	var alert *net.OpError
	if errors.As(err, &early) || !errors.As(err, &alert) || alert.Op != "remote error" {
		return err
	}
	switch text := alert.Err.Error(); {
	case finalAlerts[text]:
		return revoked(err)
	case text == expiredAlert:
		return d.outdated(err)
	}
	return err
}

// outdated is what it means that the certificate has no validity by the server's clock:
// only if it has none by the clock here either, it is over.
func (d *passage) outdated(err error) error {
	config, failure := d.config()
	if failure != nil || config.GetClientCertificate == nil {
		return errors.Join(err, failure)
	}
	own, failure := config.GetClientCertificate(&tls.CertificateRequestInfo{})
	if failure != nil || own == nil || own.Leaf == nil {
		return errors.Join(err, failure)
	}
	if now := time.Now(); now.After(own.Leaf.NotAfter) {
		return fmt.Errorf("%w: it expired at %s; ask those who run the federation for a new invitation: %w", ErrTurnedAway, own.Leaf.NotAfter.UTC().Format(time.RFC3339), err)
	}
	return fmt.Errorf("by the server's clock this participant's certificate is not valid now, by the clock here it is, from %s to %s: one of the two clocks is wrong: %w",
		own.Leaf.NotBefore.UTC().Format(time.RFC3339), own.Leaf.NotAfter.UTC().Format(time.RFC3339), err)
}
