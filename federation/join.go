package federation

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
)

// NewClient speaks to a server, over connections that dial makes: nil dials TCP.
func NewClient(server string, config *tls.Config, dial func(context.Context, string, string) (net.Conn, error)) (wire.FederationClient, *http.Transport) {
	var only http.Protocols
	only.SetHTTP2(true)
	if dial == nil {
		dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	}
	way := &passage{config: config}
	transport := &http.Transport{
		Protocols: &only, DialTLSContext: way.dialTLS(dial), DisableCompression: true, IdleConnTimeout: 3 * time.Minute,
		HTTP2: &http.HTTP2Config{
			MaxReadFrameSize: PartBytes, MaxReceiveBufferPerConnection: 4 * PartBytes, MaxReceiveBufferPerStream: 2 * PartBytes,
			SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second, WriteByteTimeout: time.Minute,
		},
	}
	way.next = transport
	client := wire.NewFederationClient(&http.Client{Transport: way}, "https://"+server,
		connect.WithReadMaxBytes(maxPlan+overhead), connect.WithAcceptCompression("gzip", nil, nil))
	return client, transport
}

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
	reply, err := retry(ctx, log, "enrol", func(ctx context.Context) (*wire.EnrolReply, error) {
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		return client.Enrol(ctx, &wire.EnrolRequest{Token: invite, SigningRequest: request})
	})
	if err != nil {
		return nil, fmt.Errorf("enrol at %s: %w", i.Server, err)
	}
	return m, m.Accept(reply.GetCertificates())
}

// JoinOptions are what `coterie join` takes.
type JoinOptions struct {
	File   JoinFile
	Policy Policy
	Seeded bool // allow noise that everybody can repeat
	Folder *data.Folder
	Log    *slog.Logger
}

// JoinResult is what a participant's part in a run ends with. Its keys are stable.
type JoinResult struct {
	Report
	Spent     ledger.Summary `json:"ledger"`
	Directory string         `json:"directory"`
}

// Join takes part in the federation's run, and leaves the models in the file's
// folder. An error that wraps fl.ErrRefused means that policy or budget ended it.
func Join(ctx context.Context, o JoinOptions) (res JoinResult, err error) {
	m, err := identity.OpenMember(o.File.Identity)
	if err != nil {
		return res, err
	}
	config, err := m.ClientTLS()
	if err != nil {
		return res, err
	}
	rows, err := o.File.Data.read() // faults of the data are found before a server is asked anything
	if err != nil {
		return res, err
	}
	server := o.File.Server
	if server == "" {
		server = m.Server()
	}
	book, err := ledger.Open(o.File.Ledger, o.Policy.Budget(), ledger.WithWitness(o.File.Witness))
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, book.Close()) }()

	client, transport := NewClient(server, config, nil)
	defer transport.CloseIdleConnections()
	p := NewParticipant(ParticipantOptions{
		Client: client, Name: m.Name(), Federation: m.Federation(), Signer: m.Signer(),
		Ledger: book, Policy: o.Policy, Seeded: o.Seeded, Log: o.Log,
		Half: halfOf(o.File, rows, o.Folder), AnswerAfter: time.Duration(o.File.AnswerSeconds * float64(time.Second)),
		Memory: func(run string) (Memory, error) { return OpenMemory(o.File.Out, run) },
		Renew:  renewal(m, client, transport, o.Log),
	})
	report, failure := p.Run(ctx)
	res.Report = report
	if res.Directory, err = filepath.Abs(o.File.Out); err != nil {
		return res, fmt.Errorf("find the folder for the models: %w", err)
	}
	if res.Spent, err = book.Summary(); err != nil {
		return res, errors.Join(failure, err)
	}
	if report.Models == nil {
		return res, failure
	}
	return res, errors.Join(failure, takeHome(o.File.Out, report))
}

// takeHome writes the models. The participant's own is for its owner alone.
func takeHome(out string, r Report) error {
	if err := os.MkdirAll(out, 0o700); err != nil {
		return fmt.Errorf("make the folder for the models: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(out, "model.safetensors"), r.Models, 0o644); err != nil {
		return err
	}
	if r.Personal == nil {
		return nil
	}
	var beside []model.Tensor[float64]
	if r.Scale != nil {
		beside = []model.Tensor[float64]{
			{Name: "centre", Shape: []int{len(r.Centre)}, Values: r.Centre}, {Name: "scale", Shape: []int{len(r.Scale)}, Values: r.Scale},
		}
	}
	own, err := modelFile("personal", r.Personal, len(r.Personal), beside...)
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(out, "personal.safetensors"), own, 0o600)
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
