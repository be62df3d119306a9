package data

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// gz compresses as the stored files are.
func gz(t testing.TB, raw []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// put writes a file under a folder, with the folders between.
func put(t testing.TB, folder, name string, raw []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// wantError checks that an error is there and says where and what.
func wantError(t *testing.T, name string, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s was accepted", name)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%s: the error %q does not say %q", name, err, p)
		}
	}
}

func TestTableReadsWhatSpreadsheetsWrite(t *testing.T) {
	// A space before a quote is no quoted cell in RFC 4180.
	_, err := newTable("a.csv", strings.NewReader("a, \"b\"\n"))
	wantError(t, "a quote inside a cell", err, "a.csv, line 1", "quote")
	tab, err := newTable("a.csv", strings.NewReader("\ufeffName ,\"Big, Sum\",x\r\n\"O\"\"Hara, J\",1,2\r\n\r\nB, ,3"))
	if err != nil {
		t.Fatal(err)
	}
	at, err := tab.columns("big, sum", "name")
	if err != nil || at[0] != 1 || at[1] != 0 {
		t.Fatal(at, err)
	}
	r, err := tab.next()
	if err != nil || r.cells[0] != `O"Hara, J` || r.cells[2] != "2" {
		t.Fatal(r, err)
	}
	r, err = tab.next()
	if err != nil || r.cells[0] != "B" || r.cells[1] != "" || tab.line != 4 {
		t.Fatal(r, tab.line, err)
	}
	if _, err = tab.next(); err != io.EOF {
		t.Fatal(err)
	}
}

func TestTableNamesThePlace(t *testing.T) {
	_, err := newTable("empty.csv", strings.NewReader(""))
	wantError(t, "an empty file", err, "empty.csv", "empty")
	tab, err := newTable("b.csv", strings.NewReader("a,b,b\n1,2\n1,\"2,3\n4,5,6\n4,x,NaN\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = tab.columns("a", "c", "d")
	wantError(t, "a missing column", err, "b.csv", "lacks c, d", "a, b, b")
	_, err = tab.columns("b")
	wantError(t, "a doubled column", err, "b.csv", "column b", "2 and 3")
	_, err = tab.next()
	wantError(t, "a short row", err, "b.csv, line 2", "2 cells", "3")
	_, err = tab.next()
	wantError(t, "an open quote", err, "line 3", "quote")
	r, err := tab.next()
	if err != nil || r.cells[0] != "4" || r.cells[2] != "6" {
		t.Fatalf("an open quote swallowed the next row: %v %v", r, err)
	}
	if r, err = tab.next(); err != nil {
		t.Fatal(err)
	}
	_, err = r.number(1, 0, 1)
	wantError(t, "text for a number", err, "b.csv, line 5, column b", `"x"`)
	_, err = r.number(2, 0, 1)
	wantError(t, "NaN", err, "line 5", "NaN")
	_, err = r.number(0, 0, 1)
	wantError(t, "4 of 0 to 1", err, "line 5, column a", "0 to 1")
	_, err = r.integer(1, 0, 1)
	wantError(t, "text for an integer", err, "line 5")
	_, err = r.integer(0, 0, 1)
	wantError(t, "4 of 0 to 1", err, "0 to 1")
	_, err = r.choice(0, []string{"5", "6"})
	wantError(t, "a value outside the list", err, "line 5, column a", "5, 6")
	if v, err := r.choice(0, []string{"5", "4"}); v != 1 || err != nil {
		t.Error(v, err)
	}
	_, err = newTable("long.csv", strings.NewReader("a,"+strings.Repeat("b", maxLine)))
	wantError(t, "an endless line", err, "long.csv, line 1", "longer")
}

func TestOpenDataTellsGzipByItsBytes(t *testing.T) {
	dir := t.TempDir()
	body := []byte("a,b\n" + strings.Repeat("1,2\n", 5000))
	for name, raw := range map[string][]byte{"plain.csv": body, "packed.csv.gz": gz(t, body), "packed.csv": gz(t, body)} {
		r, done, err := openData(put(t, dir, name, raw))
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, body) || done() != nil {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	_, _, err := openData(filepath.Join(dir, "nothing.csv"))
	wantError(t, "a missing file", err, "nothing.csv", "docs/data.md")
	if !errors.Is(err, os.ErrNotExist) {
		t.Error("the cause is lost")
	}
	_, _, err = openData(put(t, dir, "bad.gz", []byte{0x1f, 0x8b, 9}))
	wantError(t, "half a gzip header", err, "bad.gz")

	// Every cut of the archive is noticed, also one that ends on a whole row.
	packed := gz(t, body)
	for _, keep := range []int{11, len(packed) / 2, len(packed) - 9, len(packed) - 8, len(packed) - 1} {
		r, done, err := openData(put(t, dir, "cut.csv.gz", packed[:keep]))
		if err != nil {
			continue
		}
		tab, err := newTable("cut.csv.gz", r)
		for err == nil {
			_, err = tab.next()
		}
		if err == io.EOF || errors.As(err, new(*fault)) {
			t.Errorf("%d of %d bytes: %v", keep, len(packed), err)
		}
		done()
	}
	packed[len(packed)-6] ^= 1 // its checksum
	r, done, err := openData(put(t, dir, "flipped.csv.gz", packed))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	tab, err := newTable("flipped.csv.gz", r)
	for err == nil {
		_, err = tab.next()
	}
	if !errors.Is(err, gzip.ErrChecksum) {
		t.Errorf("a flipped bit: %v", err)
	}
}

func TestParseDollars(t *testing.T) {
	for text, want := range map[string]float64{
		"$32963.07": 32963.07, "$32,963.07": 32963.07, "5777.24": 5777.24, "$ 12": 12, "1,234,567.5": 1234567.5, "7": 7, "-3": -3,
	} {
		if v, ok := parseDollars(text); !ok || v != want {
			t.Errorf("%s is %v, %v", text, v, ok)
		}
	}
	for _, text := range []string{"", "$", "1,2", "12,34.5", ",123", "1,,234", "1234,567", "NaN", "$inf", "0x10", "1_000", "12..3", "$$1", "1e999", "1 2"} {
		if v, ok := parseDollars(text); ok {
			t.Errorf("%q is taken for %v", text, v)
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add([]byte("a,b\n1,2\n\"x,y\",3\n"))
	f.Add([]byte("\ufeffa\r\n\"\n\n\"\"\"\",\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		tab, err := newTable("f", bytes.NewReader(raw))
		if err != nil {
			return
		}
		before := tab.line
		for {
			r, err := tab.next()
			if err != nil && !errors.As(err, new(*fault)) {
				break
			}
			if err == nil && len(r.cells) != len(tab.header) {
				t.Fatalf("%d cells under %d columns", len(r.cells), len(tab.header))
			}
			if tab.line <= before {
				t.Fatal("no progress")
			}
			before = tab.line
			if err == nil {
				if v, err := r.number(0, -1, 1); err == nil && !(v >= -1 && v <= 1) {
					t.Fatalf("%v is between -1 and 1", v)
				}
			}
		}
		// No line is swallowed: all of them were counted.
		if lines := bytes.Count(raw, []byte("\n")); tab.line < lines && len(raw) < maxLine {
			t.Fatalf("%d of %d lines", tab.line, lines)
		}
	})
}

// Count is how many were left out for a reason.
func (r *LoadReport) Count(reason string) int {
	for _, o := range r.LeftOut {
		if o.Reason == reason {
			return o.Count
		}
	}
	return 0
}
