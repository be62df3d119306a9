package federation_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/identity/identitytest"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/wire"
)

// guarded is a real server whose run has the participant "north" alone.
func guarded(t *testing.T, f *identitytest.Federation, wrap func(http.Handler) http.Handler) (address string) {
	t.Helper()
	kept, err := store.Open(context.Background(), filepath.Join(ramDisk(t), "server.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := server.NewCoordinator(context.Background(), server.Terms{
		Plan: plan.Plan{
			Version: plan.Version, Federation: f.Authority.Federation(), Run: "guarded", RunFile: witnessedRun, Participants: 1,
			Shape: data.Shape{Features: witnessedParameters}, Quorum: 1, Minimum: 1, DeadlineSeconds: 600,
		},
		Names: []string{"north"}, Start: 1, Store: kept, Signer: f.Authority.Signer, Log: federationtest.Quiet(),
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(c, f.Authority, plan.Limits{Connections: 1000, Uploads: 4, UploadSeconds: 60}, federationtest.Quiet()).HTTPServer()
	srv.Handler = wrap(srv.Handler)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = srv.Serve(tls.NewListener(l, srv.TLSConfig))
		close(ended)
	}()
	t.Cleanup(func() {
		srv.Close()
		<-ended
		kept.Close()
	})
	return l.Addr().String()
}

// procedure is one call of the service, as its descriptor has it.
type procedure struct {
	path      string
	streaming bool
	open      bool // to connections without a certificate
	roles     []identity.Role
}

// procedures are all of them, some that do not exist, and some that are spelled
// wrongly: what nobody has named open is closed.
func procedures() []procedure {
	services := wire.File_federation_proto.Services()
	var all []procedure
	for i := range services.Len() {
		s := services.Get(i)
		for j := range s.Methods().Len() {
			m := s.Methods().Get(j)
			path := "/" + string(s.FullName()) + "/" + string(m.Name())
			p := procedure{path: path, streaming: isStream(m), open: path == wire.FederationEnrolProcedure, roles: []identity.Role{identity.Participant}}
			if p.open || path == wire.FederationRenewProcedure {
				p.roles = append(p.roles, identity.Operator)
			}
			all = append(all, p)
			for _, odd := range []string{path[1:], "/" + path, path + "/", strings.ToLower(path), "/x/.." + path} {
				all = append(all, procedure{path: odd, streaming: isStream(m)})
			}
		}
		all = append(all, procedure{path: "/" + string(s.FullName()) + "/NewCall"})
	}
	all = append(all, procedure{path: server.StatusPath, roles: []identity.Role{identity.Operator}})
	return append(all, procedure{path: server.StatusPath + "/"}, procedure{path: "/" + server.StatusPath},
		procedure{path: "/metrics"}, procedure{path: "/debug/pprof/"}, procedure{path: "/"})
}

func isStream(m protoreflect.MethodDescriptor) bool {
	return m.IsStreamingClient() || m.IsStreamingServer()
}

// call says whether a request got past the guard, and what came back.
func call(client *http.Client, address string, p procedure) (passed bool, answer string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+"/", http.NoBody)
	if err != nil {
		return false, err.Error()
	}
	q.URL.Path = p.path
	if !strings.HasPrefix(p.path, "/") {
		q.URL.Opaque = p.path // as it is, without a slash
	}
	q.Header.Set("Content-Type", "application/proto")
	if p.streaming {
		q.Header.Set("Content-Type", "application/connect+proto")
	}
	q.Header.Set("Connect-Protocol-Version", "1")
	reply, err := client.Do(q)
	if err != nil {
		return false, err.Error()
	}
	defer reply.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(reply.Body, 1000))
	switch reply.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return false, reply.Status + " " + string(text)
	case http.StatusBadRequest: // what is no path at all is refused by HTTP/2 itself
		return strings.HasPrefix(p.path, "/"), reply.Status
	}
	return true, reply.Status + " " + string(text)
}

// admitted are the calls that wrong credentials get through to, open ones aside.
func admitted(t *testing.T, address string, all []identitytest.Credential) (calls int, got []string) {
	t.Helper()
	for _, c := range all {
		transport := &http.Transport{TLSClientConfig: c.TLS, ForceAttemptHTTP2: true}
		client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		for _, p := range procedures() {
			if p.open && c.Unauthenticated || slices.Contains(p.roles, c.Role) {
				continue
			}
			calls++
			if passed, answer := call(client, address, p); passed {
				got = append(got, c.Name+" at "+p.path+": "+answer)
			}
		}
		transport.CloseIdleConnections()
	}
	return calls, got
}

// TestWrongCredentialsReachNothing tries every wrong credential at every call of the
// service descriptor.
func TestWrongCredentialsReachNothing(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	address := guarded(t, f, func(h http.Handler) http.Handler { return h })
	wrong := f.Wrong(t)
	if len(wrong) < 12 {
		t.Fatalf("only %d kinds of wrong credential", len(wrong))
	}
	calls, got := admitted(t, address, wrong)
	if len(got) > 0 {
		t.Errorf("%d of %d calls got through:\n%s", len(got), calls, strings.Join(got, "\n"))
	}
	t.Logf("%d kinds of wrong credential, %d calls, %d got through", len(wrong), calls, len(got))

	// A server that refuses everybody would pass so far.
	for _, c := range f.Right(t) {
		transport := &http.Transport{TLSClientConfig: c.TLS, ForceAttemptHTTP2: true}
		passed, answer := call(&http.Client{Transport: transport}, address, procedure{path: wire.FederationJoinProcedure})
		if c.Name == "enrolled" && !passed {
			t.Errorf("the right one is refused: %s", answer)
		}
		if c.Name != "enrolled" && !strings.Contains(answer, "has no part in this run") {
			t.Errorf("a member of the federation without a part in the run: %s", answer)
		}
		if passed, answer := call(&http.Client{Transport: transport}, address, procedure{path: server.StatusPath}); passed {
			t.Errorf("a participant gets to the operators' path: %s", answer)
		}
		transport.CloseIdleConnections()
	}
}

// TestOperatorsReachTheirPath, and renewal, and nothing else: the sweep above tries it.
func TestOperatorsReachTheirPath(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	address := guarded(t, f, func(h http.Handler) http.Handler { return h })
	for _, c := range f.Operators(t) {
		transport := &http.Transport{TLSClientConfig: c.TLS, ForceAttemptHTTP2: true}
		reply, err := (&http.Client{Transport: transport}).Get("https://" + address + server.StatusPath)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(reply.Body)
		reply.Body.Close()
		if reply.StatusCode != http.StatusOK || !strings.Contains(string(text), `"name":"north"`) {
			t.Errorf("%s: %s %s", c.Name, reply.Status, text)
		}
		if _, answer := call(&http.Client{Transport: transport}, address, procedure{path: wire.FederationRenewProcedure}); !strings.Contains(answer, "the certificate request is refused") {
			t.Errorf("%s cannot renew its certificate: %s", c.Name, answer) // what it sent is no request
		}
		transport.CloseIdleConnections()
	}
}

// TestAServerWithoutItsGuardIsFoundOut is the planted bug: certificates are verified
// as TLS does it, and nothing more.
func TestAServerWithoutItsGuardIsFoundOut(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	address := guarded(t, f, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "welcome") })
	})
	_, got := admitted(t, address, f.Wrong(t)[:1])
	if len(got) < len(procedures())/2 {
		t.Errorf("only %d calls were seen to get through", len(got))
	}
}
