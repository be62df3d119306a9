package identity_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/identity/identitytest"
)

// TestForgedSuccessionsAreRefused: nothing but what the pinned authority and its key for
// receipts have both signed is followed, and nothing else is kept.
func TestForgedSuccessionsAreRefused(t *testing.T) {
	f, other := identitytest.New(t, identity.Options{}), identitytest.New(t, identity.Options{})
	m := f.Enrol(t, "north")
	dir := memberDir(t, f, "south")
	for range 3 {
		rotate(t, f.Authority, time.Hour)
		rotate(t, other.Authority, time.Hour)
	}
	good, foreign := successions(t, f.Authority), successions(t, other.Authority)
	change := func(edit func([]identity.Succession) []identity.Succession) []identity.Succession {
		var all []identity.Succession // as deep as it goes
		text, err := json.Marshal(good)
		if err == nil {
			err = json.Unmarshal(text, &all)
		}
		if err != nil {
			t.Fatal(err)
		}
		return edit(all)
	}
	one := func(edit func(*identity.Succession)) []identity.Succession {
		return change(func(all []identity.Succession) []identity.Succession { edit(&all[1]); return all })
	}
	for name, all := range map[string][]identity.Succession{
		"another federation's":        foreign,
		"another federation's end":    change(func(all []identity.Succession) []identity.Succession { return append(all[:2], foreign[2]) }),
		"without the first":           change(func(all []identity.Succession) []identity.Succession { return all[1:] }),
		"without the second":          change(func(all []identity.Succession) []identity.Succession { return slices.Delete(all, 1, 2) }),
		"in another order":            change(func(all []identity.Succession) []identity.Succession { all[1], all[2] = all[2], all[1]; return all }),
		"one twice":                   change(func(all []identity.Succession) []identity.Succession { return append(all, all[2]) }),
		"another new authority":       one(func(s *identity.Succession) { s.New = foreign[1].New }),
		"another old authority":       one(func(s *identity.Succession) { s.Old = foreign[1].Old }),
		"a longer overlap":            one(func(s *identity.Succession) { s.Ends = s.Ends.Add(time.Hour) }),
		"another key for receipts":    one(func(s *identity.Succession) { s.Receipts.New = foreign[1].Receipts.New }),
		"another's statement of keys": one(func(s *identity.Succession) { s.Receipts = foreign[1].Receipts }),
		"no signature":                one(func(s *identity.Succession) { s.Signature = nil }),
		"another signature":           one(func(s *identity.Succession) { s.Signature = foreign[1].Signature }),
		"a flipped signature of keys": one(func(s *identity.Succession) { s.Receipts.Signature[3] ^= 1 }),
		"noise for a certificate":     one(func(s *identity.Succession) { s.New = []byte("noise") }),
		"a member for an authority":   one(func(s *identity.Succession) { s.New = memberCertificate(t, m) }),
		"too many":                    slices.Repeat(good, 400),
	} {
		if err := m.Learn(all); !errors.Is(err, identity.ErrSuccession) || m.Known() != 0 {
			t.Errorf("%s: %v; it knows %d", name, err, m.Known())
		}
		if _, err := identity.NewMember(filepath.Join(t.TempDir(), "fresh"), newInvite(t, f, "fresh"), all...); !errors.Is(err, identity.ErrSuccession) && name != "without the first" {
			t.Errorf("%s, at enrolment: %v", name, err)
		}
	}
	if err := m.Learn(good[:2]); err != nil || m.Known() != 2 {
		t.Fatalf("%v; it knows %d", err, m.Known())
	}
	if err := m.Learn(good[:1]); !errors.Is(err, identity.ErrSuccession) || m.Known() != 2 {
		t.Errorf("a shorter line is followed back: %v", err)
	}
	if err := m.Learn(good); err != nil || m.Known() != 3 {
		t.Errorf("%v; it knows %d", err, m.Known())
	}
	// What is kept is verified when it is read.
	s, err := identity.OpenMember(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Learn(good); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "succession.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{[]byte("{"), bytes.Replace(text, []byte(`"number": 2`), []byte(`"number": 5`), 1), mustJSON(t, foreign)} {
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := identity.OpenMember(dir); !errors.Is(err, identity.ErrSuccession) {
			t.Errorf("%.40s: %v", bad, err)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func memberCertificate(t *testing.T, m *identity.Member) []byte {
	t.Helper()
	return verified(t, m).VerifiedChains[0][0].Raw
}

// memberDir is the folder of an enrolled member.
func memberDir(t *testing.T, f *identitytest.Federation, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	enrolIn(t, f, dir, name)
	return dir
}

func enrolIn(t *testing.T, f *identitytest.Federation, dir, name string) *identity.Member {
	t.Helper()
	i := newInvite(t, f, name)
	m, err := identity.NewMember(dir, i, successions(t, f.Authority)...)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := m.Request()
	if err != nil {
		t.Fatal(err)
	}
	g, err := f.Authority.Redeem(i.String(), csr)
	if err == nil {
		err = m.Accept(g.Chain)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestInvitedAgain: a member that was away goes on in its folder, under its name; an
// invitation of another federation changes nothing in it.
func TestInvitedAgain(t *testing.T) {
	f, other := identitytest.New(t, identity.Options{}), identitytest.New(t, identity.Options{})
	dir := memberDir(t, f, "north")
	before, err := os.ReadFile(filepath.Join(dir, "identity.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		rotate(t, f.Authority, time.Hour)
		rotate(t, other.Authority, time.Hour)
	}
	for name, all := range map[string][]identity.Succession{"its own": successions(t, other.Authority), "none": nil} {
		if _, err := identity.NewMember(dir, newInvite(t, other, "north"), all...); err == nil {
			t.Errorf("another federation's invitation, with %s successions, is taken", name)
		}
	}
	if _, err := identity.NewMember(dir, newInvite(t, f, "north")); err == nil {
		t.Error("a new authority is taken without its successions")
	}
	if now, err := os.ReadFile(filepath.Join(dir, "identity.pem")); err != nil || !bytes.Equal(now, before) {
		t.Errorf("the identity was changed: %v", err)
	}
	m := enrolIn(t, f, dir, "north")
	if m.Federation() != f.Authority.Federation() || m.Known() != 2 || len(m.Successions()) != 2 {
		t.Errorf("federation %s, %d known", m.Federation(), m.Known())
	}
	if again, err := identity.OpenMember(dir); err != nil || again.Federation() != f.Authority.Federation() || again.Outdated() {
		t.Errorf("opened again: %v", err)
	}
}
