package live

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/sim"
	"github.com/coterie-fl/coterie/sweep"
	"github.com/coterie-fl/coterie/sweep/cells"
)

// TestStudiesSayHowFar: a study that goes on shows how many of its cells are done, as a bar,
// in the list and on its page; what it says wrongly is passed over.
func TestStudiesSayHowFar(t *testing.T) {
	dir := t.TempDir()
	one := filepath.Join(dir, "study")
	if err := os.MkdirAll(filepath.Join(one, cellsFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.json", "b.json"} {
		if err := os.WriteFile(filepath.Join(one, cellsFolder, name), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f := folderOf(t, dir)
	shown := func(place url.Values) string {
		t.Helper()
		v, err := f.View(place)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, p := range v.Parts {
			text.WriteString(string(p.HTML))
		}
		return text.String()
	}
	at := url.Values{"at": {"study"}}
	if text := shown(at); !strings.Contains(text, "2 cells done") || strings.Contains(text, "meter") {
		t.Errorf("without a standing: %s", text)
	}
	if err := (cells.Standing{Done: 3, Total: 12}).Write(one); err != nil {
		t.Fatal(err)
	}
	for _, place := range []url.Values{nil, at} {
		if text := shown(place); !strings.Contains(text, "3 of 12 cells done") || !strings.Contains(text, "meter") {
			t.Errorf("at %v: %s", place, text)
		}
	}
	for _, wrong := range []string{"{", `{"done": 5, "total": 3}`, `{"done": -1, "total": 3}`} {
		if err := os.WriteFile(filepath.Join(one, cells.StandingFile), []byte(wrong), 0o644); err != nil {
			t.Fatal(err)
		}
		if text := shown(at); !strings.Contains(text, "2 cells done") {
			t.Errorf("%s: %s", wrong, text)
		}
	}
	if err := os.WriteFile(filepath.Join(one, sim.ReportFile), []byte("<p>"), 0o644); err != nil {
		t.Fatal(err)
	}
	if text := shown(nil); strings.Contains(text, "meter") {
		t.Errorf("a study that has ended: %s", text)
	}
}

// TestWhoMakesCells: a sweep, a study and seeds that go on show their workers, and live as
// long as somebody says so, however long a cell takes.
func TestWhoMakesCells(t *testing.T) {
	dir := t.TempDir()
	sweptFolder(t, filepath.Join(dir, "swept"))
	if err := errors.Join(os.Remove(filepath.Join(dir, "swept", sweep.ResultFile)), os.MkdirAll(filepath.Join(dir, "study", cellsFolder), 0o755),
		(cells.Standing{Done: 3, Total: 12}).Write(filepath.Join(dir, "study")),
		os.MkdirAll(filepath.Join(dir, "seeds", "seed-1"), 0o755), os.MkdirAll(filepath.Join(dir, "seeds", "seed-2"), 0o755)); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	age := func(one string) {
		t.Helper()
		for _, name := range []string{cells.CrewFile, cellsFolder, "."} {
			if err := os.Chtimes(filepath.Join(dir, one, name), old, old); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	f := folderOf(t, dir)
	for _, one := range []string{"swept", "study", "seeds"} {
		age(one)
		again(f)
		if _, text := view(t, f, "at="+one); !strings.Contains(text, "no sign of life") || strings.Contains(text, "worker") {
			t.Errorf("%s, of which nothing was heard for an hour: %s", one, text)
		}
		crew := cells.Crew{Workers: []cells.Hand{{Name: "north-1", Slots: 2, Made: 5, Doing: []string{"x, seed 1", "x, seed 2, after round 9"}}, {Name: "<south>", Slots: 1}}}
		if err := crew.Write(filepath.Join(dir, one)); err != nil {
			t.Fatal(err)
		}
		again(f)
		_, text := view(t, f, "at="+one)
		wants(t, text, "running", "2 workers", "north-1", "x, seed 1; x, seed 2, after round 9", "&lt;south&gt;", "nothing")
		_, text = view(t, f, "")
		wants(t, text, "<p>2 workers</p>")
		age(one) // the command was killed
		again(f)
		if _, text := view(t, f, "at="+one); !strings.Contains(text, "no sign of life") || strings.Contains(text, "north-1") {
			t.Errorf("%s, whose command was killed: %s", one, text)
		}
		if err := (cells.Crew{}).Write(filepath.Join(dir, one)); err != nil { // without a queue it is a sign of life
			t.Fatal(err)
		}
		again(f)
		if _, text := view(t, f, "at="+one); !strings.Contains(text, "running") || strings.Contains(text, "worker") {
			t.Errorf("%s, without a queue: %s", one, text)
		}
		if err := os.WriteFile(filepath.Join(dir, one, cells.CrewFile), []byte(`{"workers": 3}`), 0o644); err != nil {
			t.Fatal(err)
		}
		again(f)
		if _, text := view(t, f, "at="+one); strings.Contains(text, "worker") {
			t.Errorf("%s, whose crew cannot be read: %s", one, text)
		}
	}
}
