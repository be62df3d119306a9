package sweep

import (
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// TestStartsAreCellsOfTheirOwn: runs that start from other models are other cells, though
// the JSON of a run does not say where it starts from.
func TestStartsAreCellsOfTheirOwn(t *testing.T) {
	run := config.Default("synthetic", "fedavg", "paper")
	book := Options{Out: t.TempDir()}.book()
	paths := map[string]bool{}
	for _, start := range []string{"", "a", "b"} {
		run.Model.Start = start
		path, err := book.Path(Options{}.keyOf(run))
		if err != nil {
			t.Fatal(err)
		}
		paths[path] = true
	}
	if len(paths) != 3 {
		t.Errorf("three starts are %d cells", len(paths))
	}
}
