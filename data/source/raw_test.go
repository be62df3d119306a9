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

func TestRawFaults(t *testing.T) {
	for text, want := range map[string]string{"": "no line of column names", "a,b\n1\n": "wrong number of fields", "a\n\"1\n": "extraneous or missing", "\x1f\x8bxx": "EOF", "PAR1xxxx": "is Parquet"} {
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
