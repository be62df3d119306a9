package contacts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// TestOwnFiles: a participant's files are one client of its name; what training would stop
// at is refused when they are read, and a folder of folders is a client each.
func TestOwnFiles(t *testing.T) {
	all := t.TempDir()
	for i, name := range []string{"south", "north"} {
		p, err := Generate(t.Context(), Settings{Persons: 200 + 100*i, Seed: uint64(i + 1)})
		if err == nil {
			_, err = p.Write(t.Context(), filepath.Join(all, name), Writing{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var folder *data.Folder
	d := block(t, ", partition: own, source: {path: "+all+"}").Data
	fed, err := folder.Load(d, 1)
	if err != nil || len(fed.Train) != 2 || fed.Train[0].Name != "north" || fed.Train[0].Len() < 300 || fed.Report.Rows != fed.Train[0].Len()+fed.Train[1].Len() {
		t.Fatalf("%+v, %v", fed, err)
	}
	own := func(path string) error {
		_, err := one(config.Data{Source: config.Source{Path: path}}, 0, "north")
		return err
	}
	north := filepath.Join(all, "north")
	if f, err := one(config.Data{Source: config.Source{Path: north}}, 0, "n"); err != nil || f.Train[0].Name != "n" || f.Train[0].Held == nil {
		t.Errorf("%+v, %v", f, err)
	}
	if err := KeepPromise(fed.Train[0].People, 300); err != nil {
		t.Error(err)
	}
	if err := KeepPromise(fed.Train[0].People, 3); err == nil || !strings.Contains(err.Error(), "nobody has more than 3 contacts") {
		t.Errorf("a broken promise: %v", err)
	}
	if err := KeepPromise(nil, 3); err != nil {
		t.Errorf("rows have no contacts: %v", err)
	}
	if err := own(tiny(t, nil)); err == nil || !strings.Contains(err.Error(), "windows to train on; 5 are wanted") {
		t.Errorf("too few days: %v", err)
	}
	households := filepath.Join(north, householdFile)
	text, err := os.ReadFile(households)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	at := -1
	for i, column := range strings.Split(lines[0], ",") {
		if column == "hh_size" {
			at = i
		}
	}
	for i, line := range lines[1:] {
		if cells := strings.Split(line, ","); len(cells) > at {
			cells[at] = "1"
			lines[i+1] = strings.Join(cells, ",")
		}
	}
	if err := os.WriteFile(households, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := own(north); err == nil || !strings.Contains(err.Error(), "which is declared to have 1") {
		t.Errorf("households larger than declared: %v", err)
	}
	for text, want := range map[string]string{
		", partition: own": "data.source.path names no folder",
		", partition: own, source: {path: " + t.TempDir() + "}": "holds no folder",
		", partition: own, source: {path: nowhere}":             "the participants' folders",
	} {
		if _, err := folder.Load(block(t, text).Data, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if faults := data.Check(block(t, ", partition: own")); len(faults) > 0 {
		t.Errorf("what a plan says is refused: %v", faults)
	}
	if faults := data.Check(block(t, ", partition: own, inputs: authors")); len(faults) != 1 || faults[0].Path != "data.inputs" {
		t.Errorf("inputs that a whole population scales, where nobody has it: %v", faults)
	}
	if faults := data.Check(block(t, ", partition: own, persons: 7")); len(faults) == 0 {
		t.Error("persons are generated under the partition own")
	}
}
