package participant

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/fl"
)

const ownRun = `seed: 4
data:
  kind: table
  source: {path: everybody.csv, client: site}
  target: y
  task: yes/no
  features: [{name: a, type: number, range: [0, 10]}, {name: b, type: category, values: [x, z]}]
algorithm: {mode: sound, rounds: 3}
privacy: {noise: exact, public_size: 2}
`

// ownFiles is a folder with a run file and a table, and the part of a join file that
// names them.
func ownFiles(t *testing.T, table string) plan.Source {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"run.yaml": ownRun, "rows.csv": table} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return plan.Source{Kind: "own", Run: filepath.Join(dir, "run.yaml"), Source: config.Source{Path: filepath.Join(dir, "rows.csv")}}
}

const siteRows = "a,b,y,site\n1,x,yes,north\n2,z,no,north\n30,q,yes,south\n4,x,no,south\n5,x,no,north\n"

// TestOwnExamples: rows are read as the run file describes them, all or those of one
// name, and their faults are told before anybody else is asked.
func TestOwnExamples(t *testing.T) {
	s, log := ownFiles(t, siteRows), slog.New(slog.DiscardHandler)
	all, err := ReadOwn(s, "west", log)
	if err != nil {
		t.Fatal(err)
	}
	if n := all.examples.Len() + all.examples.Held.Len(); n != 5 || all.examples.Name != "west" {
		t.Errorf("%d rows of %q; want 5 of west", n, all.examples.Name)
	}
	s.Source.Client, s.Name = "site", "south"
	south, err := ReadOwn(s, "west", log)
	if err != nil {
		t.Fatal(err)
	}
	if n := south.examples.Len() + south.examples.Held.Len(); n != 2 || south.examples.Name != "south" {
		t.Errorf("%d rows of %q; want 2 of south", n, south.examples.Name)
	}
	s.Name = "east"
	if _, err := ReadOwn(s, "west", log); err == nil || !strings.Contains(err.Error(), `no rows of "east"`) {
		t.Errorf("rows of nobody: %v", err)
	}
	bad := ownFiles(t, "a,b,y\n1,x,maybe\n,z,no\nfive,x,yes\n")
	_, err = ReadOwn(bad, "west", log)
	for _, want := range []string{"line 2, column y", "line 3, column a", "line 4, column a", "3 faults"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
}

// TestOwnStatementsTakenFromData: what the owner's file marks as taken from the data is
// uncovered, so that nothing is claimed as proved.
func TestOwnStatementsTakenFromData(t *testing.T) {
	s := ownFiles(t, siteRows)
	marked := strings.Replace(ownRun, "  task: yes/no\n", "  task: yes/no\n  not_public: [data.features.a.range]\n", 1)
	if err := os.WriteFile(s.Run, []byte(marked), 0o600); err != nil {
		t.Fatal(err)
	}
	own, err := ReadOwn(s, "west", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	run, err := plan.Resolve([]byte(marked))
	if err != nil {
		t.Fatal(err)
	}
	run.Data = plan.Shared(run.Data)
	shape, _ := data.ShapeOf(run.Data)
	var h Half
	if err := own.fill(&h, run, shape); err != nil {
		t.Fatal(err)
	}
	if len(h.Uncovered) != 1 || !strings.Contains(h.Uncovered[0], "data.features.a.range") {
		t.Errorf("uncovered are %q", h.Uncovered)
	}
}

// TestOwnExamplesAsAgreed: a plan that describes the data otherwise than their owner
// does, by one range, list, seed or shape, is refused; one that lies elsewhere is not.
func TestOwnExamplesAsAgreed(t *testing.T) {
	own, err := ReadOwn(ownFiles(t, siteRows), "west", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(r *config.Run, s *data.Shape){
		"":        func(*config.Run, *data.Shape) {},
		"range":   func(r *config.Run, _ *data.Shape) { r.Data.Features[0].Range[1] = 11 },
		"order":   func(r *config.Run, _ *data.Shape) { f := r.Data.Features; f[0], f[1] = f[1], f[0] },
		"target":  func(r *config.Run, _ *data.Shape) { r.Data.Target = "a" },
		"seed":    func(r *config.Run, _ *data.Shape) { r.Seed++ },
		"share":   func(r *config.Run, _ *data.Shape) { r.Data.TestShare = 0.5 },
		"classes": func(_ *config.Run, s *data.Shape) { s.Classes = 0 },
		"rows":    func(_ *config.Run, s *data.Shape) { s.Features++ },
	} {
		run, err := plan.Resolve([]byte(ownRun))
		if err != nil {
			t.Fatal(err)
		}
		run.Data = plan.Shared(run.Data)
		shape, _ := data.ShapeOf(run.Data)
		change(&run, &shape)
		switch err := own.fill(new(Half), run, shape); {
		case name == "" && err != nil:
			t.Error(err)
		case name != "" && !errors.Is(err, fl.ErrRefused):
			t.Errorf("another %s is not refused: %v", name, err)
		}
	}
}
