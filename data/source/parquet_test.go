package source

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/coterie-fl/coterie/config"
)

// patient has a column of every type that is read.
type patient struct {
	Site   string   `parquet:"site,dict"`
	Ill    *bool    `parquet:"ill,optional"`
	Age    int32    `parquet:"age"`
	Ward   *string  `parquet:"ward,optional,dict"`
	BMI    *float64 `parquet:"bmi,optional,snappy"`
	Smoker bool     `parquet:"smoker"`
	Sex    string   `parquet:"sex,zstd"`
	Stay   int64    `parquet:"stay,delta"`
	Weight float32  `parquet:"weight"`
	Kind   uint32   `parquet:"kind,dict"`
	Cost   int64    `parquet:"cost,decimal(2:10)"`
	Born   int32    `parquet:"born,date"`
	Dose   *float64 `parquet:"dose,optional,dict"`
	Tags   []string `parquet:"tags,list"`
}

func patients(n int) []patient {
	r := rand.New(rand.NewPCG(5, 6))
	some := func(share float64) bool { return r.Float64() < share }
	out := make([]patient, n)
	for i := range out {
		p := &out[i]
		*p = patient{Site: fmt.Sprint("site ", r.IntN(5)), Age: int32(r.IntN(120) - 10), Smoker: some(0.3), Sex: []string{"f", "m", "x"}[r.IntN(3)],
			Stay: int64(r.IntN(90)), Weight: float32(r.IntN(400)) / 4, Kind: uint32(r.IntN(4)), Cost: int64(r.IntN(100000)) - 500, Born: int32(r.IntN(20000)) - 5000}
		if some(0.9) {
			ill := some(0.5)
			p.Ill = &ill
		}
		if some(0.8) {
			p.Ward = &[]string{"A", "B", "C"}[r.IntN(3)]
		}
		if v := 10 + 60*r.Float64(); some(0.7) {
			p.BMI = &v
		} else if some(0.3) {
			v = math.NaN()
			p.BMI = &v
		}
		if v := float64(r.IntN(7)) / 2; some(0.5) {
			p.Dose = &v
		}
	}
	return out
}

// text is the same table as CSV.
func text(rows []patient) string {
	var b strings.Builder
	b.WriteString("site,ill,age,ward,bmi,smoker,sex,stay,weight,kind,cost,born,dose\n")
	for _, p := range rows {
		ill, ward, bmi, dose := "", "", "", ""
		if p.Ill != nil {
			ill = fmt.Sprint(*p.Ill)
		}
		if p.Ward != nil {
			ward = *p.Ward
		}
		if p.BMI != nil {
			bmi = fmt.Sprint(*p.BMI)
		}
		if p.Dose != nil {
			dose = fmt.Sprint(*p.Dose)
		}
		sign, cents := "", p.Cost
		if cents < 0 {
			sign, cents = "-", -cents
		}
		born := parquetDay(p.Born)
		fmt.Fprintf(&b, "%s,%s,%d,%s,%s,%v,%s,%d,%v,%d,%s%d.%02d,%s,%s\n", p.Site, ill, p.Age, ward, bmi, p.Smoker, p.Sex, p.Stay, p.Weight, p.Kind, sign, cents/100, cents%100, born, dose)
	}
	return b.String()
}

func clinic(path string) config.Data {
	d := ward(path)
	d.TargetMissing = "leave-out"
	d.Features = append(d.Features,
		config.Column{Name: "stay", Type: "number", Range: []float64{0, 80}},
		config.Column{Name: "weight", Type: "number", Range: []float64{20, 90}},
		config.Column{Name: "kind", Type: "category", Values: []config.Cell{"0", "1", "2"}},
		config.Column{Name: "cost", Type: "number", Range: []float64{0, 900}},
		config.Column{Name: "born", Type: "category", Values: []config.Cell{"1970-01-01", "1969-12-31", "1980-02-29"}},
		config.Column{Name: "dose", Type: "number", Range: []float64{0, 3}, Missing: "indicator"})
	return d
}

func writeParquet(t testing.TB, rows []patient, options ...parquet.WriterOption) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.parquet")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[patient](file, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestParquetIsReadAsText: the same rows come out of a Parquet file, however it is laid
// out, and out of text. Planted: values of rows that are left out shift the next ones.
func TestParquetIsReadAsText(t *testing.T) {
	rows := patients(20_000)
	want, wantTally, err := all(reading(t, clinic(write(t, "a.csv", text(rows)))))
	if err != nil {
		t.Fatal(err)
	}
	if wantTally.LeftOut == 0 || wantTally.Columns["bmi"].Missing == 0 || wantTally.Columns["kind"].Other == 0 {
		t.Fatalf("the test table has too little: %+v", wantTally)
	}
	for name, options := range map[string][]parquet.WriterOption{
		"one row group":    nil,
		"many, odd":        {parquet.MaxRowsPerRowGroup(777)},
		"small pages":      {parquet.PageBufferSize(500)},
		"version 1 pages":  {parquet.DataPageVersion(1), parquet.MaxRowsPerRowGroup(5000)},
		"pages and groups": {parquet.PageBufferSize(3000), parquet.MaxRowsPerRowGroup(9999)},
	} {
		got, tally, err := all(reading(t, clinic(writeParquet(t, rows, options...))))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range want.X {
			if got.X[i] != want.X[i] {
				width := len(want.X) / want.Rows
				t.Fatalf("%s: row %d, input %d: %v; want %v", name, i/width, i%width, got.X[i], want.X[i])
			}
		}
		if fmt.Sprint(got.Y, got.Clients, got.Groups, got.Missing) != fmt.Sprint(want.Y, want.Clients, want.Groups, want.Missing) {
			t.Errorf("%s: targets, clients, groups or missing cells differ", name)
		}
		if fmt.Sprint(tally) != fmt.Sprint(wantTally) {
			t.Errorf("%s: %v; want %v", name, tally, wantTally)
		}
	}
}

func TestParquetTestColumnAndKeptText(t *testing.T) {
	rows := patients(3000)
	d := clinic("")
	d.Test = config.TestPart{Column: "kind", Value: "2"}
	for _, path := range []string{write(t, "a.csv", text(rows)), writeParquet(t, rows)} {
		d.Source.Path = path
		r := reading(t, d)
		r.Keep = []string{"born", "weight"}
		b, _, err := all(r)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, p := range rows {
			if p.Ill == nil {
				continue
			}
			if b.Held[at] != (p.Kind == 2) || b.Kept[at][0] != parquetDay(p.Born) || b.Kept[at][1] != fmt.Sprint(p.Weight) {
				t.Fatalf("%s, row %d: %v %v of %+v", path, at, b.Held[at], b.Kept[at], p)
			}
			at++
		}
	}
}

// TestParquetRowsWithoutTargets: a part of which every row is left out is no trouble.
func TestParquetRowsWithoutTargets(t *testing.T) {
	rows := patients(50)
	for i := range 40 {
		rows[i].Ill = nil
	}
	yes := true
	rows[45].Ill = &yes
	b, tally, err := all(reading(t, clinic(writeParquet(t, rows, parquet.MaxRowsPerRowGroup(20)))))
	if err != nil || b.Rows+tally.LeftOut != 50 || tally.LeftOut < 40 || b.Rows == 0 {
		t.Errorf("%v, %d rows, %d left out", err, b.Rows, tally.LeftOut)
	}
}

func TestParquetFaults(t *testing.T) {
	rows := patients(9000)
	yes := true
	for i := range rows {
		rows[i].Ill = &yes
	}
	inf := math.Inf(1)
	rows[7].Ill, rows[4100].BMI, rows[4100].Site, rows[8999].Site = nil, &inf, "", " NA"
	d := clinic(writeParquet(t, rows, parquet.MaxRowsPerRowGroup(4000)))
	d.TargetMissing = ""
	_, _, err := all(reading(t, d))
	var faults *Faults
	if !errors.As(err, &faults) || faults.Count != 4 {
		t.Fatalf("%v", err)
	}
	for i, want := range []string{"row 8, column ill: the target is missing", "row 4101, column bmi: \"+Inf\" is not a number", "row 4101, column site: the client", "row 9000, column site: the client"} {
		if !strings.Contains(faults.First[i].Error(), want) {
			t.Errorf("%v; want %s", faults.First[i], want)
		}
	}
	d.Features = append(d.Features, config.Column{Name: "tags", Type: "category", Values: []config.Cell{"a"}}, config.Column{Name: "none", Type: "yes/no"})
	if _, _, err = all(reading(t, d)); err == nil || !strings.Contains(err.Error(), "column none: is not in the header") {
		t.Error(err)
	}
	d.Features = d.Features[:len(d.Features)-1]
	if _, _, err = all(reading(t, d)); err == nil || !strings.Contains(err.Error(), "column tags: is a list or a group") {
		t.Error(err)
	}
}

// TestDamagedParquet: a file with any byte changed, or cut, is read, refused or has
// faults; it never ends the program.
func TestDamagedParquet(t *testing.T) {
	path := writeParquet(t, patients(300), parquet.MaxRowsPerRowGroup(100))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	refused := 0
	for i := range 1500 {
		bad := append([]byte{}, whole...)
		if i%5 == 0 {
			bad = bad[:r.IntN(len(bad))]
		} else {
			for range 1 + r.IntN(3) {
				bad[r.IntN(len(bad))] = byte(r.Uint32())
			}
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := all(reading(t, clinic(path))); err != nil {
			refused++
		}
	}
	if refused < 500 {
		t.Errorf("%d of 1500 damaged files were refused", refused)
	}
}

func BenchmarkReadParquet(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.parquet")
	writeWideParquet(b, path, 50_000, 50, 1<<20)
	b.SetBytes(50_000 * 50 * 8)
	for b.Loop() {
		if _, err := LoadTable(wide(path, 50), 1, ""); err != nil {
			b.Fatal(err)
		}
	}
}

func parquetDay(days int32) string {
	return time.Unix(int64(days)*86400, 0).UTC().Format(time.DateOnly)
}
