package identity_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/identity/identitytest"
)

// TestRolesHaveTheirPaths: operators get to theirs, participants to theirs, both to what
// is for members; everybody else to neither.
func TestRolesHaveTheirPaths(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	server := listen(t, f.Authority.ServerTLS(), identity.Guard(f.Authority, http.HandlerFunc(whoami), identity.Paths{
		Operators: []string{"/status"}, Members: []string{"/renew"}, Public: []string{"/health"},
	}))
	wrong := f.Wrong(t)
	for _, c := range append(wrong, f.Right(t)...) {
		for path, roles := range map[string]string{
			"/status": "operator", "/renew": "operator participant", "/join": "participant", "/status/": "participant", "//status": "participant",
		} {
			status, text, err := ask(client(t, c.TLS), server+path)
			want := c.Role != "" && strings.Contains(roles, string(c.Role))
			if passed := err == nil && status == http.StatusOK; passed != want {
				t.Errorf("%s (%s) at %s: %d, %q, %v; want through: %v", c.Name, c.Role, path, status, text, err, want)
			}
			if c.Role != "" && !want && (status != http.StatusForbidden || !strings.Contains(text, "is for")) {
				t.Errorf("%s at %s: %d, %q; want a refusal that names the role", c.Name, path, status, text)
			}
		}
	}
}

// TestANameHasOneRole: also over renewals, other processes and registries of before.
func TestANameHasOneRole(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	a := f.Authority
	f.Enrol(t, "north")
	operator := f.EnrolOperator(t, "watch")
	if operator.Role() != identity.Operator {
		t.Errorf("the operator's role is %q", operator.Role())
	}
	invite := map[identity.Role]func(string, time.Duration) (identity.Invite, error){identity.Participant: a.Invite, identity.Operator: a.InviteOperator}
	for _, c := range []struct {
		name string
		role identity.Role
		want string
	}{
		{"north", identity.Operator, "north is the name of a participant here"},
		{"watch", identity.Participant, "watch is the name of an operator here"},
		{"operator", identity.Participant, "server's own operator"},
		{"operator", identity.Operator, "server's own operator"},
	} {
		if _, err := invite[c.role](c.name, time.Hour); !errors.Is(err, identity.ErrName) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s as %s: %v", c.name, c.role, err)
		}
	}
	if _, err := a.InviteOperator("south", time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Invite("south", time.Hour); !errors.Is(err, identity.ErrName) { // an open invitation counts
		t.Errorf("south is invited as both: %v", err)
	}
	// Revoked and readmitted, a name is free for the other role.
	if _, err := a.Revoke("watch"); err != nil {
		t.Fatal(err)
	}
	if err := a.Readmit("watch"); err != nil {
		t.Fatal(err)
	}
	i, err := a.Invite("watch", time.Hour)
	if err != nil || i.Role != identity.Participant {
		t.Errorf("readmitted: %v, %v", i.Role, err)
	}
	list, _, err := a.List()
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]bool{}
	for _, l := range list {
		roles[l.Name+" "+string(l.Role)+" "+l.Status] = true
	}
	for _, want := range []string{"north participant valid", "watch operator revoked", "watch participant open", "south operator open"} {
		if !roles[want] {
			t.Errorf("the list has no %q: %v", want, roles)
		}
	}
	held, err := a.Holders()
	if err != nil || len(held) != 1 || held["north"].Role != identity.Participant || held["north"].Expires.IsZero() {
		t.Errorf("holders: %v, %v", held, err)
	}
}

// TestInvitationsTellTheirRole: an operator's text cannot be used as a participant's, and
// one of before there were operators is a participant's.
func TestInvitationsTellTheirRole(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	i, err := f.Authority.InviteOperator("watch", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	read, err := identity.ParseInvite(i.String())
	if err != nil || read.Role != identity.Operator {
		t.Errorf("read back: %q, %v", read.Role, err)
	}
	read.Role = identity.Participant // the holder of the text rewrites it
	m, err := identity.NewMember(t.TempDir(), read)
	if err != nil {
		t.Fatal(err)
	}
	request, err := m.Request()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Authority.Redeem(read.String(), request); !errors.Is(err, identity.ErrInvite) {
		t.Errorf("an operator's invitation is redeemed as a participant's: %v", err)
	}
	grant, err := f.Authority.Redeem(i.String(), request)
	if err != nil || grant.Peer.Role != identity.Operator {
		t.Fatalf("%+v, %v", grant.Peer, err)
	}
	if err := m.Accept(grant.Chain); err == nil || !strings.Contains(err.Error(), `operator "watch"`) {
		t.Errorf("who was invited as a participant takes an operator's certificate: %v", err)
	}
	dir := t.TempDir()
	if m, err = identity.NewMember(dir, i); err == nil {
		m, err = identity.OpenMember(dir)
	}
	if err != nil || m.Role() != identity.Operator {
		t.Errorf("the operator's folder, opened again: %v, %v", m, err)
	}
}

// TestRegistriesWithoutRoles are of before there were operators; unknown roles are of
// after.
func TestRegistriesWithoutRoles(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	server := listen(t, f.Authority.ServerTLS(), identity.Guard(f.Authority, http.HandlerFunc(whoami), identity.Paths{}))
	config, err := f.Enrol(t, "north").ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.Dir, "registry.json")
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), `"role":"participant",`) {
		t.Fatalf("%v: %s", err, text)
	}
	defer spoil(t, f.Dir, strings.ReplaceAll(string(text), `"role":"participant",`, ""))()
	if status, body, err := ask(client(t, config), server); err != nil || status != http.StatusOK {
		t.Errorf("without roles: %d, %q, %v", status, body, err)
	}
	spoil(t, f.Dir, strings.ReplaceAll(string(text), `"role":"participant",`, `"role":"auditor",`))
	if _, _, err := f.Authority.List(); err == nil || !strings.Contains(err.Error(), "auditor") {
		t.Errorf("a role that nobody knows: %v", err)
	}
}

// TestTheServersOwnOperator has certificates for minutes, which do not pile up, cannot be
// shut out for good, and are no participant's.
func TestTheServersOwnOperator(t *testing.T) {
	var clock fakeClock
	clock.set(time.Now())
	f := identitytest.New(t, identity.Options{Now: clock.now})
	server := listen(t, f.Authority.ServerTLS(), identity.Guard(f.Authority, http.HandlerFunc(whoami), identity.Paths{Operators: []string{"/status"}}))
	config, until, err := f.Authority.OperatorTLS()
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, config)
	if status, text, err := ask(c, server+"/status"); err != nil || status != http.StatusOK || text != identity.LocalOperator {
		t.Errorf("%d, %q, %v", status, text, err)
	}
	if life := until.Sub(clock.now()); life < time.Minute || life > 5*time.Minute {
		t.Errorf("to be asked for again after %v", life)
	}
	for range 50 {
		clock.set(clock.now().Add(time.Minute))
		if _, _, err := f.Authority.OperatorTLS(); err != nil {
			t.Fatal(err)
		}
	}
	if status, _, err := ask(c, server+"/status"); err != nil || status != http.StatusForbidden {
		t.Errorf("an hour later: %d, %v", status, err)
	}
	list, _, err := f.Authority.List()
	if err != nil || len(list) > 7 {
		t.Errorf("%d entries after 51 looks within 51 minutes, %v", len(list), err)
	}
	r, err := f.Authority.Revoke(identity.LocalOperator)
	if err != nil || r.Blocked || len(r.Serials) == 0 {
		t.Errorf("revoked: %+v, %v", r, err)
	}
	if _, _, err := f.Authority.OperatorTLS(); err != nil {
		t.Errorf("whoever has the folder is shut out: %v", err)
	}
	var stored struct{ Issued map[string]map[string]any }
	text, err := os.ReadFile(filepath.Join(f.Dir, "registry.json"))
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	if err != nil || len(stored.Issued) == 0 {
		t.Errorf("nothing is recorded: %v", err)
	}
	for _, c := range stored.Issued {
		if c["role"] != "operator" || c["name"] != "operator" {
			t.Errorf("recorded as %v", c)
		}
	}
}

// TestOperatorsRenew: the role stays, and the server's own operator does not become one
// of months.
func TestOperatorsRenew(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	watch, other := f.EnrolOperator(t, "watch"), f.Enrol(t, "operated")
	server := listen(t, f.Authority.ServerTLS(), identity.Guard(f.Authority, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := watch
		if r.URL.Path == "/other" {
			from = other
		}
		request, err := from.Request()
		if err != nil {
			t.Error(err)
		}
		grant, err := f.Authority.Renew(r.TLS, request)
		if err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
		w.Write(grant.Chain)
	}), identity.Paths{Operators: []string{"/renew", "/other"}}))
	config, err := watch.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	status, chain, err := ask(client(t, config), server+"/renew")
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d, %q, %v", status, chain, err)
	}
	if err := watch.Accept([]byte(chain)); err != nil {
		t.Errorf("the renewed certificate: %v", err)
	}
	if status, text, err := ask(client(t, config), server+"/other"); err != nil || status != http.StatusTeapot {
		t.Errorf("in somebody else's name: %d, %q, %v", status, text, err)
	}
	local, _, err := f.Authority.OperatorTLS()
	if err != nil {
		t.Fatal(err)
	}
	if status, text, err := ask(client(t, local), server+"/renew"); err != nil || status != http.StatusTeapot || !strings.Contains(text, "for minutes") {
		t.Errorf("the server's own: %d, %q, %v", status, text, err)
	}
}
