package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// folder writes files, and folders for names that end in a slash.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil && !strings.HasSuffix(name, "/") {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// numbered is a table with rows of numbers from one on.
func numbered(from, n int) string {
	var b strings.Builder
	b.WriteString("y,f00\n")
	for i := from; i < from+n; i++ {
		fmt.Fprintf(&b, "%d,%d\n", i%2, i)
	}
	return b.String()
}

// perFile is the block of a table with one file a client.
func perFile(path string) config.Data {
	d := wide(path, 1)
	d.Source.Client, d.Features[0].Range = "", []float64{0, 1000}
	return d
}

// numbersOf are the rows' numbers.
func numbersOf(c *data.Client) (out []int) {
	for _, x := range c.X {
		out = append(out, int(x*500+500.5))
	}
	return out
}

func TestOneFileAClient(t *testing.T) {
	dir := folder(t, map[string]string{"north.v2.csv": numbered(0, 40), "south.tsv": strings.ReplaceAll(numbered(100, 30), ",", "\t"), "README.md": "no table", ".hidden.csv": "x", "old/x.csv": "x", "_SUCCESS": ""})
	f, err := LoadTable(perFile(dir), 1, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(f.Names()); got != "[north south]" {
		t.Error(got)
	}
	if got := strings.Join(f.Report.Notes, "|"); got != "not read, for their endings are no table's: .hidden.csv, README.md, _SUCCESS, old" {
		t.Errorf("notes %q", got)
	}
	for _, path := range []string{filepath.Join(dir, "*.csv"), filepath.Join(dir, "north.v2.csv")} {
		if f, err = LoadTable(perFile(path), 1, ""); err != nil || fmt.Sprint(f.Names()) != "[north]" {
			t.Errorf("%s: %v", path, err)
		}
	}
	// A participant's rows are all its own, whatever its file is called.
	if f, err = LoadTable(perFile(dir), 1, "west"); err != nil || fmt.Sprint(f.Names()) != "[west]" || f.Train[0].Len()+f.Train[0].Held.Len() != 70 {
		t.Errorf("%v", err)
	}
	for name, c := range map[string]struct {
		path string
		want string
	}{
		"two of one client": {folder(t, map[string]string{"a.csv": numbered(0, 5), "a.old.csv": numbered(0, 5)}), `the files a.csv and a.old.csv are both of the client "a"`},
		"an empty folder":   {t.TempDir(), "is a folder without a file that ends in .csv"},
		"no such file":      {filepath.Join(dir, "west*.csv"), "names no file"},
		"no pattern":        {filepath.Join(dir, "[.csv"), "is no pattern"},
		"no rows":           {folder(t, map[string]string{"a.csv": "y,f00\n"}), "no rows after the header"},
	} {
		if _, err := LoadTable(perFile(c.path), 1, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
	two := wide(folder(t, map[string]string{"a.csv": "client,y,f00\nn,1,2\nn,1,3\ns,0,4\n"}), 1)
	if _, err := LoadTable(two, 1, "west"); err == nil || !strings.Contains(err.Error(), `no rows of "west" in the column client`) {
		t.Error(err)
	}
}

// TestRowsThatAreAllHeldOut: a participant stays without rows to train on, whether a share,
// a column or a file holds them out; a simulation leaves such a client out and counts it.
func TestRowsThatAreAllHeldOut(t *testing.T) {
	dir := folder(t, map[string]string{"a/north.csv": "y,f00,part\n1,2,test\n0,3,test\n", "b/north.csv": "y,f00,part\n", "c/south.csv": "y,f00,part\n1,5,train\n"})
	share, column, file := perFile(filepath.Join(dir, "a")), perFile(filepath.Join(dir, "a")), perFile(filepath.Join(dir, "b"))
	share.TestShare = 0.999
	column.TestShare, column.Test = 0, config.TestPart{Column: "part", Value: "test"}
	file.TestShare, file.Test = 0, config.TestPart{Path: filepath.Join(dir, "a")}
	for name, d := range map[string]config.Data{"share": share, "column": column, "file": file} {
		f, err := LoadTable(d, 1, "north")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(f.Train) != 1 || f.Train[0].Len() != 0 || f.Train[0].Held.Len() != 2 {
			t.Errorf("%s: %d clients, the first with %d rows and %d held out", name, len(f.Train), f.Train[0].Len(), f.Train[0].Held.Len())
		}
		if _, err := LoadTable(d, 1, ""); err == nil || !strings.Contains(err.Error(), "no silo is left") || !strings.Contains(err.Error(), "north: 2 rows") {
			t.Errorf("%s: a simulation of nobody: %v", name, err)
		}
	}
	both := column
	both.Source.Path = filepath.Join(dir, "[ac]", "*.csv")
	f, err := LoadTable(both, 1, "")
	if err != nil || fmt.Sprint(f.Names()) != "[south]" || len(f.Report.LeftOut) != 1 {
		t.Errorf("%v; report %v", err, f)
	}
}

// TestTestParts: rows that a column or a file holds out are never trained on. Planted: a
// held-out row that trains.
func TestTestParts(t *testing.T) {
	dir := folder(t, map[string]string{"train/a.csv": numbered(0, 40), "train/b.csv": numbered(100, 40), "test/a.csv": numbered(200, 7), "test/b.csv": numbered(300, 8), "test/c.csv": numbered(400, 5)})
	d := perFile(filepath.Join(dir, "train"))
	d.TestShare, d.Test.Path, d.TrainLimit = 0, filepath.Join(dir, "test"), 30
	f, err := LoadTable(d, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Train) != 2 || f.Report.Rows != 100 {
		t.Fatalf("%d clients, %d rows", len(f.Train), f.Report.Rows)
	}
	for i, c := range f.Train {
		held, train := numbersOf(c.Held), numbersOf(&c)
		if len(held) != 7+i || held[0] != 200+100*i || len(train) != 30 || slices.Max(train) >= 100*i+40 || !slices.IsSorted(train) {
			t.Errorf("client %s trains on %v and holds out %v", c.Name, train, held)
		}
	}
	if !strings.Contains(f.Report.String(), "20 (examples above data.train_limit)") || !strings.Contains(f.Report.String(), "c: 5 rows") {
		t.Error(f.Report)
	}
	// A column.
	text := "client,split,y,f00\n"
	for i := range 100 {
		text += fmt.Sprintf("%s,%s,%d,%d\n", []string{"a", "b"}[i%2], []string{"train", " test ", "train"}[i%3], i%2, i)
	}
	d = wide(write(t, "a.csv", text), 1)
	d.Features[0].Range, d.TestShare, d.Test = []float64{0, 1000}, 0, config.TestPart{Column: "split", Value: "test"}
	if f, err = LoadTable(d, 1, ""); err != nil {
		t.Fatal(err)
	}
	for i, c := range f.Train {
		for _, id := range numbersOf(&c) {
			if id%3 == 1 || id%2 != i {
				t.Errorf("client %s trains on row %d", c.Name, id)
			}
		}
		for _, id := range numbersOf(c.Held) {
			if id%3 != 1 || id%2 != i {
				t.Errorf("client %s holds out row %d", c.Name, id)
			}
		}
	}
	// Faults of both parts are told at once.
	bad := folder(t, map[string]string{"a.csv": "y,f00\n1,x\n", "test.csv": "y,f00\n1,1\nz,1\n"})
	d = perFile(filepath.Join(bad, "a.csv"))
	d.TestShare, d.Test.Path = 0, filepath.Join(bad, "test.csv")
	_, err = LoadTable(d, 1, "a")
	var faults *Faults
	if !errors.As(err, &faults) || faults.Count != 2 || !strings.Contains(err.Error(), "test.csv, line 3, column y") {
		t.Error(err)
	}
}

// TestRowsAreHeldOutAsSilosDo: rows that are put where they belong at once are those that
// the silos would have divided themselves.
func TestRowsAreHeldOutAsSilosDo(t *testing.T) {
	text := wardHeader
	for i := range 500 {
		text += fmt.Sprintf("s%d,%d,%d,%s,%d,%d,%s\n", i%3, i%2, i%100, []string{"A", "B", "C"}[i%3], 20+i%30, i%2, []string{"f", "m", "x"}[i%3])
	}
	d := ward(write(t, "a.csv", text))
	for _, limit := range []int{0, 60} {
		d.TrainLimit, d.TestShare, d.Standardise = limit, 0.3, string(data.BySilo)
		got, err := LoadTable(d, 4, "")
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := all(reading(t, d))
		if err != nil {
			t.Fatal(err)
		}
		silos := data.Silos{All: make([]data.Client, 3), Features: 6, Classes: 2, Encoding: got.Encoding, Sensitive: []data.SensitiveColumn{{Name: "sex", Values: []string{"f", "m"}}}}
		for i := range b.Rows {
			c := &silos.All[i%3]
			c.Name, c.Features, c.Sensitive = b.Clients[i], 6, append(c.Sensitive, nil)[:1]
			c.X, c.Y, c.Sensitive[0] = append(c.X, b.X[i*6:(i+1)*6]...), append(c.Y, b.Y[i]), append(c.Sensitive[0], b.Groups[0][i])
		}
		want, err := silos.Federation(data.SiloOptions{Seed: 4, TestShare: 0.3, TrainLimit: limit, Standardise: data.BySilo})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Train, want.Train) || !reflect.DeepEqual(got.Sensitive, want.Sensitive) || !reflect.DeepEqual(got.NotCovered, want.NotCovered) {
			t.Errorf("limit %d: the rows are divided in another way", limit)
		}
	}
}

// TestWhatIsCountedStaysLocal: the counts are in the report that is printed where the data
// are, in words; as keys they are nowhere.
func TestWhatIsCountedStaysLocal(t *testing.T) {
	d := ward(write(t, "a.csv", wardHeader+"N,yes,120,C,,no,f\nN,no,-1,A,99,yes,x\nN,no,100,NA,10,1,m\nN,no,100,A,10,1,m\nN,no,10,A,10,1,m\nN,no,30,A,10,1,m\n"))
	d.TestShare = 0.5
	f, err := LoadTable(d, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	want := []data.MovedCells{{Name: "age", Clipped: 2}, {Name: "bmi", Clipped: 1, Missing: 1}, {Name: "ward", Other: 1, Missing: 1}}
	if !slices.Equal(f.Report.Columns, want) || f.Report.Missing["N"] != 2 {
		t.Errorf("%+v", f.Report)
	}
	if !strings.Contains(f.Report.String(), "note: age: 2 moved to the end of the public range") {
		t.Error(f.Report)
	}
}

// TestTablesHaveATarget: rows of a table are not their own targets.
func TestTablesHaveATarget(t *testing.T) {
	_, err := config.Resolve([]byte("data: {kind: table, target: y, task: reconstruct, features: [{name: x, type: yes/no}]}\n"), nil, data.Check)
	if err == nil || !strings.Contains(err.Error(), "data.task: is reconstruct, but a table has a target; allowed: number, yes/no, classes") {
		t.Error(err)
	}
}
