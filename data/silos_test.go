package data

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// someSilos have sizes of their own, a constant feature, and targets that tell a
// row from all others.
func someSilos(sizes ...int) *Silos {
	s := &Silos{Features: 3}
	id := 0.0
	for k, n := range sizes {
		rows := Rows{Features: 3}
		for i := range n {
			rows.X = append(rows.X, float64(i*i), 7, float64(k))
			rows.Y = append(rows.Y, id)
			id++
		}
		s.All = append(s.All, Client{Name: fmt.Sprintf("s %d", k), Rows: rows})
	}
	return s
}

func TestSilosHoldOutAShareOfTheirOwnRows(t *testing.T) {
	s := someSilos(2200, 1000, 0, 500)
	f, err := s.Federation(SiloOptions{Seed: 3, TestShare: 0.2, Standardise: Unscaled})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.Names(), []string{"s 0", "s 1", "s 3"}) || f.Report.Count(leftTinySilo) != 1 {
		t.Fatalf("%v; %s", f.Names(), f.Report)
	}
	seen := map[float64]bool{}
	for k, n := range []float64{2200, 1000, 500} {
		if off := (float64(f.Train[k].Held.Len()) - 0.2*n) / math.Sqrt(0.16*n); math.Abs(off) > 4.9 {
			t.Errorf("%s holds out %d of %v rows, %.1f standard deviations off", f.Train[k].Name, f.Train[k].Held.Len(), n, off)
		}
		for _, y := range slices.Concat(f.Train[k].Y, f.Train[k].Held.Y) {
			if seen[y] {
				t.Errorf("row %v is there twice", y)
			}
			seen[y] = true
		}
	}
	if len(seen) != 3700 {
		t.Errorf("%d rows of 3700", len(seen))
	}
	again, err := s.Federation(SiloOptions{Seed: 3, TestShare: 0.2, Standardise: Unscaled})
	if err != nil || !slices.Equal(again.Train[0].Y, f.Train[0].Y) {
		t.Errorf("the same seed drew %v and %v (%v)", f.Train[0].Y, again.Train[0].Y, err)
	}
	other, err := s.Federation(SiloOptions{Seed: 4, TestShare: 0.2, Standardise: Unscaled})
	if err != nil || slices.Equal(other.Train[0].Y, f.Train[0].Y) {
		t.Errorf("another seed drew the same rows (%v)", err)
	}
	if small := smallerThan(f, 1000); !slices.Equal(small, []string{"s 1", "s 3"}) {
		t.Errorf("below 1000 rows: %v", small)
	}
	if len(f.NotCovered) != 0 {
		t.Errorf("nothing was scaled, but not covered: %v", f.NotCovered)
	}
}

// TestOneRowLessChangesNoOther: what is held out and what is trained on, with every row
// taken away once. A split by shuffled places moves about a third of the others.
func TestOneRowLessChangesNoOther(t *testing.T) {
	s := someSilos(60)
	parts := func(s *Silos) (train, test map[float64]bool) {
		f, err := s.Federation(SiloOptions{Seed: 5, TestShare: 0.2, Standardise: Unscaled})
		if err != nil {
			t.Fatal(err)
		}
		train, test = map[float64]bool{}, map[float64]bool{}
		for _, y := range f.Train[0].Y {
			train[y] = true
		}
		for _, y := range f.Train[0].Held.Y {
			test[y] = true
		}
		return train, test
	}
	train, test := parts(s)
	for gone := range 60 {
		var keep []int
		for i := range 60 {
			if i != gone {
				keep = append(keep, i)
			}
		}
		less := &Silos{All: []Client{{Name: s.All[0].Name, Rows: s.All[0].Rows.pick(keep)}}, Features: s.Features}
		y := s.All[0].Rows.Y[gone]
		a, b := parts(less)
		for _, i := range keep {
			other := s.All[0].Rows.Y[i]
			if a[other] != train[other] || b[other] != test[other] {
				t.Fatalf("without row %v, row %v changes its part", y, other)
			}
		}
	}
}

// TestALimitReplacesAtMostOne: with a limit on rows, one row replaced by another
// changes at most one row that is trained on.
func TestALimitReplacesAtMostOne(t *testing.T) {
	train := func(s *Silos) map[float64]bool {
		f, err := s.Federation(SiloOptions{Seed: 5, TestShare: 0.2, TrainLimit: 20, Standardise: Unscaled})
		if err != nil || f.Train[0].Len() != 20 {
			t.Fatal(err)
		}
		out := map[float64]bool{}
		for _, y := range f.Train[0].Y {
			out[y] = true
		}
		return out
	}
	s := someSilos(60)
	before := train(s)
	for i := range 60 {
		other := someSilos(60)
		other.All[0].Rows.Y[i] += 1e6
		new := 0
		for y := range train(other) {
			if !before[y] {
				new++
			}
		}
		if new > 1 {
			t.Errorf("row %d replaced: %d rows are new", i, new)
		}
	}
}

func TestSilosAreScaledByTrainingRowsAlone(t *testing.T) {
	s := someSilos(40)
	f, err := s.Federation(SiloOptions{Seed: 1, TestShare: 0.25, Standardise: BySilo})
	if err != nil {
		t.Fatal(err)
	}
	for j, want := range []struct{ mean, variance float64 }{{0, 1}, {0, 0}, {0, 0}} {
		var sum, squares float64
		rows := f.Train[0].Rows
		for i := range rows.Len() {
			v := rows.X[3*i+j]
			sum, squares = sum+v, squares+v*v
		}
		n := float64(rows.Len())
		if math.Abs(sum/n-want.mean) > 1e-12 || math.Abs(squares/n-want.variance) > 1e-12 {
			t.Errorf("feature %d: mean %v, mean square %v, want %v", j, sum/n, squares/n, want)
		}
	}
	// A held-out row is scaled by the same constants, not by its own kind's.
	raw, err := s.Federation(SiloOptions{Seed: 1, TestShare: 0.25, Standardise: Unscaled})
	if err != nil {
		t.Fatal(err)
	}
	mean, deviation := moments(raw.Train[0].Rows)
	for i := range f.Train[0].Held.Len() {
		if got, want := f.Train[0].Held.X[3*i], (raw.Train[0].Held.X[3*i]-mean[0])/deviation[0]; math.Abs(got-want) > 1e-12 {
			t.Errorf("held-out row %d: %v, want %v", i, got, want)
		}
	}
	if len(f.NotCovered) != 1 || !strings.Contains(f.NotCovered[0], "standardisation") {
		t.Errorf("not covered: %v", f.NotCovered)
	}
	if s.All[0].Rows.X[3] != 1 {
		t.Error("the silos' own rows were changed: the next seed would scale them twice")
	}
}

// TestWhatIsKeptIsThere: what a report calls kept is what trains and what is held out.
func TestWhatIsKeptIsThere(t *testing.T) {
	s := someSilos(200, 1, 0, 60, 1)
	s.Report.Rows, s.Report.Kept = 265, 262 // 3 have no target, say
	for _, o := range []SiloOptions{{TestShare: 0.9, Standardise: Unscaled}, {TestShare: 0.2, TrainLimit: 50, Standardise: BySilo}, {TestShare: 0.9, Standardise: Unscaled, KeepEmpty: true}} {
		f, err := s.Federation(o)
		if err != nil {
			t.Fatal(err)
		}
		there := 0
		for i := range f.Train {
			there += f.Train[i].Len() + f.Train[i].Held.Len()
		}
		if f.Report.Kept != there || f.Report.Rows != 265 {
			t.Errorf("%+v: %d rows are there; %s", o, there, f.Report)
		}
	}
}

func TestPublicConstantsAreCovered(t *testing.T) {
	s := someSilos(10)
	o := SiloOptions{TestShare: 0.2, Standardise: ByPublic, Centre: []float64{1, 2, 3}, Scale: []float64{2, 2, 2}}
	f, err := s.Federation(o)
	if err != nil || len(f.NotCovered) != 0 {
		t.Fatalf("not covered: %v (%v)", f.NotCovered, err)
	}
	if f.Train[0].X[1] != 2.5 {
		t.Errorf("(7-2)/2 is %v", f.Train[0].X[1])
	}
	o.TrainLimit = 3
	if f, err = s.Federation(o); err != nil || f.Train[0].Len() != 3 || f.Train[0].Held.Len()+f.Report.Count(leftOverLimit) != 7 {
		t.Errorf("a limit of 3: %d rows and %d held out; %s (%v)", f.Train[0].Len(), f.Train[0].Held.Len(), f.Report, err)
	}
}

func TestSilosRefuse(t *testing.T) {
	s := someSilos(10)
	for name, o := range map[string]SiloOptions{
		"no test share":   {Standardise: Unscaled},
		"all held out":    {TestShare: 1, Standardise: Unscaled},
		"unknown way":     {TestShare: 0.2, Standardise: "magic"},
		"no constants":    {TestShare: 0.2, Standardise: ByPublic},
		"a scale of zero": {TestShare: 0.2, Standardise: ByPublic, Centre: make([]float64, 3), Scale: []float64{1, 0, 1}},
		"NaN":             {TestShare: 0.2, Standardise: ByPublic, Centre: []float64{0, math.NaN(), 0}, Scale: []float64{1, 1, 1}},
	} {
		if _, err := s.Federation(o); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	_, err := someSilos(0, 0).Federation(SiloOptions{TestShare: 0.2, Standardise: Unscaled})
	wantError(t, "empty silos alone", err, "no silo is left", "s 1: 0 rows")
}

// TestEmptySilosThatStay: a silo without rows to train on is left out, or stays as it is.
func TestEmptySilosThatStay(t *testing.T) {
	for _, way := range []Standardise{Unscaled, BySilo} {
		o := SiloOptions{TestShare: 0.999, Standardise: way, KeepEmpty: true}
		f, err := someSilos(3, 0).Federation(o)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Train) != 2 || f.Train[0].Len() != 0 || f.Train[0].Held.Len() != 3 || f.Train[1].Held.Len() != 0 || len(f.Report.LeftOut) != 0 {
			t.Errorf("%s: %d silos, the first with %d rows and %d held out; report %v", way, len(f.Train), f.Train[0].Len(), f.Train[0].Held.Len(), f.Report)
		}
		for _, v := range f.Train[0].Held.X {
			if math.IsNaN(v) {
				t.Errorf("%s: held-out rows are scaled by no number", way)
			}
		}
	}
}

func schoolTable(rows ...string) string {
	header := "school"
	for j := range schoolFeatures {
		header += fmt.Sprintf(",f%02d", j)
	}
	return header + ",score\n" + strings.Join(rows, "\n") + "\n"
}

func TestSchoolTablesThatAreWrong(t *testing.T) {
	features := strings.Repeat(",1", schoolFeatures)
	for name, c := range map[string]struct {
		text string
		says []string
	}{
		"score 0":        {schoolTable("0"+features+",12", "0"+features+",0"), []string{"line 3", "score", "0 is out of range"}},
		"score 71":       {schoolTable("0" + features + ",71"), []string{"line 2", "71"}},
		"a word":         {schoolTable("0" + strings.Repeat(",1", 27) + ",x,12"), []string{"line 2", "f27", "not a number"}},
		"a short row":    {schoolTable("0" + strings.Repeat(",1", 27) + ",12"), []string{"line 2", "29 cells, the header has 30"}},
		"a bad silo":     {schoolTable("-1" + features + ",12"), []string{"line 2", "school", "-1"}},
		"no score":       {"school,f00\n0,1\n", []string{"header lacks score"}},
		"only a header":  {schoolTable(), []string{"no rows"}},
		"an empty file":  {"", []string{"empty"}},
		"infinite value": {schoolTable("0,1e300" + strings.Repeat(",1", 27) + ",12"), []string{"line 2", "f00", "out of range"}},
	} {
		folder := t.TempDir()
		put(t, folder, "school/school.csv.gz", gz(t, []byte(c.text)))
		_, err := LoadSchool(folder)
		wantError(t, name, err, append(c.says, "school.csv.gz")...)
	}
	_, err := NewFolder(t.TempDir()).Load(config.Default("school", "local", "paper").Data, 1)
	wantError(t, "no data", err, `"school"`, "docs/data.md")
	_, err = (*Folder)(nil).Load(config.Default("school", "local", "paper").Data, 1)
	wantError(t, "no folder", err, "COTERIE_DATA")
}

// The counts are those of the data folder's own notes and of paper 002, B.1.
func TestRealSchool(t *testing.T) {
	folder := realData(t)
	run := config.Default("school", "mr-mtl", "paper")
	f, err := NewFolder(folder).Load(run.Data, 1)
	if err != nil {
		t.Fatal(err)
	}
	least, most, rows, held := math.MaxInt, 0, 0, 0
	for k := range f.Train {
		n := f.Train[k].Len() + f.Train[k].Held.Len()
		least, most, rows, held = min(least, n), max(most, n), rows+n, held+f.Train[k].Held.Len()
		for i, v := range f.Train[k].X {
			if math.IsNaN(v) || i%28 == 27 && v != 0 {
				t.Fatalf("%s: value %d is %v", f.Train[k].Name, i, v)
			}
		}
		if y := slices.Max(f.Train[k].Y); y > 1 || slices.Min(f.Train[k].Y) < 0 {
			t.Errorf("%s: scores reach %v", f.Train[k].Name, y)
		}
	}
	if len(f.Train) != 139 || rows != 15362 || least != 22 || most != 251 || f.Features != 28 {
		t.Errorf("%d schools of %d to %d pupils, %d in all, %d features", len(f.Train), least, most, rows, f.Features)
	}
	if held < 3073 || held > 3073+139 {
		t.Errorf("%d pupils are held out, want a fifth, rounded up in every school", held)
	}
	run = config.Default("school", "mr-mtl", "sound")
	if f, err = NewFolder(folder).Load(run.Data, 1); err != nil || len(f.NotCovered) != 0 {
		t.Fatalf("public constants: not covered %v (%v)", f.NotCovered, err)
	}
	for k := range f.Train {
		for _, v := range f.Train[k].X {
			if v < -1 || v > 1 {
				t.Fatalf("%s: the documented ranges leave a value at %v", f.Train[k].Name, v)
			}
		}
	}
}

func TestRealSchoolIsTheAuthorsFile(t *testing.T) {
	folder := realData(t)
	table, err := LoadSchool(folder)
	if err != nil {
		t.Fatal(err)
	}
	cells, err := loadCells(folder+"/school/school.mat", cellLayout{silo: "school", features: schoolFeatures, value: schoolValue})
	if err != nil {
		t.Fatal(err)
	}
	if len(cells.All) != len(table.All) {
		t.Fatalf("%d and %d schools", len(cells.All), len(table.All))
	}
	for k, s := range cells.All {
		if !slices.Equal(s.Rows.X, table.All[k].Rows.X) || !slices.Equal(s.Rows.Y, table.All[k].Rows.Y) || s.Name != table.All[k].Name {
			t.Fatalf("%s differs from %s", s.Name, table.All[k].Name)
		}
	}
}

func TestRealVehicle(t *testing.T) {
	run := config.Default("vehicle", "local", "paper")
	f, err := NewFolder(realData(t)).Load(run.Data, 1)
	if err != nil {
		t.Fatal(err)
	}
	rows, ones := 0, 0.0
	for k := range f.Train {
		for _, y := range slices.Concat(f.Train[k].Y, f.Train[k].Held.Y) {
			rows++
			ones += y
		}
	}
	if len(f.Train) != 23 || rows != 1860 || ones != 1023 || f.Features != 100 || f.Classes != 2 {
		t.Errorf("%d sensors, %d rows, %v of label 1, %d features", len(f.Train), rows, ones, f.Features)
	}
	// With a quarter held out the 5 sensors of 130, 147, 156, 388 and 534 rows have one
	// batch of 64; the next one, of 84, just so with this seed.
	if small := smallerThan(f, 64); len(small) != 17 {
		t.Errorf("%d sensors hold less than a batch of 64: %v", len(small), small)
	}
	if len(f.NotCovered) != 2 {
		t.Errorf("not covered: %v", f.NotCovered)
	}
}

// smallerThan names the training clients that hold fewer than n examples.
func smallerThan(f *Federation, n int) []string {
	var names []string
	for i := range f.Train {
		if f.Train[i].Len() < n {
			names = append(names, f.Train[i].Name)
		}
	}
	return names
}

// TestSilosWithTestParts: who has a test part is judged on all of it and trains on all the
// rest; it is scaled by what trains, and what was read stays as it is. The others hold out
// a share, which they must be given.
func TestSilosWithTestParts(t *testing.T) {
	rows := func(x ...float64) Rows { return Rows{X: x, Y: make([]float64, len(x)), Features: 1} }
	s := &Silos{Features: 1, All: []Client{{Name: "north", Rows: rows(1, 3), Held: &Client{Name: "north", Rows: rows(5, 2)}}}}
	for range 2 {
		f, err := s.Federation(SiloOptions{Seed: 1, Standardise: BySilo})
		if err != nil {
			t.Fatal(err)
		}
		c := f.Train[0]
		if !slices.Equal(c.X, []float64{-1, 1}) || !slices.Equal(c.Held.X, []float64{3, 0}) || c.Held.Name != "north" {
			t.Errorf("trains on %v, is judged on %v", c.X, c.Held.X)
		}
	}
	s.All = append(s.All, Client{Name: "south", Rows: rows(1, 2, 3, 4, 5, 6, 7, 8)})
	if _, err := s.Federation(SiloOptions{Seed: 1, Standardise: Unscaled}); err == nil {
		t.Error("a silo without a test part and without a share was accepted")
	}
	f, err := s.Federation(SiloOptions{Seed: 1, TestShare: 0.5, Standardise: Unscaled})
	if err != nil {
		t.Fatal(err)
	}
	if south := f.Train[1]; south.Held.Len() == 0 || south.Len()+south.Held.Len() != 8 || f.Train[0].Len() != 2 {
		t.Errorf("south trains on %d and is judged on %d", south.Len(), south.Held.Len())
	}
}
