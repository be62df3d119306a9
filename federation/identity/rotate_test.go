package identity_test

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/identity/identitytest"
)

// elsewhere is another process's view of the same folder.
func elsewhere(t *testing.T, dir string, o identity.Options) *identity.Authority {
	t.Helper()
	a, err := identity.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func rotate(t *testing.T, a *identity.Authority, overlap time.Duration) identity.Rotation {
	t.Helper()
	r, err := a.Rotate(overlap)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func successions(t *testing.T, a *identity.Authority) []identity.Succession {
	t.Helper()
	all, err := a.Successions()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// clientOf is a new connection of a member, as it knows the federation now.
func clientOf(t *testing.T, m *identity.Member) *http.Client {
	t.Helper()
	config, err := m.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	return client(t, config)
}

// TestRotationWhileServing: another process rotates; connections, members who know nothing
// of it, members who have learnt and new ones are all let in, without a restart, until
// the overlap ends.
func TestRotationWhileServing(t *testing.T) {
	var clock fakeClock
	clock.set(time.Now())
	options := identity.Options{Now: clock.now}
	f := identitytest.New(t, options)
	server := listen(t, f.Authority.ServerTLS(), identity.Guard(f.Authority, http.HandlerFunc(whoami), identity.Paths{Public: []string{"/open"}}))
	federation, key := f.Authority.Federation(), f.Authority.ReceiptKey()
	m, idle := f.Enrol(t, "north"), f.Enrol(t, "south")
	open := clientOf(t, m)
	wants := func(when string, c *http.Client, name string) {
		t.Helper()
		if status, text, err := ask(c, server); err != nil || status != http.StatusOK || text != name {
			t.Errorf("%s: %d, %q, %v", when, status, text, err)
		}
	}
	wants("before", open, "north")
	before := newInvite(t, f, "west")
	r := rotate(t, elsewhere(t, f.Dir, options), 48*time.Hour)
	if r.Number != 1 || r.Federation != federation || !slices.Equal(r.Cancelled, []string{"west"}) {
		t.Errorf("%+v", r)
	}
	if f.Authority.Federation() != federation || f.Authority.ReceiptKey().Equal(key) {
		t.Error("the running authority has another name, or the old key for receipts")
	}
	wants("on the open connection", open, "north")
	wants("who knows nothing of it", clientOf(t, idle), "south")
	if _, _, err := ask(client(t, before.TLS()), server+"/open"); !errors.Is(err, identity.ErrOtherAuthority) {
		t.Errorf("an invitation from before: %v", err)
	}
	if _, err := f.Authority.Redeem(before.String(), request(t, "west")); !errors.Is(err, identity.ErrInvite) {
		t.Errorf("an invitation from before: %v", err)
	}
	if err := renew(f.Authority, m); err != nil {
		t.Fatal(err)
	}
	if m.Known() != 1 || m.Outdated() || m.Federation() != federation || !m.Signer().Equal(f.Authority.ReceiptKey().Public()) {
		t.Errorf("after renewal: it knows %d, federation %s", m.Known(), m.Federation())
	}
	wants("renewed", clientOf(t, m), "north")
	wants("new", clientOf(t, f.Enrol(t, "east")), "east")

	late := clientOf(t, idle)
	wants("shortly before the end", late, "south")
	clock.set(r.Ends.Add(time.Second))
	if status, text, err := ask(late, server); err != nil || status != http.StatusForbidden || !strings.Contains(text, "the time to renew ended") {
		t.Errorf("after the overlap, on the open connection: %d, %q, %v", status, text, err)
	}
	var other x509.HostnameError // the name that follows from the new authority's key
	if _, _, err := ask(clientOf(t, idle), server); !errors.As(err, &other) {
		t.Errorf("after the overlap: %v", err)
	}
	if list, _, err := f.Authority.List(); err != nil || !slices.ContainsFunc(list, func(l identity.Listed) bool {
		return l.Name == "south" && l.Status == "expired" && l.Expires.Equal(r.Ends)
	}) {
		t.Errorf("%+v, %v", list, err)
	}
	wants("renewed, after the overlap", clientOf(t, m), "north")
	elsewhere(t, f.Dir, options)
	if left, _ := filepath.Glob(filepath.Join(f.Dir, "bridge*")); len(left) > 0 {
		t.Errorf("after the overlap there are %v", left)
	}
}

// TestStolenOldKeys: whoever has kept the old authority's key lets nobody in: its
// certificates are not in the registry, and those who have learnt do not take its server.
func TestStolenOldKeys(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	thief := filepath.Join(t.TempDir(), "stolen")
	if err := os.CopyFS(thief, os.DirFS(f.Dir)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ca.key", "server.key", "receipts.key", "registry.json"} {
		if err := os.Chmod(filepath.Join(thief, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stolen := &identitytest.Federation{Authority: elsewhere(t, thief, identity.Options{}), Dir: thief}
	m := f.Enrol(t, "north")
	rotate(t, f.Authority, time.Hour)
	if err := renew(f.Authority, m); err != nil {
		t.Fatal(err)
	}
	server := listen(t, f.Authority.ServerTLS(), identity.Guard(f.Authority, http.HandlerFunc(whoami), identity.Paths{}))
	if status, text, err := ask(clientOf(t, stolen.Enrol(t, "north")), server); err == nil && status == http.StatusOK {
		t.Errorf("a certificate that the old key signed after the rotation is let in: %s", text)
	}
	impostor := listen(t, stolen.Authority.ServerTLS(), http.HandlerFunc(whoami))
	if _, _, err := ask(clientOf(t, m), impostor); err == nil {
		t.Error("a server with the old keys is taken by a member that knows the new ones")
	}
	// It can make a succession of its own; but nobody goes back to another.
	rotate(t, stolen.Authority, time.Hour)
	rotate(t, stolen.Authority, time.Hour)
	if err := m.Learn(successions(t, stolen.Authority)); !errors.Is(err, identity.ErrSuccession) || m.Known() != 1 {
		t.Errorf("another line: %v", err)
	}
}

// TestFoldersOfBefore: a folder that does not say its federation's name has the one that
// follows from its key, and keeps it.
func TestFoldersOfBefore(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	name, path := f.Authority.Federation(), filepath.Join(f.Dir, "authority.json")
	if err := os.WriteFile(path, []byte(`{"version": 1, "server": "localhost:7443", "certificate_lifetime": "24h0m0s"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if f.Authority.Federation() != name || f.Authority.Lifetime() != 24*time.Hour {
		t.Errorf("%s, %v", f.Authority.Federation(), f.Authority.Lifetime())
	}
	if r := rotate(t, f.Authority, time.Hour); r.Federation != name {
		t.Errorf("%+v, want %s", r, name)
	}
	text, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(text, []byte(`"version": 2`)) {
		t.Errorf("a program that knows no rotations would take it: %s, %v", text, err)
	}
	for what, bad := range map[string]string{
		"another name": strings.Replace(string(text), `"federation": "`+name, `"federation": "0`+name[1:], 1),
		"no line":      `{"version": 2, "server": "localhost:7443", "certificate_lifetime": "24h", "federation": "` + name + `"}`,
		"no lifetime":  strings.Replace(string(text), `"24h0m0s"`, `"0s"`, 1),
		"version 3":    strings.Replace(string(text), `"version": 2`, `"version": 3`, 1),
	} {
		if bad == string(text) {
			continue // the name begins with a 0
		}
		if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := identity.Open(f.Dir, identity.Options{}); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}

// TestRotationsAtOnce: of several processes that rotate, enrol and revoke at the same
// time, each does its part on what the one before left.
func TestRotationsAtOnce(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	m := f.Enrol(t, "north")
	f.Enrol(t, "south")
	var all sync.WaitGroup
	for range 4 {
		a := elsewhere(t, f.Dir, identity.Options{})
		all.Go(func() {
			if _, err := a.Rotate(time.Hour); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if _, err := f.Authority.Admit(verified(t, m)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Go(func() {
		if _, err := f.Authority.Revoke("south"); err != nil {
			t.Error(err)
		}
	})
	all.Wait()
	if r := rotate(t, f.Authority, time.Hour); r.Number != 5 {
		t.Errorf("%+v after five rotations", r)
	}
	wantOneSet(t, f.Dir, 5)
	if err := renew(f.Authority, m); err != nil || m.Known() != 5 {
		t.Errorf("%v; it knows %d", err, m.Known())
	}
	if _, revoked, err := f.Authority.List(); err != nil || !slices.Equal(revoked, []string{"south"}) {
		t.Errorf("revoked: %v, %v", revoked, err)
	}
}

// TestRevokedStayRevoked: a rotation lets nobody back in.
func TestRevokedStayRevoked(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	m := f.Enrol(t, "north")
	if _, err := f.Authority.Revoke("north"); err != nil {
		t.Fatal(err)
	}
	rotate(t, f.Authority, time.Hour)
	if _, err := f.Authority.Admit(verified(t, m)); !errors.Is(err, identity.ErrRevoked) {
		t.Errorf("after the rotation: %v", err)
	}
	if _, err := f.Authority.Invite("north", time.Hour); !errors.Is(err, identity.ErrRevoked) {
		t.Errorf("invited though revoked: %v", err)
	}
}

// TestMissingFilesAreNamed: a folder that lacks a file is not taken for none.
func TestMissingFilesAreNamed(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	rotate(t, f.Authority, time.Hour)
	for _, name := range []string{"ca-1.key", "server-1.key", "receipts-1.key", "bridge-1.key"} {
		path := filepath.Join(f.Dir, name)
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		if _, err := identity.Open(f.Dir, identity.Options{}); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "backup") {
			t.Errorf("without %s: %v", name, err)
		}
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere(t, f.Dir, identity.Options{})
}

func TestOverlapsThatAreRefused(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	for _, overlap := range []time.Duration{0, -time.Hour, time.Second, 400 * 24 * time.Hour} {
		if _, err := f.Authority.Rotate(overlap); !errors.Is(err, identity.ErrSetting) {
			t.Errorf("%v: %v", overlap, err)
		}
	}
	if all := successions(t, f.Authority); len(all) > 0 {
		t.Errorf("%d rotations", len(all))
	}
}

// TestServersTell: every answer tells the number, also to those without a certificate,
// and the successions can be had.
func TestServersTell(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	mux := http.NewServeMux()
	mux.HandleFunc(identity.SuccessionPath, f.Authority.ServeSuccessions)
	server := listen(t, f.Authority.ServerTLS(), identity.Guard(f.Authority, mux, identity.Paths{Public: []string{identity.SuccessionPath}}))
	m := f.Enrol(t, "north")
	config, err := m.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	config.GetClientCertificate = nil
	for want := range 3 {
		answer, err := client(t, config).Get(server + identity.SuccessionPath)
		if err != nil {
			t.Fatal(err)
		}
		var all []identity.Succession
		err = json.NewDecoder(answer.Body).Decode(&all)
		answer.Body.Close()
		if got := identity.Announced(answer.Header); err != nil || got != want || len(all) != want {
			t.Errorf("%d announced and %d shown after %d rotations, %v", got, len(all), want, err)
		}
		if err := m.Learn(all); err != nil {
			t.Error(err)
		}
		if config, err = m.ClientTLS(); err != nil {
			t.Fatal(err)
		}
		config.GetClientCertificate = nil
		rotate(t, f.Authority, time.Hour)
	}
	for text, want := range map[string]int{"": 0, "3": 3, "-1": 0, "x": 0, "99999999999999999999": 0} {
		if got := identity.Announced(http.Header{identity.SuccessionHeader: {text}}); got != want {
			t.Errorf("%q announces %d, want %d", text, got, want)
		}
	}
}
