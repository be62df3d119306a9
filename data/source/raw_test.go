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
		"semicolon": "a;b;c\n1,5;x, y;\n2;NA;z\n",
		"tab":       "a\tb\tc\n1.5\tx, y\t\n2\tNA\tz\n",
		"gzip":      packed(t, "\ufeffa,b,c\n1.5,\"x, y\",\n2,NA,z\n"),
	} {
		path := filepath.Join(t.TempDir(), "north.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		err := Raw(t.Context(), config.Source{Path: path}, func(file string, header []string, rows [][]string) error {
			got = append(got, fmt.Sprint(header, ":"))
			for _, r := range rows {
				got = append(got, fmt.Sprint(r))
			}
			if file != path || ClientOf(file) != "north" {
				t.Errorf("%s: the file is %s, of %s", name, file, ClientOf(file))
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
	err := Raw(t.Context(), config.Source{Path: dir}, func(file string, _ []string, rows [][]string) error {
		name := filepath.Base(file)
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
	if err := Raw(t.Context(), config.Source{Path: dir}, func(string, []string, [][]string) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Raw(ctx, config.Source{Path: dir}, func(string, []string, [][]string) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestRawParquet: a Parquet file has the cells that the same table has as text, in pieces,
// whatever its groups; a list is no column of it.
func TestRawParquet(t *testing.T) {
	read := func(path string) (out []string) {
		header := ""
		err := Raw(t.Context(), config.Source{Path: path, Client: "site"}, func(file string, names []string, rows [][]string) error {
			if len(rows) > rawRows || file != path {
				t.Errorf("%d rows of %s at once", len(rows), file)
			}
			header = fmt.Sprintf("%q", names)
			for _, r := range rows {
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
	if err := Raw(t.Context(), config.Source{Path: path}, func(string, []string, [][]string) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Raw(ctx, config.Source{Path: path}, func(string, []string, [][]string) error { return nil }); !errors.Is(err, context.Canceled) {
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
			err := Raw(t.Context(), config.Source{Path: path}, func(string, []string, [][]string) error { return nil })
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
	for text, want := range map[string]string{"": "no line of column names", "a,b\n1\n": "wrong number of fields", "a\n\"1\n": "extraneous or missing", "\x1f\x8bxx": "EOF", "PAR1xxxx": "is Parquet; let its name end in .parquet"} {
		path := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Raw(t.Context(), config.Source{Path: path}, func(string, []string, [][]string) error { return nil })
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
