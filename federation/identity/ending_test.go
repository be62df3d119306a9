package identity_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/identity/identitytest"
)

// TestEnding: those whose last certificate ends soon, and nobody else.
func TestEnding(t *testing.T) {
	var clock fakeClock
	begin := time.Now()
	clock.set(begin)
	f := identitytest.New(t, identity.Options{Now: clock.now})
	north, day := f.Enrol(t, "north"), 24*time.Hour
	f.Enrol(t, "revoked")
	if _, err := f.Authority.Revoke("revoked"); err != nil {
		t.Fatal(err)
	}
	ending := func(after time.Duration) string {
		clock.set(begin.Add(after))
		all, err := f.Authority.Ending()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range all {
			names = append(names, e.Name)
		}
		return strings.Join(names, " ")
	}
	for after, want := range map[time.Duration]string{0: "", 70 * day: "", 77 * day: "north", 91 * day: ""} {
		if got := ending(after); got != want {
			t.Errorf("after %v: %q, want %q", after, got, want)
		}
	}
	clock.set(begin.Add(80 * day))
	if err := renew(f.Authority, north); err != nil {
		t.Fatal(err)
	}
	if got := ending(80 * day); got != "" {
		t.Errorf("renewed: %q", got)
	}
	short := identitytest.New(t, identity.Options{Now: clock.now, Lifetime: time.Hour})
	short.Enrol(t, "south")
	for after, want := range map[time.Duration]int{49 * time.Minute: 0, 51 * time.Minute: 1} {
		clock.set(begin.Add(80*day + after))
		if all, err := short.Authority.Ending(); err != nil || len(all) != want {
			t.Errorf("a certificate for an hour, after %v: %v, %v", after, all, err)
		}
	}
}
