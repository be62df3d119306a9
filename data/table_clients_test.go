package data

import (
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// people is a table of so many rows with one feature, the row's number.
func people(n int) *Tabular {
	d := &Tabular{Rows: Rows{Features: 1}, Names: []string{"number"}}
	d.Sensitive = []Attribute{{Name: "sex", Values: []string{"Female", "Male"}}}
	for i := range n {
		d.X, d.Y = append(d.X, float64(i)), append(d.Y, float64(i%2))
		d.Sensitive[0].Groups = append(d.Sensitive[0].Groups, min(1, i%3))
	}
	return d
}

func TestPartitionLosesNoRow(t *testing.T) {
	for _, by := range []string{"", "sex"} {
		d := people(100)
		f, err := d.Federation(d, Partition{Seed: 1, Size: 7, By: by}, 0.7)
		if err != nil {
			t.Fatal(err)
		}
		var seen []float64
		for _, c := range slices.Concat(f.Train, f.Validation) {
			if c.Len() > 7 || c.Len() == 0 {
				t.Errorf("a client of %d rows", c.Len())
			}
			for i, x := range c.X {
				seen = append(seen, x)
				if c.Y[i] != float64(int(x)%2) {
					t.Errorf("row %v has the label %v", x, c.Y[i])
				}
				if by == "sex" && c.Group != min(1, int(x)%3) {
					t.Errorf("row %v is with clients of group %d", x, c.Group)
				}
			}
		}
		slices.Sort(seen)
		if len(seen) != 100 || seen[0] != 0 || len(slices.Compact(seen)) != 100 {
			t.Errorf("%q: %d rows of 100 are with one client", by, len(seen))
		}
		for i, groups := range f.Sensitive[0].Groups {
			for j, g := range groups {
				if int(g) != min(1, int(f.Validation[i].X[j])%3) {
					t.Errorf("held-out client %d, row %d: group %d", i, j, g)
				}
			}
		}
		again, _ := d.Federation(d, Partition{Seed: 1, Size: 7, By: by}, 0.7)
		other, _ := d.Federation(d, Partition{Seed: 2, Size: 7, By: by}, 0.7)
		if !slices.Equal(again.Train[0].X, f.Train[0].X) || slices.Equal(other.Train[0].X, f.Train[0].X) {
			t.Error("the partition does not follow from the seed")
		}
	}
}

func TestPartitionRefusesWhatIsNotThere(t *testing.T) {
	d := people(10)
	if _, err := d.Federation(d, Partition{Size: 3, By: "race"}, 0.5); err == nil || !strings.Contains(err.Error(), "race") {
		t.Errorf("%v", err)
	}
	if _, err := d.Federation(d, Partition{}, 0.5); err == nil {
		t.Error("clients without rows were made")
	}
}

func TestRealTablesAsFederations(t *testing.T) {
	folder := NewFolder(realData(t))
	for _, c := range []struct {
		kind        string
		partition   string
		train, held int // rows
		features    int
	}{
		{"adult", "random", 32561, 16281, 97},
		{"adult", "sex", 32561, 16281, 97},
		{"compas", "race", 0, 0, 7},
	} {
		d := config.Default("synthetic", "ifca", "paper").Data
		d.Kind, d.Partition, d.Samples = c.kind, c.partition, 50
		f, err := folder.Load(d, 1)
		if err != nil {
			t.Fatal(err)
		}
		count := func(clients []Client) (n int) {
			for i := range clients {
				n += clients[i].Len()
			}
			return n
		}
		train, held := count(f.Train), count(f.Validation)
		if c.kind == "compas" && train+held != 6172 || c.train > 0 && (train != c.train || held != c.held) {
			t.Errorf("%s: %d rows train, %d are held out", c.kind, train, held)
		}
		if f.Features != c.features || features(d) != c.features || len(f.Sensitive) != 2 || len(f.Sensitive[0].Groups) != len(f.Validation) {
			t.Errorf("%s: %d features, %d sensitive columns", c.kind, f.Features, len(f.Sensitive))
		}
	}
}
