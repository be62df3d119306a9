package identity_test

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/identity/identitytest"
)

// whoami answers with the participant's name.
func whoami(w http.ResponseWriter, r *http.Request) {
	peer, ok := identity.PeerFrom(r.Context())
	if !ok {
		peer.Name = "nobody"
	}
	io.WriteString(w, peer.Name)
}

// listen serves handler over TLS and returns its URL.
func listen(t *testing.T, config *tls.Config, handler http.Handler) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ErrorLog: log.New(t.Output(), "", 0)}
	done := make(chan error)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return "https://" + listener.Addr().String()
}

func client(t *testing.T, config *tls.Config) *http.Client {
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// ask is the status and the text of an answer, or the error of the handshake.
func ask(c *http.Client, url string) (status int, text string, err error) {
	answer, err := c.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}

// admitted are the credentials that get through to a closed path.
func admitted(t *testing.T, url string, all []identitytest.Credential) (names []string) {
	t.Helper()
	for _, c := range all {
		status, text, err := ask(client(t, c.TLS), url+"/closed")
		var broken net.Error
		switch {
		case err != nil && errors.As(err, &broken) && broken.Timeout():
			t.Errorf("%s: no answer: %v", c.Name, err)
		case err == nil && status == http.StatusOK:
			names = append(names, c.Name)
		case err == nil && status != http.StatusUnauthorized && status != http.StatusForbidden:
			t.Errorf("%s: status %d, %s", c.Name, status, text)
		}
	}
	return names
}

func TestWrongCredentialsAreRefused(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	server := listen(t, f.Authority.ServerTLS(), identity.Guard(f.Authority, http.HandlerFunc(whoami), identity.Paths{Public: []string{"/open"}}))
	wrong, right := f.Wrong(t), f.Right(t)
	if len(wrong) < 12 {
		t.Fatalf("only %d kinds", len(wrong))
	}
	if got := admitted(t, server, wrong); len(got) > 0 {
		t.Errorf("admitted: %s", strings.Join(got, "; "))
	}
	if got := admitted(t, server, right); len(got) != len(right) {
		t.Errorf("of the right ones only %q are admitted", got)
	}
	for _, c := range wrong {
		status, text, err := ask(client(t, c.TLS), server+"/open")
		if c.Role == identity.Operator {
			if err != nil || status != http.StatusOK {
				t.Errorf("%s at an open path: %d, %v", c.Name, status, err)
			}
			continue
		}
		if open := err == nil && status == http.StatusOK; open != c.Unauthenticated || open && text != "nobody" {
			t.Errorf("%s at an open path: %d, %q, %v", c.Name, status, text, err)
		}
	}
}

// TestTheTableCatchesAPoorServer is the planted bug: a server that leaves
// everything to the standard verification lets some of them in.
func TestTheTableCatchesAPoorServer(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	wrong := f.Wrong(t)
	config := f.Authority.ServerTLS()
	whole := config.GetConfigForClient
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		poor, err := whole(hello)
		poor.VerifyConnection = nil
		return poor, err
	}
	got := admitted(t, listen(t, config, http.HandlerFunc(whoami)), wrong)
	for _, name := range []string{"no certificate", "revoked by serial number", "revoked by name", "never issued", "another federation's name", "two names"} {
		if !strings.Contains(strings.Join(got, "; "), name) {
			t.Errorf("%q is refused even by a server without our checks: it shows nothing", name)
		}
	}
}

// TestRevocationReachesOpenConnections: another process revokes; the next request
// on the same connection is refused.
func TestRevocationReachesOpenConnections(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	server := listen(t, f.Authority.ServerTLS(), identity.Guard(f.Authority, http.HandlerFunc(whoami), identity.Paths{}))
	config, err := f.Enrol(t, "north").ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, config)
	if status, text, err := ask(c, server); err != nil || status != http.StatusOK || text != "north" {
		t.Fatalf("before: %d, %q, %v", status, text, err)
	}
	elsewhere, err := identity.Open(f.Dir, identity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := elsewhere.Revoke("north")
	if err != nil || len(r.Serials) != 1 || !r.Blocked {
		t.Fatalf("%+v, %v", r, err)
	}
	if status, text, err := ask(c, server); err != nil || status != http.StatusForbidden || !strings.Contains(text, "revoked") {
		t.Errorf("after, on the open connection: %d, %q, %v", status, text, err)
	}
	if _, _, err := ask(client(t, config), server); err == nil {
		t.Error("a new connection is taken after revocation")
	}
	if again, err := elsewhere.Revoke("north"); err != nil || !again.AlreadyKnown {
		t.Errorf("revoked twice: %+v, %v", again, err)
	}
}

// TestExpiryReachesOpenConnections: a connection does not outlive its certificate.
func TestExpiryReachesOpenConnections(t *testing.T) {
	var clock fakeClock
	clock.set(time.Now())
	f := identitytest.New(t, identity.Options{Now: clock.now, Lifetime: time.Hour})
	server := listen(t, f.Authority.ServerTLS(), identity.Guard(f.Authority, http.HandlerFunc(whoami), identity.Paths{}))
	m := f.Enrol(t, "north")
	config, err := m.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, config)
	if status, _, err := ask(c, server); err != nil || status != http.StatusOK {
		t.Fatalf("before: %d, %v", status, err)
	}
	clock.set(m.Expires().Add(time.Second))
	if status, text, err := ask(c, server); err != nil || status != http.StatusForbidden || !strings.Contains(text, "not valid at this time") {
		t.Errorf("after: %d, %q, %v", status, text, err)
	}
	clock.set(m.Expires().Add(-2 * time.Hour))
	if status, text, err := ask(c, server); err != nil || status != http.StatusForbidden {
		t.Errorf("before its time: %d, %q, %v", status, text, err)
	}
}

// TestRegistryLost: without the record of what was issued nobody gets in. One that cannot
// be read says nothing about anybody's certificate, so they are told to try again.
func TestRegistryLost(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	server := listen(t, f.Authority.ServerTLS(), identity.Guard(f.Authority, http.HandlerFunc(whoami), identity.Paths{}))
	config, err := f.Enrol(t, "north").ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, config)
	for _, text := range []string{"", "{", `{"version":9}`, `{"version":1,"invites":{"x":null},"issued":{"y":null},"blocked":{}}`, `{"version":1,"invites":{},"issued":{},"blocked":{}}`} {
		if status, _, err := ask(c, server); err != nil || status != http.StatusOK {
			t.Fatalf("before: %d, %v", status, err)
		}
		restore := spoil(t, f.Dir, text)
		want := http.StatusServiceUnavailable
		if strings.HasPrefix(text, `{"version":1,"invites":{}`) { // can be read, and knows nobody
			want = http.StatusForbidden
		}
		if status, body, err := ask(c, server); err != nil || status != want {
			t.Errorf("registry %q: %d, %q, %v; want %d", text, status, body, err, want)
		}
		if status, body, err := ask(client(t, config), server); err == nil && status != want {
			t.Errorf("registry %q, a new connection: %d, %q; want %d", text, status, body, want)
		}
		restore()
	}
}
