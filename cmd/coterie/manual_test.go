package main

import (
	"os"
	"strings"
	"testing"
)

// TestRunFilePageIsUpToDate: docs/run-file.md is what the program writes.
func TestRunFilePageIsUpToDate(t *testing.T) {
	out, stderr, code := coterie(t, "run", "--schema", "--markdown")
	page, err := os.ReadFile("../../docs/run-file.md")
	if code != 0 || err != nil {
		t.Fatalf("exit %d: %s%v", code, stderr, err)
	}
	if out != string(page) {
		have := strings.Split(string(page), "\n")
		for i, line := range strings.Split(out, "\n") {
			if i >= len(have) || have[i] != line {
				t.Fatalf("docs/run-file.md, line %d, is not what the program writes; go generate ./internal/manual does:\n%s", i+1, line)
			}
		}
		t.Fatal("docs/run-file.md is longer than what the program writes; go generate ./internal/manual")
	}
	if _, stderr, code := coterie(t, "run", "--markdown"); code != exitUsage || !strings.Contains(stderr, "--schema") {
		t.Errorf("--markdown alone: exit %d: %s", code, stderr)
	}
}
