package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// draftedTable drafts the files of a table and checks them: its clients, and how many cells
// of every column are not what the run file says.
func draftedTable(t *testing.T, table, target string) (study, text string, checked map[string]any) {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"rows.csv": table})
	study = filepath.Join(dir, "study")
	if _, stderr, code := coterie(t, "init", filepath.Join(dir, "rows.csv"), "--client", "k", "--target", target, "--out", study); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	b, err := os.ReadFile(filepath.Join(study, "run.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return study, string(b), runJSON(t, "data", "check", filepath.Join(study, "run.yaml"))
}

// TestDecimalCommasAreDraftedAsWritten: where semicolons part cells, what is drafted as a
// class or a category is what the reader finds, and numbers are numbers.
func TestDecimalCommasAreDraftedAsWritten(t *testing.T) {
	var b strings.Builder
	b.WriteString("k;x;y\n")
	for i := range 200 {
		fmt.Fprintf(&b, "%c;%d,25;%d,5\n", 'a'+i%2, i*7%90, i/3%2)
	}
	for target, want := range map[string][]string{
		"y": {`classes: ["0,5", "1,5"]`, "range: [0, 90]"}, "x": {"target_range: [0, 90]", `values: ["0,5", "1,5"]`},
	} {
		_, text, checked := draftedTable(t, b.String(), target)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %s in\n%s", target, w, text)
			}
		}
		if columns := checked["columns"].([]any); len(columns) > 0 {
			t.Errorf("%s: the reader moves cells: %v", target, columns)
		}
	}
}

// TestTablesOfWindowsAreRefused: a table that is no UTF-8 is refused before anything is
// drafted, and by a run file that was.
func TestTablesOfWindowsAreRefused(t *testing.T) {
	table := "k,ort,y\n"
	for i := range 200 {
		table += fmt.Sprintf("%c,%s,%d\n", 'a'+i%2, []string{"Bonn", "Köln"}[i/2%2], i/3%2)
	}
	study, _, _ := draftedTable(t, table, "y")
	rows := filepath.Join(filepath.Dir(study), "rows.csv")
	if err := os.WriteFile(rows, []byte(strings.ReplaceAll(table, "ö", "\xf6")), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "line 4, column ort: byte 1 is 0xf6, so it is no text in UTF-8; save the table as UTF-8"
	again := filepath.Join(filepath.Dir(study), "again")
	for _, args := range [][]string{
		{"init", rows, "--client", "k", "--target", "y", "--out", again}, {"data", "check", filepath.Join(study, "run.yaml")},
		{"run", filepath.Join(study, "run.yaml"), "--out", filepath.Join(study, "result")},
	} {
		if _, stderr, code := coterie(t, args...); code != exitUsage || !strings.Contains(stderr, want) || !strings.Contains(stderr, "100 faults") {
			t.Errorf("%v: exit %d, %s; want %s", args, code, stderr, want)
		}
	}
	if _, err := os.Stat(again); err == nil {
		t.Error("something was drafted")
	}
}

// TestInitReadsAsRunsDo: what is drafted can be read, and what cannot be is refused at once,
// as a run refuses it.
func TestInitReadsAsRunsDo(t *testing.T) {
	for name, c := range map[string]struct{ start, row string }{
		"blank lines first":    {"\n\r\nk;x;y\n", "%c;%d;%s\n"},
		"separators in quotes": {"k,x,y,\";;;;;\"\n", "%c,%d,%s,\";\"\n"},
	} {
		table := c.start
		for i := range 200 {
			table += fmt.Sprintf(c.row, 'a'+i%2, i*7%90, []string{"no", "yes"}[i/3%2])
		}
		if _, _, checked := draftedTable(t, table, "y"); len(checked["clients"].([]any)) != 2 {
			t.Errorf("%s: %v", name, checked["clients"])
		}
	}
	dir := t.TempDir()
	for table, want := range map[string]string{"": "the file is empty", "k,x,y\na, 5, \"no\"\n": "line 2: a quote (\") stands inside a cell"} {
		writeFiles(t, dir, map[string]string{"rows.csv": table})
		if _, stderr, code := coterie(t, "init", filepath.Join(dir, "rows.csv"), "--client", "k", "--target", "y", "--out", filepath.Join(dir, "study")); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d, %s; want %s", table, code, stderr, want)
		}
	}
}
