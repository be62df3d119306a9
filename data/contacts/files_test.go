package contacts

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/data"
)

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func says(err error, words string) bool { return err != nil && strings.Contains(err.Error(), words) }

// written is a small population in a folder.
func written(t testing.TB, persons int) (*Population, string) {
	t.Helper()
	p := generate(t, Settings{Persons: persons, Seed: 5})
	dir := filepath.Join(t.TempDir(), "people")
	if _, err := p.Write(t.Context(), dir, Writing{}); err != nil {
		t.Fatal(err)
	}
	return p, dir
}

func sameGraph(t *testing.T, got, want *Graph) {
	t.Helper()
	g, w := reflect.ValueOf(*got), reflect.ValueOf(*want)
	for i := range g.NumField() {
		if !reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			t.Errorf("%s differs", g.Type().Field(i).Name)
		}
	}
}

// TestRoundTrip: what is written is read as the same graph, bit for bit; files are of
// several jobs and blocks.
func TestRoundTrip(t *testing.T) {
	p, dir := written(t, rowsAtOnce+600)
	got, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	sameGraph(t, got, p.Graph())
}

// TestTheChallengesFiles: packed, with a prefix and further columns, rows in any order,
// contacts either way round, homes only where people stay, no targets: the same graph.
func TestTheChallengesFiles(t *testing.T) {
	p, dir := written(t, 400)
	for _, name := range Files() {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		slices.Reverse(lines[1:])
		for i, l := range lines {
			cells := strings.Split(l, ",")
			switch {
			case name == networkFile && i > 0:
				cells[0], cells[1] = cells[1], cells[0]
			case name == householdFile:
				cells[1] = "7" // no rlid
				if i == 0 {
					cells[1] = "admin1"
				}
			case name == trainingFile && i > 0:
				cells[1] += ".0"
			}
			lines[i] = "," + strings.Join(cells, ",") // as pandas writes an index
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err = z.Write([]byte(strings.Join(lines, "\r\n")))
		if err = errors.Join(err, z.Close(), os.Remove(filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
		if name != targetFile {
			write(t, filepath.Join(dir, "va_"+name+".gz"), packed.String())
		}
	}
	got, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := *p.Graph()
	want.Target, want.ByStays = nil, true
	sameGraph(t, got, &want)
	var folder *data.Folder
	for partition, open := range map[string]int{Central: 0, ByRegion: 1} { // only there does a household's region matter
		fed, err := folder.Load(block(t, ", source: {path: "+dir+"}, partition: "+partition).Data, 1)
		if err != nil || len(fed.NotCovered) != open {
			t.Errorf("%s: homes by where people stay: not covered %v, %v", partition, fed.NotCovered, err)
		}
	}
	if got.Positive(0) || got.Figures().Target != nil {
		t.Error("targets that nobody gave")
	}

	path := filepath.Join(dir, "va_"+networkFile+".gz")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(text[:len(text)/2]))
	if _, err := Read(dir); !says(err, "unexpected EOF") || !says(err, networkFile) {
		t.Errorf("a cut archive: %v", err)
	}
}

// TestKindIsOnesOwn: where two do different things in one place, each row says what its
// person did.
func TestKindIsOnesOwn(t *testing.T) {
	dir := tiny(t, nil)
	g, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	others, hows := g.Contacts(0) // a shopper's, with the shop's worker
	if len(others) != 2 || others[1] != 2 || hows[1].Kind() != Shopping || hows[1].Seconds() != 612 {
		t.Errorf("%v %v", others, hows)
	}
	if _, hows = g.Contacts(2); hows[0].Kind() != Work {
		t.Errorf("%v", hows)
	}
	if g.Size[0] != 3 || g.Did[0] != DidShop || g.Out[0] != 50 || g.Region[0] != 9 || g.Region[2] != 0 {
		t.Errorf("%+v", g)
	}
}

// tinyFiles are three persons: two of a household, and one who works in their shop.
var tinyFiles = map[string]string{
	personFile:     "hid,pid,person_number,age,sex\n70,11,1,40,1\n70,12,2,41,2\n80,13,1,50,2\n",
	householdFile:  "hid,rlid,hh_size\n70,1000,3\n80,1001,1\n",
	residenceFile:  "rlid,longitude,latitude\n1000,-77,38\n1001,-83,37\n",
	locationFile:   "alid,longitude,latitude,work,shopping,school,other,college,religion\n5,-77,38,0,1,0,0,0,0\n",
	assignmentFile: "pid,lid,activity_type,start_time,duration\n11,1000,1,0,80000\n11,5,3,36000,600\n13,5,2,30000,28800\n",
	networkFile:    "pid1,pid2,lid,start_time,duration,activity1,activity2\n11,12,1000,0,30000,1,1\n11,13,5,36000,601,3,2\n",
	trainingFile:   "day,pid,state\n0,11,S\n0,12,I\n0,13,R\n1,11,S\n1,12,R\n1,13,R\n",
	targetFile:     "pid,infected\n11,1\n12,0\n13,0\n",
}

// tiny writes them, with other texts for some; an empty one is no file.
func tiny(t testing.TB, others map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range tinyFiles {
		if other, ok := others[name]; ok {
			text = other
		}
		if text != "" {
			write(t, filepath.Join(dir, name), text)
		}
	}
	return dir
}

// TestEveryFaultIsNamed: file, line, what is wrong and what would do.
func TestEveryFaultIsNamed(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{personFile, "11,1,40", "x,1,40", `person.csv, line 2: pid is "x"; allowed: a whole number from 0 to`},
		{personFile, ",40,", ",140,", `person.csv, line 2: age is "140"; allowed: a whole number from 0 to 120`},
		{personFile, ",40,1", ",40,0", `person.csv, line 2: sex is "0"; allowed: a whole number from 1 to 2`},
		{personFile, "70,12", "70,11", "person.csv, line 3: pid 11 stands on line 2 already"},
		{personFile, "80,13", "81,13", "person.csv, line 4: household 81 of person 13 is not in household.csv"},
		{personFile, "age", "years", "person.csv, line 1: the column age is missing; there are: hid, pid, person_number, years, sex"},
		{personFile, "41,2\n", "41\n", "person.csv, line 3: 4 cells, but the header has 5"},
		{personFile, "70,11,1,40,1\n70,12,2,41,2\n80,13,1,50,2\n", "", "person.csv: no persons"},
		{householdFile, ",3\n", ",0\n", `household.csv, line 2: hh_size is "0"; allowed: a whole number from 1 to 255`},
		{householdFile, "80,", "70,", "household.csv, line 3: hid 70 stands on line 2 already"},
		{householdFile, "1001", "1002", "household.csv, line 3: residence 1002 of household 80 is not in residence_locations.csv"},
		{householdFile, "rlid", "admin1", "household.csv, line 3: where household 80 lives is not known: give the table a column rlid"},
		{residenceFile, "-77", "-277", `residence_locations.csv, line 2: longitude is "-277"; allowed: -180 to 180 degrees`},
		{residenceFile, "37\n", "NaN\n", `residence_locations.csv, line 3: latitude is "NaN"`},
		{residenceFile, "1001", "1000", "residence_locations.csv, line 3: rlid 1000 stands on line 2 already"},
		{locationFile, "5,", ",", `activity_locations.csv, line 2: alid is ""`},
		{locationFile, "5,-77,38,0,1,0,0,0,0\n", "5,-77,38,0,1,0,0,0,0\n5,-77,38,0,1,0,0,0,0\n", "activity_locations.csv, line 3: alid 5 stands on line 2 already"},
		{assignmentFile, "13,5", "14,5", "activity_location_assignment.csv, line 4: person 14 is not in person.csv"},
		{assignmentFile, "13,5", "13,6", "activity_location_assignment.csv, line 4: place 6 is neither in residence_locations.csv nor in activity_locations.csv"},
		{assignmentFile, "5,3,", "5,8,", `line 3: activity_type is "8"; allowed: a whole number from 1 to 7`},
		{assignmentFile, "28800", "-1", `line 4: duration is "-1"; allowed: a whole number from 0 to 604800`},
		{networkFile, "11,12,", "11,11,", "population_network.csv, line 2: person 11 meets itself"},
		{networkFile, "11,13,", "11,14,", "population_network.csv, line 3: person 14 is not in person.csv"},
		{networkFile, "11,13,", "10,13,", "population_network.csv, line 3: person 10 is not in person.csv"},
		{networkFile, "601", "0", `population_network.csv, line 3: duration is "0"; allowed: a whole number from 1 to 98292`},
		{networkFile, "601", "98293", `duration is "98293"`},
		{networkFile, ",3,2", ",0,2", `line 3: activity1 is "0"`},
		{networkFile, ",3,2", ",3,9", `line 3: activity2 is "9"`},
		{trainingFile, "0,12,I", "0,12,X", `disease_outcome_training.csv, line 3: state is "X"; allowed: S, I, R`},
		{trainingFile, "0,12,I", "64,12,I", `line 3: day is "64"; allowed: a whole number from 0 to 63`},
		{trainingFile, "0,12,I", "0,14,I", "line 3: person 14 is not in person.csv"},
		{trainingFile, "0,12,I", "0,11,I", "person 11 has two rows for day 0"},
		{trainingFile, "1,13,R\n", "", "disease_outcome_training.csv: person 13 has no state on day 1; there are 2 days"},
		{trainingFile, "1,13,R", "1,13,I", "person 13 is recovered on a day and not on a later one"},
		{trainingFile, "1,12,R", "1,12,S", "person 12 is infected on a day and susceptible on a later one"},
		{trainingFile, tinyFiles[trainingFile], "day,pid,state\n", "disease_outcome_training.csv: no days"},
		{targetFile, "12,0", "12,2", `disease_outcome_target.csv, line 3: infected is "2"; allowed: a whole number from 0 to 1`},
		{targetFile, "12,0", "11,0", "disease_outcome_target.csv, line 3: person 11 has two rows"},
		{targetFile, "13,0\n", "", "disease_outcome_target.csv: person 13 is missing"},
		{targetFile, "13,0\n", "14,0\n", "disease_outcome_target.csv, line 4: person 14 is not in person.csv"},
		{networkFile, tinyFiles[networkFile], "", "population_network.csv: is missing in"},
	} {
		text := strings.Replace(tinyFiles[c.name], c.old, c.new, 1)
		if text == tinyFiles[c.name] {
			t.Fatalf("%s: %q is not there", c.name, c.old)
		}
		_, err := Read(tiny(t, map[string]string{c.name: text}))
		if !errors.Is(err, ErrFiles) || !says(err, c.want) {
			t.Errorf("%s, %q instead of %q: %v, want %q", c.name, c.new, c.old, err, c.want)
		}
	}
	dir := tiny(t, nil)
	write(t, filepath.Join(dir, "va_person.csv"), tinyFiles[personFile])
	if _, err := Read(dir); !says(err, "person.csv: there are 2 of them") {
		t.Error(err)
	}
	if _, err := Read(filepath.Join(dir, "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestFaultsAreListedTogether: those of several files at once, and of one no more than
// people read.
func TestFaultsAreListedTogether(t *testing.T) {
	var many strings.Builder
	many.WriteString(tinyFiles[networkFile])
	for range 3 * mostFaults {
		many.WriteString("1,2,3,4,5,6,7\n")
	}
	_, err := Read(tiny(t, map[string]string{networkFile: many.String(), targetFile: "pid,infected\n11,7\n12,0\n13,0\n"}))
	var faults *Faults
	if !errors.As(err, &faults) || len(faults.List) != mostFaults+1 || !slices.Equal(faults.Left, []string{networkFile}) {
		t.Fatalf("%v", err)
	}
	if first, last := faults.List[0], faults.List[mostFaults]; first.Line != 4 || first.File != networkFile || last.File != targetFile {
		t.Errorf("%v, %v", first, last)
	}
	if !says(err, "population_network.csv was left after 20 faults") {
		t.Error(err)
	}
}

// TestLongAndCutLines: lines longer than a block, and blocks that end within a line.
func TestLongAndCutLines(t *testing.T) {
	long := tinyFiles[networkFile] + strings.Repeat("1", 2*blockSize) + "\n"
	if _, err := Read(tiny(t, map[string]string{networkFile: long})); !says(err, "the line is longer than") {
		t.Error(err)
	}
	row := "11,12,1000,0,30000,1,1\n"
	rows := strings.Repeat(row, 3*blockSize/len(row))
	g, err := Read(tiny(t, map[string]string{networkFile: tinyFiles[networkFile] + rows + strings.TrimSpace(row)}))
	if err != nil {
		t.Fatal(err)
	}
	if others, _ := g.Contacts(1); len(others) != 2+3*blockSize/len(row) {
		t.Errorf("%d contacts", len(others))
	}
	bad := tinyFiles[networkFile] + rows + "11,12,1000,0,x,1,1\n"
	line := 3 + 3*blockSize/len(row) + 1
	_, err = Read(tiny(t, map[string]string{networkFile: bad}))
	var faults *Faults
	if !errors.As(err, &faults) || faults.List[0].Line != line {
		t.Errorf("%v, want line %d", err, line)
	}
}

// TestFilesDoNotDependOnWorkers, and are whole or not there.
func TestWriteWholeOrNothing(t *testing.T) {
	p := generate(t, Settings{Persons: 500, Seed: 2})
	parent := t.TempDir()
	one, five := filepath.Join(parent, "one"), filepath.Join(parent, "five")
	w, err := p.Write(t.Context(), one, Writing{Workers: 1})
	if err != nil || len(w.Files) != 8 || w.Folder != one {
		t.Fatal(w, err)
	}
	if err := os.Mkdir(five, 0o755); err != nil { // an empty folder is as good as none
		t.Fatal(err)
	}
	shares := []float64{0}
	if _, err := p.Write(t.Context(), five, Writing{Workers: 5, Progress: func(share float64, _ string) { shares = append(shares, share) }}); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(shares) || shares[len(shares)-1] != 1 {
		t.Errorf("progress %v", shares)
	}
	for i, name := range Files() {
		a, err1 := os.ReadFile(filepath.Join(one, name))
		b, err2 := os.ReadFile(filepath.Join(five, name))
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) || int64(len(a)) != w.Files[i].Bytes {
			t.Errorf("%s differs between 1 and 5 workers, or is not there: %v %v", name, err1, err2)
		}
		if header, _, _ := strings.Cut(string(a), "\n"); header != strings.Join(columnsOf[name], ",") {
			t.Errorf("%s begins with %s", name, header)
		}
	}
	if _, err := p.Write(t.Context(), one, Writing{}); !errors.Is(err, ErrFolder) {
		t.Errorf("a full folder: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = p.Write(ctx, filepath.Join(parent, "stopped"), Writing{Progress: func(share float64, _ string) {
		if share > .5 {
			cancel()
		}
	}})
	if cancel(); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	if left, _ := os.ReadDir(parent); len(left) != 2 {
		t.Errorf("what is left: %v", left)
	}
}
