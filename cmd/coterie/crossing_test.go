package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDocumentedCrossings executes the commands of docs/crossing.md, at smoke scale.
func TestDocumentedCrossings(t *testing.T) {
	if os.Getenv("COTERIE_DATA") == "" {
		t.Skip("COTERIE_DATA is not set: see README, real data")
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "crossing.md"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var run []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		args := strings.Fields(line)
		if len(args) < 3 || !slices.Equal(args[:2], []string{"coterie", "reproduce"}) {
			continue
		}
		run = append(run, args[2])
		for i, arg := range args {
			switch {
			case args[i-min(i, 1)] == "--scale":
				args[i] = "smoke"
			case args[i-min(i, 1)] == "--seeds":
				args[i] = "1"
			case arg == "FOLDER":
				args[i] = os.Getenv("COTERIE_DATA")
			}
		}
		if out, stderr, code := coterie(t, args[1:]...); code != 0 || !strings.Contains(out, "against FedAvg") {
			t.Errorf("%s: exit %d, %s", line, code, stderr)
		}
	}
	if !slices.Equal(run, []string{"handwriting-methods", "school-clustering"}) {
		t.Errorf("documented are %q", run)
	}
}
