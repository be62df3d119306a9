package data

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// everyThird are people of whom every third falls ill, with their number as input.
type everyThird int

func (p everyThird) Persons() int { return int(p) }
func (everyThird) ID(i int) int64 { return 100 + int64(i) }
func (everyThird) Inputs() int    { return 1 }
func (everyThird) Windows() int   { return 1 }
func (everyThird) Input(dst []float32, i, _ int) int {
	if dst[0] = float32(i); i%3 == 0 {
		return 1
	}
	return 0
}
func (p everyThird) Under(r NodeRule) (People, int, bool, error) {
	if r.Most < 1 {
		return nil, 0, false, errors.New("nobody")
	}
	return p, r.Most, true, nil
}

// TestClientsOfPersons: a client may hold persons instead of rows.
func TestClientsOfPersons(t *testing.T) {
	held := Client{People: everyThird(9), Rows: Rows{Y: []float64{1, 0, 0, 1, 0, 0, 1, 0, 0}}}
	c := Client{Name: "north", People: everyThird(9), Held: &held}
	if c.Len() != 9 {
		t.Errorf("%d persons", c.Len())
	}
	some := held.Pick([]int{3, 1})
	var x [1]float32
	if label := some.People.Input(x[:], 0, 0); some.Len() != 2 || x[0] != 3 || label != 1 || some.People.ID(1) != 101 || !slices.Equal(some.Y, []float64{1, 0}) {
		t.Errorf("%+v", some)
	}
	limited, most, proved, err := some.People.Under(NodeRule{Most: 4})
	if err != nil || most != 4 || !proved || limited.Persons() != 2 || limited.ID(0) != 103 {
		t.Errorf("%v, %d, %v: %v", limited, most, proved, err)
	}
	if got := c.targets([]float64{7}); !slices.Equal(got, append([]float64{7}, held.Y...)) {
		t.Errorf("targets %v", got)
	}
	if err := c.Values(make([]float64, 1), 0); err == nil || !strings.Contains(err.Error(), "built from its contacts") {
		t.Error(err)
	}
	if bytes.Equal(c.appendBytes(1, nil), c.appendBytes(2, nil)) {
		t.Error("two persons are told apart by nothing")
	}
	f := Federation{Classes: 2, Features: 1, Train: []Client{c}}
	if s := f.Summary(config.Data{Kind: "people"}).Clients[0]; s.Classes[1].Rows != 3 {
		t.Errorf("%+v", s)
	}
	if s := f.Shape(); s.Windows != 1 || s.Features != 1 {
		t.Errorf("%+v", s)
	}
}

func TestTablesHaveNoRegions(t *testing.T) {
	for _, kind := range []string{"adult", "compas"} {
		run := config.Default(kind, "", "paper")
		run.Data.Partition = "region"
		if err := Check(run); err == nil || !strings.Contains(err.Error(), "allowed for tables: random, sex, race") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestFind: a part that is there, one that is not, and no folder at all.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "here.csv"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if f := NewFolder(dir); f.Find("here.csv") != filepath.Join(dir, "here.csv") || f.Find("gone.csv") != "" || NewFolder("").Find("here.csv") != "" {
		t.Error("found what is not there, or not what is")
	}
}
