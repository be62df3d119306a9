package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestOnlyTheHelperLoadsLibraries: coterie stays one static program; what loads the driver's
// library is in the helper alone.
func TestOnlyTheHelperLoadsLibraries(t *testing.T) {
	const loader = "github.com/ebitengine/purego"
	for program, want := range map[string]bool{"../coterie": false, ".": true} {
		out, err := exec.Command("go", "list", "-deps", program).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(out), loader); got != want {
			t.Errorf("%s depends on %s: %t", program, loader, got)
		}
	}
}
