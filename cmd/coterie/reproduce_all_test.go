package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/sweep/cells"
)

// TestReproduceAllOnWorkers: several studies at a time by workers come to the cells of one
// process, which had no time at first: what needs no cells had its row, the rest was named
// with how far it came, and the same command went on.
func TestReproduceAllOnWorkers(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector is not in the program")
	}
	local, out := t.TempDir(), t.TempDir()
	args := []string{"reproduce", "all", "--scale", "smoke", "--data", t.TempDir()}
	short, says, code := coterie(t, append(args, "--out", local, "--for", "1ns", "--output", "json")...)
	if code != exitFailure || !strings.Contains(says, "studies are not finished; the same command goes on") {
		t.Errorf("exit code %d: %s", code, says)
	}
	for _, want := range []string{`{"id":"clipping-split","title"`, `{"id":"synthetic","reason":"reproduce synthetic: interrupted after 0 of `} {
		if !strings.Contains(short, want) {
			t.Errorf("%s is not said in %.200s…", want, short)
		}
	}
	here := runJSON(t, append(args, "--out", local)...)["records"].([]any)
	theirs := runJSON(t, append(args, "--out", out, "--listen", "127.0.0.1:0")...)["records"].([]any)
	if len(here) != len(theirs) || len(here) < 8 {
		t.Fatalf("%d studies here, %d by workers", len(here), len(theirs))
	}
	for i := range here {
		id := here[i].(map[string]any)["id"].(string)
		if other := theirs[i].(map[string]any)["id"]; other != id {
			t.Errorf("study %d is %s here, %v by workers", i, id, other)
		}
		timed := id == "pandemic-neighbours" // a part of it is times of this machine
		if mine, made := cellsIn(t, filepath.Join(local, id)), cellsIn(t, filepath.Join(out, id)); !timed && !slices.Equal(mine, made) {
			t.Errorf("%s: %d cells here, %d others by workers", id, len(mine), len(made))
		}
		for _, dir := range []string{local, out} {
			if _, err := os.Stat(filepath.Join(dir, id, cells.StandingFile)); err == nil {
				t.Errorf("%s is done and still says how far it is", id)
			}
		}
	}
}
