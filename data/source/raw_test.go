package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRawCells(t *testing.T) {
	want := "[a b c]: [1.5 x, y ] [2 NA z]"
	for name, text := range map[string]string{
		"comma":     "a,b,c\n1.5,\"x, y\",\n 2 ,NA,z\n",
		"mark":      "\ufeffa,b,c\r\n1.5,\"x, y\",\r\n2,NA,z\r\n",
		"semicolon": "a;b;c\n1.5;x, y;\n2;NA;z\n",
		"blank":     "\n  \r\na,b,c\n\n1.5,\"x, y\",\n \t\n2,NA,z\n\n",
		"quoted":    "\"a\",\"b\",\"c\"\n\"1.5\",\"x, y\",\"\"\n2,NA,z",
		"tab":       "a\tb\tc\n1.5\tx, y\t\n2\tNA\tz\n",
		"gzip":      packed(t, "\ufeffa,b,c\n1.5,\"x, y\",\n2,NA,z\n"),
	} {
		path := filepath.Join(t.TempDir(), "north.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		err := Raw(t.Context(), config.Source{Path: path}, func(some RawRows) error {
			got = append(got, fmt.Sprint(some.Columns, ":"))
			for _, r := range some.Rows {
				got = append(got, fmt.Sprint(r))
			}
			if some.File != path || ClientOf(some.File) != "north" {
				t.Errorf("%s: the file is %s, of %s", name, some.File, ClientOf(some.File))
			}
			for text, want := range map[string]float64{"1.5": 1.5, "1,5": 1.5} {
				if v, ok := some.ParseNumber(text); (ok && v == want) != (text == "1.5" || name == "semicolon") {
					t.Errorf("%s: %s is the number %v, %v", name, text, v, ok)
				}
			}
			return nil
		})
		if text := strings.Join(got, " "); err != nil || strings.Replace(text, " :", ":", 1) != want {
			t.Errorf("%s: %s, want %s; %v", name, text, want, err)
		}
	}
}

// TestRawStreams: large files come in pieces, all of them once, and small ones, too.
func TestRawStreams(t *testing.T) {
	dir := t.TempDir()
	sizes := map[string]int{"a.csv": 0, "b.csv": 1, "c.csv": rawRows, "d.csv": 2*rawRows + 1}
	for name, n := range sizes {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x\n"+strings.Repeat("1\n", n)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, order := map[string]int{}, []string(nil)
	err := Raw(t.Context(), config.Source{Path: dir}, func(some RawRows) error {
		name, rows := filepath.Base(some.File), some.Rows
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
		if len(rows) > rawRows {
			t.Errorf("%d rows at once", len(rows))
		}
		got[name] += len(rows)
		return nil
	})
	if err != nil || fmt.Sprint(got) != fmt.Sprint(sizes) || !slices.IsSorted(order) || len(order) != 4 {
		t.Errorf("%v %v %v", got, order, err)
	}
	stop := errors.New("enough")
	if err := Raw(t.Context(), config.Source{Path: dir}, func(RawRows) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Raw(ctx, config.Source{Path: dir}, func(RawRows) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestRawParquet: a Parquet file has the cells that the same table has as text, in pieces,
// whatever its groups; a list is no column of it.
func TestRawParquet(t *testing.T) {
	read := func(path string) (out []string) {
		header := ""
		err := Raw(t.Context(), config.Source{Path: path, Client: "site"}, func(some RawRows) error {
			if len(some.Rows) > rawRows || some.File != path {
				t.Errorf("%d rows of %s at once", len(some.Rows), some.File)
			}
			header = fmt.Sprintf("%q", some.Columns)
			for _, r := range some.Rows {
				out = append(out, fmt.Sprintf("%q", r))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return append(out, header)
	}
	rows := patients(3000)
	rows[5].Sex, rows[7].Tags = " m ", []string{"a", "b"}
	want := read(write(t, "a.csv", text(rows)))
	for name, options := range map[string][]parquet.WriterOption{
		"one row group": nil, "many, odd": {parquet.MaxRowsPerRowGroup(777)}, "small pages": {parquet.PageBufferSize(500)}, "version 1 pages": {parquet.DataPageVersion(1)},
	} {
		if got := read(writeParquet(t, rows, options...)); !slices.Equal(got, want) {
			i := 0
			for i < len(got)-1 && got[i] == want[i] {
				i++
			}
			t.Errorf("%s: %d rows, want %d; the first other one is %s, want %s", name, len(got)-1, len(want)-1, got[i], want[i])
		}
	}
	if got := read(writeParquet(t, nil)); len(got) != 1 || got[0] != want[len(want)-1] {
		t.Errorf("a file without rows: %s", got)
	}
	path := writeParquet(t, rows)
	stop := errors.New("enough")
	if err := Raw(t.Context(), config.Source{Path: path}, func(RawRows) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Raw(ctx, config.Source{Path: path}, func(RawRows) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// Bytes that are cut out or changed end in an error or in other cells, never in a panic.
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	faults := 0
	for i := 4; i < len(whole); i += len(whole) / 200 {
		for _, b := range [][]byte{whole[:i], append(append(slices.Clone(whole[:i]), whole[i]^0xff), whole[i+1:]...)} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			err := Raw(t.Context(), config.Source{Path: path}, func(RawRows) error { return nil })
			if err != nil {
				faults++
				if !strings.Contains(err.Error(), path) {
					t.Errorf("%v does not name the file", err)
				}
			}
		}
	}
	if faults < 200 {
		t.Errorf("%d faults: a file that is cut off is read", faults)
	}
}

func TestRawFaults(t *testing.T) {
	for text, want := range map[string]string{"": "the file is empty: there is no line of column names", "a,b\n1\n": "line 2: 1 cells, the header has 2", "a\n\"1\n": "a quoted cell is not closed", "\x1f\x8bxx": "EOF", "PAR1xxxx": "is Parquet; let its name end in .parquet"} {
		path := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Raw(t.Context(), config.Source{Path: path}, func(RawRows) error { return nil })
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestRawReadsWhatTrainingReads: odd files are split alike by the look before a run file is
// drafted and by the run, or are refused by both in the same words.
func TestRawReadsWhatTrainingReads(t *testing.T) {
	for name, text := range map[string]string{
		"plain":                    "k,y,x\na,yes,1\nb,no,2\n",
		"blank lines first":        "\n \r\n\nk;y;x\na;yes;1,5\n",
		"separators in quotes":     "k,y,\"x;;;;\"\na,yes,1\n",
		"a blank before a quote":   "k,y,x\na, \"yes\",1\na,yes,\"1\" \n",
		"an empty cell in front":   "k\ty\tx\na\tyes\t\n\tno\t1\n",
		"a mark":                   byteOrderMark + "k,y,x\na,yes,1\n",
		"nothing":                  "",
		"blank lines alone":        " \n\n\t\n",
		"a short row":              "k,y,x\na,yes\nb,no,1\nc,no,2,3\n",
		"a quote inside":           "k,y,x\na,ye\"s,1\n",
		"an open quote":            "k,y,x\na,yes,\"1\n",
		"UTF-16":                   "\xff\xfek\x00",
		"no UTF-8":                 "k,y,x\nK\xf6ln,yes,1\nb,no,2\nb,no,\xe9\n",
		"no UTF-8 in the header":   "k,y,x,stra\xdfe\na,yes,1,b\n",
		"no UTF-8 in a wide block": "k,y,x\n" + strings.Repeat("Köln,yes,1\n", 2*blockSize/12) + "K\xf6ln,yes,1\n",
	} {
		path := write(t, "a.csv", text)
		var want [][]string
		wrong := Raw(t.Context(), config.Source{Path: path}, func(some RawRows) error {
			want = append(want, some.Rows...)
			return nil
		})
		e, err := data.NewEncoding(config.Data{Kind: "table", Target: "y", Task: "yes/no", Features: []config.Column{{Name: "k", Type: "category", Values: []config.Cell{"a", "b"}, Missing: "indicator"}}})
		if err != nil {
			t.Fatal(err)
		}
		columns := []string{"k", "y", "x"}
		if name == "separators in quotes" {
			columns[2] = "x;;;;"
		}
		r := Reading{Source: config.Source{Path: path}, Encoding: e, Keep: columns}
		got, _, err := all(&r)
		if fmt.Sprint(wrong) != fmt.Sprint(err) {
			t.Errorf("%s: before %.200v, then %.200v", name, wrong, err)
		}
		if err == nil && fmt.Sprint(got.Kept) != fmt.Sprint(want) {
			t.Errorf("%s: before %.200q, then %.200q", name, want, got.Kept)
		}
	}
}

// TestTablesAreUTF8: what Excel saves as CSV in western Europe is refused, cell by cell,
// wherever it stands, by whoever reads it first.
func TestTablesAreUTF8(t *testing.T) {
	const save = ", so it is no text in UTF-8; save the table as UTF-8"
	text := strings.ReplaceAll(wardHeader, "sex", "sex,note") + "N,yes,50,A,20,no,f,\n" + "Caf\xe9,yes,50,A,20,no,f,\n" + "N,yes,50,\xc4,20,no,\xfc\xfc,n\x00\n" + "Café,yes,50,A,20,no,f,日本\n"
	want := []string{
		"line 3, column site: byte 3 is 0xe9" + save, "line 4, column ward: byte 0 is 0xc4" + save,
		"line 4, column sex: byte 0 is 0xfc" + save, "line 4, column note: byte 1 is 0x0" + save,
	}
	for name, text := range map[string]string{"plain": text, "gzip": packed(t, text)} {
		path := write(t, "a.csv", text)
		_, _, training := all(reading(t, ward(path)))
		looking := Raw(t.Context(), config.Source{Path: path}, func(RawRows) error { return nil })
		for _, err := range []error{training, looking} {
			var faults *Faults
			if !errors.As(err, &faults) || faults.Count != len(want) {
				t.Errorf("%s: %v, want %d faults", name, err, len(want))
				continue
			}
			for i, f := range faults.First {
				if f.Error() != path+", "+want[i] {
					t.Errorf("%s: %v, want %s", name, f, want[i])
				}
			}
		}
	}
	path := write(t, "a.csv", strings.ReplaceAll(wardHeader, "sex", "sex,stra\xdfe")+"N,yes,50,A,20,no,f,\n")
	if _, _, err := all(reading(t, ward(path))); err == nil || !strings.Contains(err.Error(), "line 1, column stra\ufffde: byte 4 is 0xdf"+save) {
		t.Errorf("the header: %v", err)
	}
}
