package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// TestTableTakenToComponents: training rows and held-out ones are projected, a projection
// that was found without privacy is told as not covered, and a relative path is not read
// before it is seen from the run file's folder.
func TestTableTakenToComponents(t *testing.T) {
	dir := t.TempDir()
	rows := "ward,age,weight,ill\n"
	for _, ward := range []string{"a", "b"} {
		for range 8 {
			rows += ward + ",100,25,yes\n" // 1 and -0.5
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("rows.csv", rows)
	d := config.Data{
		Kind: "table", Source: config.Source{Path: filepath.Join(dir, "rows.csv"), Client: "ward"}, Target: "ill", Task: data.TaskYesNo, TestShare: 0.5, Standardise: "none", Projection: dir,
		Features: []config.Column{{Name: "age", Type: "number", Range: []float64{0, 100}}, {Name: "weight", Type: "number", Range: []float64{0, 100}}},
	}
	for claim, covered := range map[string]bool{"proved": true, "none": false} {
		write("model.json", `{"encoding": {"target": "ill", "task": "yes/no", "classes": ["no", "yes"], "columns": [{"name": "age", "type": "number", "range": [0, 100], "missing": "refuse"}, {"name": "weight", "type": "number", "range": [0, 100], "missing": "refuse"}],
			"inputs": ["age", "weight"]}, "directions": [[0.6, 0.8]], "privacy": {"claim": "`+claim+`"}}`)
		f, err := LoadTable(d, 1, "")
		if err != nil {
			t.Fatal(err)
		}
		if f.Features != 1 || f.Shape().Features != 1 || f.Encoding.Inputs[0] != "component 1" {
			t.Errorf("%d features, inputs %q", f.Features, f.Encoding.Inputs)
		}
		for i := range f.Train {
			for _, c := range []*data.Client{&f.Train[i], f.Train[i].Held} {
				for _, v := range c.X {
					if v < 0.2-1e-12 || v > 0.2+1e-12 {
						t.Errorf("a row became %v, want 0.6 - 0.4", v)
					}
				}
			}
		}
		if told := strings.Contains(strings.Join(f.NotCovered, "\n"), "data.projection"); told == covered {
			t.Errorf("%s: not covered is %q", claim, f.NotCovered)
		}
		if s, whole := data.ShapeOf(d); !whole || s.Features != 1 {
			t.Errorf("its shape is %+v, %v", s, whole)
		}
	}
	d.Projection = "components"
	if _, whole := data.ShapeOf(d); whole {
		t.Error("the shape of a projection is known before its folder is")
	}
	under, err := d.Under(dir)
	if err != nil || under.Projection != filepath.Join(dir, "components") {
		t.Errorf("seen from %s it is %s, %v", dir, under.Projection, err)
	}
}
