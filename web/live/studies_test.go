package live

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/sim"
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
