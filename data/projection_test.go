package data

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
)

// TestProjectedRows: rows in one piece of memory become their parts, and no part lies
// outside the range that follows from the inputs'.
func TestProjectedRows(t *testing.T) {
	p := &Projection{Inputs: []string{"a", "b", "c"}, Directions: [][]float64{{0.6, 0, -0.8}, {0, 1, 0}}}
	got := p.Rows([]float64{1, 2, 3, -1, 0, 1, 10, 20, 30})
	want := []float64{0.6 - 2.4, 2, -1.4, 0, 6 - 24, 20}
	if len(got) != len(want) {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Errorf("value %d is %v, want %v", i, got[i], want[i])
		}
	}
	e := &Encoding{Columns: []EncodedColumn{{Name: "a", Type: columnNumber}, {Name: "b", Type: columnNumber}, {Name: "c", Type: columnYesNo}}, Inputs: []string{"a", "b", "c"}}
	if err := e.Project(p); err != nil {
		t.Fatal(err)
	}
	centre, scale := e.Ranges() // a and b within -1…1, c within 0…1
	if math.Abs(centre[0]+0.4) > 1e-12 || math.Abs(scale[0]-1) > 1e-12 || centre[1] != 0 || scale[1] != 1 {
		t.Errorf("ranges are %v ± %v", centre, scale)
	}
	if e.Width() != 3 || e.Shape().Features != 2 || e.Inputs[1] != "component 2" {
		t.Errorf("%d inputs become %q", e.Width(), e.Inputs)
	}
}

// TestProjectionsThatDoNotFit are refused in words.
func TestProjectionsThatDoNotFit(t *testing.T) {
	encoded := `"encoding": {"target": "y", "task": "number", "target_range": [0, 1], "columns": [{"name": "a", "type": "number", "range": [0, 1], "missing": "refuse"}], "inputs": ["a"]}`
	for want, text := range map[string]string{
		"there is no model.json":      "",
		"cannot be read":              "{",
		"no projection of a table":    "{" + encoded + "}",
		"not of a table's own":        `{"directions": [[1]]}`,
		"has 2 values for 1 inputs":   "{" + encoded + `, "directions": [[1, 0]]}`,
		"2 directions of 1 inputs":    "{" + encoded + `, "directions": [[1], [1]]}`,
		"the value 7; allowed: -1 to": "{" + encoded + `, "directions": [[7]]}`,
	} {
		dir := t.TempDir()
		if text != "" {
			if err := os.WriteFile(filepath.Join(dir, "model.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ReadProjection(dir); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "data.projection") {
			t.Errorf("want %q: %v", want, err)
		}
	}
	e, err := NewEncoding(config.Data{Kind: "table", Target: "y", Task: TaskNumber, TargetRange: []float64{0, 1}, Features: []config.Column{{Name: "b", Type: "number", Range: []float64{0, 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Project(&Projection{Inputs: []string{"a"}, Directions: [][]float64{{1}}}); err == nil || !strings.Contains(err.Error(), "data.features must be those") {
		t.Errorf("a projection of other columns: %v", err)
	}
	if open := (&Projection{Claim: event.ClaimNone}).Uncovered(); len(open) != 1 || (&Projection{Claim: event.ClaimProved}).Uncovered() != nil || (*Projection)(nil).Uncovered() != nil {
		t.Errorf("not covered of one without privacy: %q", open)
	}
}
