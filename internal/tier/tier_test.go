package tier

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// ended is a test that notes how it was ended.
type ended struct {
	testing.TB
	how string
}

func (e *ended) Helper() {}
func (e *ended) Skipf(format string, args ...any) {
	e.how = "skipped: " + fmt.Sprintf(format, args...)
}
func (e *ended) Fatalf(format string, args ...any) {
	e.how = "failed: " + fmt.Sprintf(format, args...)
	panic(e) // as the real one does not return
}

// TestLeaveOut: what was asked for must be there, and nothing else must.
func TestLeaveOut(t *testing.T) {
	for asked, want := range map[string]string{
		"":                 "skipped: left out: torch: no torch (./scripts/test torch installs it)",
		"postgresql node":  "skipped: left out: torch",
		"all":              "failed: COTERIE_TIER asks for torch",
		"postgresql torch": "failed: COTERIE_TIER asks for torch",
		"node,torch":       "failed: COTERIE_TIER asks for torch",
		"torchlight":       "skipped: left out: torch",
	} {
		t.Setenv("COTERIE_TIER", asked)
		e := &ended{TB: t}
		func() {
			defer func() {
				if r := recover(); r != nil && r != any(e) {
					panic(r)
				}
			}()
			LeaveOut(e, Torch, errors.New("no torch"))
		}()
		if !strings.HasPrefix(e.how, want) {
			t.Errorf("asked for %q: %s, want %s", asked, e.how, want)
		}
	}
}
