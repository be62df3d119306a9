package data

import (
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// A data set that only these tests know: all that a new one has to say, in one file.
func init() {
	register(Kind{
		DataKind: config.DataKind{Name: "counting", Method: "fedavg", Settings: func(r *config.Run) { r.Algorithm.Rounds = 7 }},
		Keys:     []string{"users", "samples"},
		Shape:    wholeShape(Shape{Features: 1}),
		Clients:  func(d config.Data) (train, validation int) { return d.Users, 0 },
		Load: func(_ *Folder, d config.Data, _ uint64) (*Federation, error) {
			f := &Federation{Features: 1, Train: make([]Client, d.Users)}
			for i := range f.Train {
				f.Train[i].Features = 1
				for k := range d.Samples {
					f.Train[i].X, f.Train[i].Y = append(f.Train[i].X, float64(k)), append(f.Train[i].Y, float64(i))
				}
			}
			return f, nil
		},
		Words: func(config.Data) string { return "Clients that count" },
	})
}

// TestANewDataSetIsOneValue: defaults, checks, schema and loader know it.
func TestANewDataSetIsOneValue(t *testing.T) {
	run, err := config.Resolve([]byte("data: {kind: counting, users: 3}"), nil, Check)
	if err != nil || run.Algorithm.Kind != "fedavg" || run.Algorithm.Rounds != 7 || run.Algorithm.Hypotheses != 1 {
		t.Fatalf("%+v, %v", run.Algorithm, err)
	}
	if f, err := (*Folder)(nil).Load(run.Data, 1); err != nil || len(f.Train) != 3 || f.Train[2].Len() != 10 {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := config.Resolve([]byte("data: {kind: counting, mask: 0.5}"), nil, Check); err == nil || !strings.Contains(err.Error(), "data.mask: is set, but data of the kind counting") {
		t.Errorf("a foreign key: %v", err)
	}
	if _, err := config.Load([]byte("data: {kind: countin}")); err == nil || !strings.Contains(err.Error(), `did you mean "counting"`) {
		t.Errorf("a wrong name: %v", err)
	}
	if schema, err := config.Schema(); err != nil || !strings.Contains(string(schema), `"counting"`) {
		t.Errorf("the schema does not know it (%v)", err)
	}
}
