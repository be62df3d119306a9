package identity

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// logged is an authority whose registry has a log from the first change on.
func logged(t *testing.T) (*Authority, string) {
	t.Helper()
	before := wholeBytes
	wholeBytes = 0
	t.Cleanup(func() { wholeBytes = before })
	dir := filepath.Join(t.TempDir(), "ca")
	a, err := Init(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a, dir
}

// enrolled invites and enrols a participant, and says with which invitation.
func enrolled(t *testing.T, a *Authority, name string) Invite {
	t.Helper()
	i, err := a.Invite(name, time.Hour)
	if err == nil {
		err = redeemed(t, a, i)
	}
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func redeemed(t *testing.T, a *Authority, i Invite) error {
	t.Helper()
	m, err := NewMember(filepath.Join(t.TempDir(), "member"), i)
	if err != nil {
		t.Fatal(err)
	}
	request, err := m.Request()
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Redeem(i.String(), request)
	return err
}

func logOf(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, logPrefix+"*"+logSuffix))
	if err != nil || len(found) != 1 {
		t.Fatalf("logs: %v, %v", found, err)
	}
	return found[0]
}

func listed(t *testing.T, dir string) string {
	t.Helper()
	a, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	list, blocked, err := a.List()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(blocked)
	for _, l := range list {
		text += fmt.Sprintf("; %s %s %s", l.Name, l.Kind, l.Status)
	}
	return text
}

// TestLogsOfRegistries: what a log adds is seen by all and outlives a restart; what a killed
// writer left is cut off, and what is damaged or missing lets nobody in.
func TestLogsOfRegistries(t *testing.T) {
	a, dir := logged(t)
	other, err := Open(dir, Options{}) // another process
	if err != nil {
		t.Fatal(err)
	}
	var base []byte
	for i := 0; ; i++ { // until a log has just begun
		enrolled(t, a, fmt.Sprintf("n%d", i))
		base, err = os.ReadFile(filepath.Join(dir, "registry.json"))
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(logOf(t, dir)); err == nil && i > 5 && info.Size() < int64(len(base)/4) {
			break
		}
	}
	used, _ := other.Invite("north", time.Hour)
	if err := redeemed(t, a, used); err != nil { // the other's invitation is seen
		t.Fatal(err)
	}
	if now, err := os.ReadFile(filepath.Join(dir, "registry.json")); err != nil || !bytes.Equal(now, base) {
		t.Errorf("the registry was written again: %v", err)
	}
	if err := redeemed(t, other, used); !errors.Is(err, ErrInvite) { // with another key
		t.Errorf("a used invitation: %v", err)
	}
	if again, err := Open(dir, Options{}); err != nil || !errors.Is(redeemed(t, again, used), ErrInvite) {
		t.Errorf("a used invitation after a restart: %v", err)
	}
	want := listed(t, dir)
	if !strings.Contains(want, "north certificate valid") || !strings.Contains(want, "north invitation used") {
		t.Fatal(want)
	}

	log := logOf(t, dir)
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, torn := range []string{"0123456789abcdef {\"inv", "0123456789abcdef {}\n", "\x00\x00\x00\x00"} {
		if err := os.WriteFile(log, append(bytes.Clone(whole), torn...), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := listed(t, dir); got != want {
			t.Errorf("with %q behind it: %s, want %s", torn, got, want)
		}
	}
	enrolled(t, a, "south") // behind what was torn
	if got := listed(t, dir); !strings.Contains(got, "south certificate valid") || !strings.Contains(got, "north certificate valid") {
		t.Errorf("after a torn line: %s", got)
	}

	spoilt, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	spoilt[20] ^= 1
	if err := os.WriteFile(log, spoilt, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "is damaged at byte 0") {
		t.Errorf("a changed line: %v", err)
	}
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "put it back from a backup") {
		t.Errorf("a missing log: %v", err)
	}
	if _, err := a.Invite("west", time.Hour); err == nil {
		t.Error("somebody was invited without the log")
	}
}

// TestRevocationsAreWhole: a revocation is in the registry itself, which takes the log up.
func TestRevocationsAreWhole(t *testing.T) {
	a, dir := logged(t)
	for i := range 5 {
		enrolled(t, a, fmt.Sprintf("n%d", i))
	}
	log := logOf(t, dir)
	if _, err := a.Revoke("n3"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(log); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the log was not taken up: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "registry.json"))
	if err != nil || bytes.Count(text, []byte(`"name":"n`)) != 10 || !strings.Contains(listed(t, dir), "n3 certificate revoked") {
		t.Errorf("%v: %s", err, text)
	}
	enrolled(t, a, "n6")
	if got := listed(t, dir); !strings.HasPrefix(got, "[n3]") || !strings.Contains(got, "n6 certificate valid") {
		t.Error(got)
	}
}

// TestFailedChangesLeaveNothing: an edit that fails halfway is not in memory either.
func TestFailedChangesLeaveNothing(t *testing.T) {
	a, dir := logged(t)
	enrolled(t, a, "n0")
	enrolled(t, a, "n1")
	want := listed(t, dir)
	failed := errors.New("no")
	err := a.registry.add(func(r *registry) error {
		for serial, c := range r.Issued {
			c.take(time.Now())
			r.touchIssue(serial)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	list, _, err := a.List()
	if err != nil || listed(t, dir) != want {
		t.Errorf("%v: %s, want %s", err, listed(t, dir), want)
	}
	for _, l := range list {
		if l.Status == "revoked" {
			t.Errorf("in memory: %+v", l)
		}
	}
}

// TestEnrolmentIsLinear: a registry is written whole as often as it doubles, and not for
// everybody who comes.
func TestEnrolmentIsLinear(t *testing.T) {
	a, dir := logged(t)
	written, last := 0, time.Time{}
	const people = 100
	for i := range people {
		enrolled(t, a, fmt.Sprintf("n%03d", i))
		info, err := os.Stat(filepath.Join(dir, "registry.json"))
		if err != nil {
			t.Fatal(err)
		}
		if !info.ModTime().Equal(last) {
			written, last = written+1, info.ModTime()
		}
	}
	if written > 12 { // 200 changes from 1 to 200 entries: eight doublings
		t.Errorf("the registry was written whole after %d of %d enrolments", written, people)
	}
	if got := listed(t, dir); strings.Count(got, "certificate valid") != people {
		t.Error(got)
	}
}
