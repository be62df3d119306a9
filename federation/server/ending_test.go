package server

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/plan"
)

// TestEndingCertificatesAreWarnedOf, by name and once a day.
func TestEndingCertificatesAreWarnedOf(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	past := func() time.Time { return time.Now().Add(-80 * 24 * time.Hour) }
	a, err := identity.Init(dir, identity.Options{Now: past})
	if err != nil {
		t.Fatal(err)
	}
	memberTLS(t, a, "north")
	if a, err = identity.Open(dir, identity.Options{}); err != nil {
		t.Fatal(err)
	}
	memberTLS(t, a, "south")
	log := &federationtest.Log{}
	s := New(&Coordinator{}, a, plan.Limits{}, slog.New(slog.NewTextHandler(log, nil)))
	told := map[identity.Ending]time.Time{}
	now := time.Now()
	for _, c := range []struct {
		after time.Duration
		lines int
	}{{0, 1}, {time.Hour, 1}, {25 * time.Hour, 2}} {
		s.warnEnding(told, now.Add(c.after))
		if got := strings.Count(log.String(), "holder=north"); got != c.lines || strings.Contains(log.String(), "south") {
			t.Errorf("after %v: %d lines, want %d:\n%s", c.after, got, c.lines, log)
		}
	}
}
