package participant

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/ledger"
)

// home is what a participant of a run on tables takes home: one input and an intercept.
func home(t *testing.T, models []float64) Report {
	t.Helper()
	run := config.Run{Name: "wards", Model: config.Model{Kind: "linear", Intercept: true}}
	run.Data = config.Data{Kind: "table", Target: "back", Task: data.TaskYesNo, Features: []config.Column{{Name: "age", Type: "number", Range: []float64{0, 100}}}}
	run.Algorithm.Kind, run.Algorithm.Local.Loss, run.Privacy.Protects = "mr-mtl", "cross-entropy", "example"
	file, err := transfer.ModelFile(models, 2)
	if err != nil {
		t.Fatal(err)
	}
	return Report{Run: "run 1", Participant: "north", Models: file, Personal: []float64{4, -1}, trained: trained{run, data.Shape{Features: 1, Classes: 2}, 2}}
}

// TestOutFolderOfATable: the plan's encoding and the ledger's line of this run are in the
// description, and new rows can be answered.
func TestOutFolderOfATable(t *testing.T) {
	dir := t.TempDir()
	spent := func(run string, epsilon event.Number) ledger.RunSpend {
		return ledger.RunSpend{Run: run, Statement: event.Statement{Claim: event.ClaimProved, Unit: event.UnitExample, Relation: event.AddRemove, Epsilon: epsilon}}
	}
	if err := writeModels(dir, home(t, []float64{1, 0}), ledger.Summary{Runs: []ledger.RunSpend{spent("run 0", 9), spent("run 1", 2)}}); err != nil {
		t.Fatal(err)
	}
	m, err := artifact.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.Encoding == nil || m.Encoding.Inputs[0] != "age" || m.Privacy == nil || m.Privacy.Epsilon != 2 || m.Privacy.Claim != event.ClaimProved || m.Privacy.Protects != "example" {
		t.Errorf("%+v, privacy %+v", m.Encoding, m.Privacy)
	}
	path := filepath.Join(t.TempDir(), "new.csv")
	if err := os.WriteFile(path, []byte("age\n100\n40\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	made, err := m.PredictTable(t.Context(), &out, artifact.Table{Source: config.Source{Path: path}})
	if err != nil || len(made.Models) != 1 || made.Models[0].Model != "client north" {
		t.Fatalf("%+v (%v)", made, err)
	}
	if want := "row,probability no,probability yes,predicted\n1,0.0474258732,0.952574127,yes\n2,0.858148935,0.141851065,no\n"; out.String() != want {
		t.Errorf("%s, want %s", out.String(), want) // logits 4*1-1 and 4*-0.2-1
	}
	for name, mode := range map[string]os.FileMode{"personal.safetensors": 0o600, "model.json": 0o600, "model.safetensors": 0o644} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v (%v)", name, info.Mode(), err)
		}
	}
}

// TestServerSendsNoModels: what a hostile server sends instead of models is refused, and
// the participant's own model, which it paid for, is kept and of use.
func TestServerSendsNoModels(t *testing.T) {
	broken := home(t, []float64{1, 0})
	broken.Models = broken.Models[:len(broken.Models)-1]
	short := home(t, []float64{1, 0})
	short.trained.parameters = 3
	short.trained.shape.Features = 2
	short.trained.run.Data.Features = append(short.trained.run.Data.Features, config.Column{Name: "bmi", Type: "number", Range: []float64{0, 1}})
	short.Personal = []float64{4, 0, -1}
	for name, r := range map[string]Report{"broken": broken, "of another plan": short} {
		dir := t.TempDir()
		if err := writeModels(dir, r, ledger.Summary{}); err == nil || !strings.Contains(err.Error(), "the server sent cannot be used") {
			t.Errorf("%s: %v", name, err)
		}
		m, err := artifact.Open(dir)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c, err := m.Choose("north"); err != nil || c.Parameters()[0] != 4 {
			t.Errorf("%s: %v (%v)", name, &c, err)
		}
		if _, err := m.Choose("south"); err == nil {
			t.Errorf("%s: a stranger gets a model", name)
		}
	}
}
