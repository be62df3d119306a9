package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// ward is the block of a table that has all there is.
func ward(path string) config.Data {
	return config.Data{
		Kind: "table", Target: "ill", Task: "yes/no", TestShare: 0.2, Standardise: "none", Source: config.Source{Path: path, Client: "site"},
		Features: []config.Column{
			{Name: "age", Type: "number", Range: []float64{0, 100}},
			{Name: "ward", Type: "category", Values: []config.Cell{"A", "B"}, Missing: "indicator"},
			{Name: "bmi", Type: "number", Range: []float64{10, 60}, Missing: "constant", Constant: "35"},
			{Name: "smoker", Type: "yes/no"},
		},
		Sensitive: []config.Column{{Name: "sex", Values: []config.Cell{"f", "m"}}},
	}
}

const wardHeader = "site,ill,age,ward,bmi,smoker,sex\n"

func reading(t testing.TB, d config.Data) *Reading {
	t.Helper()
	e, err := data.NewEncoding(d)
	if err != nil {
		t.Fatal(err)
	}
	return &Reading{Source: d.Source, Encoding: e, LeaveOut: d.TargetMissing == "leave-out", Sensitive: d.Sensitive, Test: d.Test}
}

func write(t testing.TB, name string, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// all reads a table into one batch.
func all(r *Reading) (*Batch, Tally, error) {
	whole := &Batch{Groups: make([][]int32, len(r.Sensitive))}
	t, err := r.Each(context.Background(), func(b *Batch) error {
		whole.Rows += b.Rows
		whole.X, whole.Y = append(whole.X, b.X...), append(whole.Y, b.Y...)
		whole.Clients, whole.Held = append(whole.Clients, b.Clients...), append(whole.Held, b.Held...)
		whole.Missing, whole.Kept = append(whole.Missing, b.Missing...), append(whole.Kept, b.Kept...)
		for i := range whole.Groups {
			whole.Groups[i] = append(whole.Groups[i], b.Groups[i]...)
		}
		return nil
	})
	return whole, t, err
}

// TestRowsKeepTheirClient: over many blocks every row stays with its client, in order, and
// is either trained on or held out. Planted: a batch whose clients are those of the row
// before; a row that is held out and trained on.
func TestRowsKeepTheirClient(t *testing.T) {
	const rows, clients = 120_000, 7
	for name, cell := range map[string]string{"plain": "plain text to make lines longer", "quoted": "\"quoted, with\na line break\""} {
		var text strings.Builder
		text.WriteString("client,y,f00,note\n")
		for i := range rows {
			fmt.Fprintf(&text, "c%d,%d,%d,%s\n", i%clients, i%2, i, cell)
		}
		d := wide(write(t, "a.csv", text.String()), 1)
		d.Features[0].Range = []float64{0, rows}
		d.TestShare = 0.25
		f, err := LoadTable(d, 3, "")
		if err != nil {
			t.Fatal(err)
		}
		seen := make([]int, rows)
		for c, client := range f.Train {
			if client.Name != fmt.Sprintf("c%d", c) {
				t.Errorf("client %d is %s", c, client.Name)
			}
			for _, part := range []*data.Client{&client, client.Held} {
				last := -1
				for i, x := range part.X {
					id := int(x*rows/2 + rows/2 + 0.5)
					if id%clients != c || id <= last || int(part.Y[i]) != id%2 {
						t.Fatalf("%s: row %d of client %d has number %d after %d, target %v", name, i, c, id, last, part.Y[i])
					}
					last = id
					seen[id]++
				}
			}
			if share := float64(client.Held.Len()) * clients / rows; share < 0.22 || share > 0.28 { // 9 standard deviations
				t.Errorf("client %d holds out a share of %v", c, share)
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Fatalf("%s: row %d is there %d times", name, id, n)
			}
		}
	}
}

func TestFaultsByLine(t *testing.T) {
	text := wardHeader +
		"N,yes,50,A,20,no,f\n" + // 2
		"\n" +
		"N,maybe,old,A,20,no,f\n" + // 4: two faults
		"\"N\n\nN\",1,1,\"B\",1,y,m\n" + // 5 to 7
		"N,yes,1,A,20\n" + // 8: too few cells
		",yes,1,A,20,no,f\n" + // 9: no client
		"N,yes,,A,20,perhaps,f\n" + // 10: two faults
		"N,yes,1\",A,20,no,f\n" + // 11: a quote inside
		"N,NA,1,A,20,no,f\n" + // 12: no target
		"N,yes,1,\"A,20,no,f\n" + // 13: an open quote
		"N,yes,1,A,20,no,f"
	path := write(t, "a.csv", text)
	called := 0
	r := reading(t, ward(path))
	_, err := r.Each(context.Background(), func(*Batch) error { called++; return nil })
	var faults *Faults
	if !errors.As(err, &faults) || !errors.Is(err, ErrTable) || called > 0 {
		t.Fatalf("%v, each called %d times", err, called)
	}
	want := []string{
		"line 4, column ill: \"maybe\" is not in the public list; allowed: no, yes",
		"line 4, column age: \"old\" is not a number",
		"line 8: 5 cells, the header has 7",
		"line 9, column site: the client's name is missing",
		"line 10, column age: the value is missing",
		"line 10, column smoker: \"perhaps\" is neither yes nor no",
		"line 11: a quote (\") stands inside a cell",
		"line 12, column ill: the target is missing",
		"line 13: a quoted cell is not closed",
	}
	for i, f := range faults.First {
		if i < len(want) && !strings.HasPrefix(f.Error(), path+", "+want[i]) {
			t.Errorf("fault %d: %v; want %s", i, f, want[i])
		}
	}
	if len(faults.First) != len(want) || faults.Count != len(want) {
		t.Errorf("%d faults, %d listed, want %d:\n%v", faults.Count, len(faults.First), len(want), faults)
	}
}

// TestAllFaultsAreCounted: over blocks and files, in order, the first 50 listed.
func TestAllFaultsAreCounted(t *testing.T) {
	folder := t.TempDir()
	var a strings.Builder
	a.WriteString("client,y,f00\n")
	const rows = 400_000
	for i := range rows {
		if i%1000 == 999 {
			a.WriteString("c,1,bad\n")
		} else {
			a.WriteString("c,1,12.125\n")
		}
	}
	for name, text := range map[string]string{"a.csv": a.String(), "b.csv": "client,y,f00\nc,x,1\n", "c.csv": "y,f00\n", "d.csv": "client,y,f00\nc,1,1\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rowsSeen := 0
	_, err := reading(t, wide(folder, 1)).Each(context.Background(), func(b *Batch) error { rowsSeen += b.Rows; return nil })
	var faults *Faults
	if !errors.As(err, &faults) || faults.Count != rows/1000+2 || len(faults.First) != mostFaults {
		t.Fatalf("%v", err)
	}
	for i, f := range faults.First {
		if f.Line != 1000*(i+1)+1 || filepath.Base(f.File) != "a.csv" {
			t.Errorf("fault %d: %v", i, f)
		}
	}
	if !strings.Contains(err.Error(), "the table has 402 faults") || !strings.Contains(err.Error(), "and 352 more") || rowsSeen > 0 {
		t.Errorf("%.80s…, %d rows handed on", err, rowsSeen)
	}
}

func TestHeaderFaults(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"lacks a column":     {"site,ill,age,bmi,smoker,sex\n", "line 1, column ward: is not in the header, which has site, ill, age, bmi"},
		"has one twice":      {"age," + wardHeader, "column age: stands twice in the header (columns 1 and 4)"},
		"is empty":           {"", "the file is empty"},
		"is blank":           {"\n\r\n", "the file is empty"},
		"is UTF-16":          {"\xff\xfes\x00", "UTF-16; save it as UTF-8"},
		"is a workbook":      {"PK\x03\x04", "save it as CSV"},
		"is Parquet":         {"PAR1", "set data.source.format to parquet"},
		"has an open quote":  {"site,\"ill\n1,2\n", "the header cannot be split"},
		"has a long line":    {strings.Repeat("x", data.MaxRecord+9), "longer than 1 MiB"},
		"has many columns":   {strings.Repeat("x,", maxColumns) + "y\n", "the header has 65537 columns; allowed: at most 65536"},
		"is a cut archive":   {cutArchive(t), "unexpected EOF"},
		"has lines too long": {wardHeader + strings.Repeat("x", 3*data.MaxRecord), "line 2: the line is longer than 1 MiB"},
		"has one long line":  {wardHeader + strings.Repeat("x", data.MaxRecord+9) + "\nN,?,1,A,1,n,f\n", "line 2: the line is longer than 1 MiB"},
	} {
		_, _, err := all(reading(t, ward(write(t, "a.csv", c.text))))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a file that %s: %.300v; want %q", name, err, c.want)
		}
	}
	// Twice, but not used.
	if b, _, err := all(reading(t, ward(write(t, "a.csv", "x,x,"+wardHeader+"1,2,N,yes,50,A,20,no,f\n")))); err != nil || b.Rows != 1 {
		t.Error(err)
	}
}

func cutArchive(t *testing.T) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for range 1000 {
		fmt.Fprint(z, wardHeader+"N,yes,50,A,20,no,f\n")
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()[:b.Len()-20]
}

// TestDecimalComma: where semicolons part cells, a comma may part a number.
func TestDecimalComma(t *testing.T) {
	b, _, err := all(reading(t, ward(write(t, "a.csv", strings.ReplaceAll(wardHeader, ",", ";")+"N;yes;62,5;A;22,5;no;f\nN;yes;62.5;A;22,5;no;f\n"))))
	if err != nil || b.X[0] != 0.25 || b.X[4] != -0.5 || b.X[6] != 0.25 {
		t.Errorf("%v: %v", err, b.X)
	}
	_, _, err = all(reading(t, ward(write(t, "a.csv", strings.ReplaceAll(wardHeader, ",", ";")+"N;yes;1.234,5;A;1;no;f\nN;yes;1,234,5;A;1;no;f\n"))))
	if err == nil || !strings.Contains(err.Error(), "line 2, column age: \"1.234,5\" is not a number") || !strings.Contains(err.Error(), "line 3, column age") {
		t.Error(err)
	}
	if _, _, err = all(reading(t, ward(write(t, "a.csv", wardHeader+"N,yes,\"62,5\",A,1,no,f\n")))); err == nil {
		t.Error("a decimal comma in a table of commas was taken")
	}
}

// TestWhatIsOutsideIsMovedAndCounted. Planted: a number that is not clipped.
func TestWhatIsOutsideIsMovedAndCounted(t *testing.T) {
	b, tally, err := all(reading(t, ward(write(t, "a.csv", wardHeader+"N,yes,120,C,,no,f\nN,no,-1,A,99,yes,x\nN,no,100,NA,10,1,m\n"))))
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{1, 0, 0, 0, 0, 0, -1, 1, 0, 0, 1, 1, 1, 0, 0, 1, -1, 1}
	if !slices.Equal(b.X, want) || !slices.Equal(b.Groups[0], []int32{0, -1, 1}) || !slices.Equal(b.Missing, []int32{1, 0, 1}) {
		t.Errorf("%v %v %v", b.X, b.Groups, b.Missing)
	}
	if got := fmt.Sprint(tally.Columns); got != "map[age:2 moved to the end of the public range bmi:1 moved to the end of the public range, 1 missing ward:1 not in the public list (other), 1 missing]" {
		t.Error(got)
	}
}

// TestGroupsOfYesAndNo: no and yes are two groups, however they are written; a list of
// other words is taken as it is.
func TestGroupsOfYesAndNo(t *testing.T) {
	text := wardHeader
	for _, cell := range []string{"NO", "No", "no", "n", "0", "false", "Yes", "yes", "Y", "1", "TRUE", "", "perhaps"} {
		text += "N,yes,50,A,20,no," + cell + "\n"
	}
	for values, want := range map[[2]config.Cell][]int32{
		{"no", "yes"}: {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, -1, -1}, {"NO", "yes"}: {0, -1, -1, -1, -1, -1, -1, 1, -1, -1, -1, -1, -1},
	} {
		d := ward(write(t, "a.csv", text))
		d.Sensitive[0].Values = values[:]
		b, _, err := all(reading(t, d))
		if err != nil || !slices.Equal(b.Groups[0], want) {
			t.Errorf("%s: %v, want %v; %v", values, b.Groups, want, err)
		}
	}
}

func TestReadingStops(t *testing.T) {
	var text strings.Builder
	text.WriteString("client,y,f00\n")
	for range 900_000 {
		text.WriteString("c,1,12.125\n")
	}
	r := reading(t, wide(write(t, "a.csv", text.String()), 1))
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := r.Each(ctx, func(*Batch) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancel: %v", err)
	}
	full := errors.New("full")
	called := 0
	if _, err := r.Each(context.Background(), func(*Batch) error { called++; return full }); !errors.Is(err, full) || called != 1 {
		t.Errorf("after an error: %v, called %d times", err, called)
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// TestBatchesStayAsTheyAre while they are in use, though later blocks are parsed into what
// earlier ones have left. It looks at each again and again: a batch that is used again too
// early is seen to change, or is not, but one that is not changed is never seen to.
func TestBatchesStayAsTheyAre(t *testing.T) {
	const rows = 300_000
	var text strings.Builder
	text.WriteString("client,y,f00,note\n")
	for i := range rows {
		fmt.Fprintf(&text, "c,1,%d,a note that makes the line long enough for many blocks\n", i)
	}
	d := wide(write(t, "a.csv", text.String()), 1)
	d.Features[0].Range = []float64{0, rows}
	at, batches := 0, 0
	_, err := reading(t, d).Each(t.Context(), func(b *Batch) error {
		batches++
		for range 60 {
			for i, x := range b.X {
				if want := (float64(at+i) - rows/2) / (rows / 2); x != want {
					return fmt.Errorf("row %d is %v, not %v", at+i, x, want)
				}
			}
		}
		at += b.Rows
		return nil
	})
	if err != nil || at != rows || batches < 8 {
		t.Errorf("%v, %d rows in %d batches", err, at, batches)
	}
}

func BenchmarkReadCSV(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.csv")
	writeWide(b, path, 50_000, 50)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		if _, err := LoadTable(wide(path, 50), 1, ""); err != nil {
			b.Fatal(err)
		}
	}
}
