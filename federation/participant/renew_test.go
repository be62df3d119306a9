package participant

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/identity/identitytest"
	"github.com/coterie-fl/coterie/federation/wire"
)

// renewals is a server that renews certificates, and does nothing else.
type renewals struct {
	wire.FederationHandler
	f     *identitytest.Federation
	fails atomic.Int32 // so many renewals
	asked atomic.Int32
	// false successions are shown, if there are some.
	false atomic.Pointer[[]identity.Succession]
	// before is what happens between the question and the answer.
	before func()
	ahead  atomic.Int64 // of the server's clock
}

type stateKey struct{}

func (s *renewals) Renew(ctx context.Context, q *wire.RenewRequest) (*wire.RenewReply, error) {
	s.asked.Add(1)
	if s.fails.Add(-1) >= 0 {
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("not now"))
	}
	if s.before != nil {
		s.before()
	}
	g, err := s.f.Authority.Renew(ctx.Value(stateKey{}).(*tls.ConnectionState), q.GetSigningRequest())
	if err != nil {
		return nil, err
	}
	return &wire.RenewReply{Certificates: g.Chain}, nil
}

// newRenewals starts the server. Certificates last a minute; the clock of the enrolment is
// behind by age, so that they are that old.
func newRenewals(t *testing.T, age time.Duration) (*renewals, *renewer, *federationtest.Log) {
	t.Helper()
	behind := age
	f := identitytest.New(t, identity.Options{Lifetime: time.Minute, Now: func() time.Time { return time.Now().Add(-behind) }})
	m := f.Enrol(t, "north")
	s := &renewals{f: f}
	var err error
	if f.Authority, err = identity.Open(f.Dir, identity.Options{Now: func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }}); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	path, service := wire.NewFederationHandler(s)
	mux.Handle(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), stateKey{}, r.TLS)))
	}))
	mux.HandleFunc(identity.SuccessionPath, func(w http.ResponseWriter, r *http.Request) {
		if all := s.false.Load(); all != nil {
			_ = json.NewEncoder(w).Encode(*all)
			return
		}
		f.Authority.ServeSuccessions(w, r)
	})
	l, err := tls.Listen("tcp", "127.0.0.1:0", f.Authority.ServerTLS())
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: identity.Guard(f.Authority, mux, identity.Paths{Public: []string{identity.SuccessionPath}}), ErrorLog: log.New(t.Output(), "", 0)}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	told := &federationtest.Log{}
	r := newRenewer(m, l.Addr().String(), slog.New(slog.NewTextHandler(told, nil)))
	t.Cleanup(r.way.next.CloseIdleConnections)
	return s, r, told
}

// renewNow is renew without the pause between two attempts.
func renewNow(t *testing.T, r *renewer) {
	t.Helper()
	r.next = time.Time{}
	if err := r.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestRenewalIsTriedUntilItWorks: from a third of the certificate's life on, and with a
// warning in the last sixth.
func TestRenewalIsTriedUntilItWorks(t *testing.T) {
	for _, c := range []struct {
		age   time.Duration
		asked int32
		level string
	}{
		{30 * time.Second, 0, ""}, {44 * time.Second, 3, "level=INFO"}, {53 * time.Second, 3, "level=WARN"},
	} {
		s, r, told := newRenewals(t, c.age)
		s.fails.Store(2)
		before := r.member.Expires()
		for range 3 {
			renewNow(t, r)
			if err := r.renew(t.Context()); err != nil { // at once, which changes nothing
				t.Fatal(err)
			}
		}
		if got := s.asked.Load(); got != c.asked {
			t.Errorf("%v old: asked %d times, want %d", c.age, got, c.asked)
		}
		if renewed := r.member.Expires().After(before); renewed != (c.asked > 0) {
			t.Errorf("%v old: renewed %v\n%s", c.age, renewed, told)
		}
		if n := strings.Count(told.String(), c.level+` msg="the certificate `); c.level != "" && strings.Count(told.String(), "not be renewed") != 2 || c.level == "level=WARN" && n != 2 {
			t.Errorf("%v old: %d lines with %s:\n%s", c.age, n, c.level, told)
		}
	}
}

// TestRenewalInTheBackground: while a participant trains for long, and asks for nothing.
func TestRenewalInTheBackground(t *testing.T) {
	s, r, told := newRenewals(t, 45*time.Second)
	before := r.member.Expires()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { r.keep(ctx); close(ended) }()
	for end := time.Now().Add(20 * time.Second); s.asked.Load() == 0 || !r.member.Expires().After(before); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not renewed\n%s", told)
		}
	}
	stop()
	<-ended
}

// TestConnectionsDoNotOutliveTheirCertificates: one that was made with the certificate of
// before, and is refused for it, is not used again.
func TestConnectionsDoNotOutliveTheirCertificates(t *testing.T) {
	s, r, _ := newRenewals(t, 0)
	ask := func() error {
		request, _, err := r.member.Renewal()
		if err == nil {
			_, err = r.client.Renew(t.Context(), &wire.RenewRequest{SigningRequest: request})
		}
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	request, accept, err := r.member.Renewal()
	if err != nil {
		t.Fatal(err)
	}
	s.ahead.Store(int64(50 * time.Second))
	reply, err := r.client.Renew(t.Context(), &wire.RenewRequest{SigningRequest: request})
	if err == nil {
		err = accept(reply.GetCertificates())
	}
	if err != nil {
		t.Fatal(err)
	}
	s.ahead.Store(int64(70 * time.Second)) // the first one has ended there, the second has not
	if err := ask(); !errors.Is(err, identity.ErrOutdated) {
		t.Errorf("on the connection of before: %v", err)
	}
	if err := ask(); err != nil {
		t.Errorf("after it was refused: %v", err)
	}
}

// TestRotationIsLearnt with the next answer, whatever it is about; the certificate is
// renewed at once, also if the rotation comes in between.
func TestRotationIsLearnt(t *testing.T) {
	s, r, told := newRenewals(t, 0)
	rotate := func() {
		if _, err := s.f.Authority.Rotate(time.Hour); err != nil {
			t.Error(err)
		}
	}
	rotate()
	if err := r.renew(t.Context()); err != nil || r.member.Known() != 0 {
		t.Fatalf("before anything was said: %v", err)
	}
	if _, err := r.way.successions(t.Context(), r.server); err != nil { // some answer
		t.Fatal(err)
	}
	keys, err := r.successions(t.Context())
	if err != nil || len(keys) != 1 || r.member.Known() != 1 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	if err := r.renew(t.Context()); err != nil || r.member.Outdated() || s.asked.Load() != 1 {
		t.Errorf("asked %d times: %v\n%s", s.asked.Load(), err, told)
	}
	s.before = func() { s.before = nil; rotate() }
	rotate()
	if _, err := r.way.successions(t.Context(), r.server); err != nil {
		t.Fatal(err)
	}
	if err := r.renew(t.Context()); err != nil || r.member.Outdated() || r.member.Known() != 3 || s.asked.Load() != 2 {
		t.Errorf("it knows %d, asked %d times: %v\n%s", r.member.Known(), s.asked.Load(), err, told)
	}
}

// TestFalseSuccessionsStopAParticipant, for good and with a sentence; nothing is kept of
// them.
func TestFalseSuccessionsStopAParticipant(t *testing.T) {
	other := identitytest.New(t, identity.Options{})
	if _, err := other.Authority.Rotate(time.Hour); err != nil {
		t.Fatal(err)
	}
	foreign, err := other.Authority.Successions()
	if err != nil {
		t.Fatal(err)
	}
	for name, all := range map[string][]identity.Succession{"another federation's": foreign, "none": {}} {
		s, r, _ := newRenewals(t, 45*time.Second)
		s.false.Store(&all)
		if _, err := s.f.Authority.Rotate(time.Hour); err != nil {
			t.Fatal(err)
		}
		if _, err := r.way.successions(t.Context(), r.server); err != nil {
			t.Fatal(err)
		}
		err := r.renew(t.Context())
		if !errors.Is(err, identity.ErrSuccession) || passing(err) {
			t.Errorf("%s: %v", name, err)
		}
		if name != "none" && !strings.Contains(err.Error(), "Nothing more is sent to it") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.successions(t.Context()); !errors.Is(err, identity.ErrSuccession) {
			t.Errorf("%s, for the ledger: %v", name, err)
		}
		if s.asked.Load() != 0 || r.member.Known() != 0 {
			t.Errorf("%s: the server was asked for a certificate %d times, %d are known", name, s.asked.Load(), r.member.Known())
		}
		// A participant that begins stops before it sends anything.
		p := New(Options{Successions: r.successions, Ledger: knownRounds{}, Log: federationtest.Quiet()})
		if err := p.reconcile(t.Context(), nil); !errors.Is(err, identity.ErrSuccession) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEnrolIntoTheSameFolder: who was away is enrolled anew, over the network, and an
// invitation of another federation leaves the folder and the invitation as they were.
func TestEnrolIntoTheSameFolder(t *testing.T) {
	s, r, _ := newRenewals(t, 0)
	o, q, _ := newRenewals(t, 0)
	dir := filepath.Join(t.TempDir(), "north")
	invite := func(s *renewals, server string) (string, identity.Invite) {
		a, err := identity.Open(s.f.Dir, identity.Options{Server: server})
		if err != nil {
			t.Fatal(err)
		}
		i, err := a.Invite("north", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return i.String(), i
	}
	_, first := invite(s, r.server)
	if _, err := identity.NewMember(dir, first); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*renewals{s, o} {
		if _, err := s.f.Authority.Rotate(time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	foreign, _ := invite(o, q.server)
	if _, err := Enrol(t.Context(), foreign, dir, federationtest.Quiet()); err == nil || !strings.Contains(err.Error(), "choose another folder") {
		t.Errorf("another federation's: %v", err)
	}
	if list, _, err := o.f.Authority.List(); err != nil || list[len(list)-1].Status != "open" {
		t.Errorf("its invitation is used up: %+v, %v", list, err)
	}
	text, _ := invite(s, r.server)
	// The server here enrols nobody: that it was asked shows that the folder fits.
	if _, err := Enrol(t.Context(), text, dir, federationtest.Quiet()); err == nil || !strings.Contains(err.Error(), "enrol at") {
		t.Errorf("its own federation's: %v", err)
	}
	if m, err := identity.OpenMember(dir); err != nil || m.Known() != 1 {
		t.Errorf("%v", err)
	}
}
