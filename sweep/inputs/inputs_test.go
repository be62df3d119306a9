package inputs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/coterie-fl/coterie/all"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// store is an object store in memory.
type store map[string][]byte

func (s store) Put(_ context.Context, content io.ReadSeeker, name string) error {
	text, err := io.ReadAll(content)
	if err == nil && hashOf(text) != name {
		err = errors.New("another hash")
	}
	s[name] = text
	return err
}

func (s store) Get(_ context.Context, name string, to io.Writer) error {
	text, ok := s[name]
	if !ok {
		return fmt.Errorf("no %s", name)
	}
	_, err := to.Write(text)
	return err
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOwnFilesTravel: a file, a folder and a pattern arrive with what they held, under
// names that tell of nothing else; what changes on the way changes the cell's identity.
func TestOwnFilesTravel(t *testing.T) {
	here := t.TempDir()
	write(t, filepath.Join(here, "a.csv"), "a\n")
	write(t, filepath.Join(here, "wards", "n.csv"), "n\n")
	write(t, filepath.Join(here, "wards", "s.csv"), "s\n")
	write(t, filepath.Join(here, "wards", "readme.txt"), "no\n")
	s := store{}
	send := func() Sent {
		run := config.Default("synthetic", "fedavg", "paper")
		run.Name, run.Data.Source.Path, run.Data.Test.Path, run.Model.Start = "mine", filepath.Join(here, "wards", "*.csv"), filepath.Join(here, "a.csv"), filepath.Join(here, "wards")
		sent, err := (&Post{Store: s}).Send(t.Context(), run, nil)
		if err != nil {
			t.Fatal(err)
		}
		return sent
	}
	first := send()
	text, err := json.Marshal(first)
	if err != nil || strings.Contains(string(text), here) {
		t.Fatalf("the cell tells where its files lie: %s (%v)", text, err)
	}
	var arrived Sent
	if err := json.Unmarshal(text, &arrived); err != nil {
		t.Fatal(err)
	}
	c := &Cache{Folder: t.TempDir(), Store: s}
	for range 2 { // the second time they are there
		run, _, err := c.Receive(t.Context(), arrived)
		if err != nil {
			t.Fatal(err)
		}
		found, err := filepath.Glob(run.Data.Source.Path)
		if err != nil || len(found) != 2 || filepath.Base(found[1]) != "s.csv" {
			t.Errorf("the pattern %s finds %v (%v)", run.Data.Source.Path, found, err)
		}
		if one, err := os.ReadFile(run.Data.Test.Path); string(one) != "a\n" {
			t.Errorf("the file holds %q (%v)", one, err)
		}
		if all, err := os.ReadDir(run.Model.Start); len(all) != 3 {
			t.Errorf("the folder holds %v (%v)", all, err)
		}
	}
	identity := func(s Sent) string { text, _ := json.Marshal(s.Identity()); return string(text) }
	other := first
	other.Run.Name, other.Run.Run.Workers = "yours", 7
	if identity(other) != identity(first) {
		t.Error("a name, or a number of workers, makes another cell")
	}
	other.Run.Seed++
	write(t, filepath.Join(here, "a.csv"), "b\n")
	if identity(other) == identity(first) || identity(send()) == identity(first) {
		t.Error("another seed, or another table, is the same cell")
	}
}

// TestPartsOfRealData: a worker takes its own files if they are the same, fetches them if
// not, and has none where the coordinator had none.
func TestPartsOfRealData(t *testing.T) {
	mine, theirs := t.TempDir(), t.TempDir()
	write(t, filepath.Join(mine, "school", "rows.csv"), "1\n")
	write(t, filepath.Join(mine, "one.csv"), "2\n")
	s := store{}
	parts, err := (&Post{Store: s}).SendParts(t.Context(), mine, map[string]bool{"school": true, "one.csv": true, "absent": false})
	if err != nil {
		t.Fatal(err)
	}
	received := func() (string, error) {
		return (&Cache{Folder: t.TempDir(), Data: theirs, Store: s}).ReceiveParts(t.Context(), parts)
	}
	for name, text := range map[string]string{"school/rows.csv": "other\n", "absent": "there\n"} {
		write(t, filepath.Join(theirs, filepath.FromSlash(name)), text)
	}
	folder, err := received()
	if err != nil || folder == theirs {
		t.Fatalf("%s, %v", folder, err)
	}
	rows, _ := os.ReadFile(filepath.Join(folder, "school", "rows.csv"))
	one, _ := os.ReadFile(filepath.Join(folder, "one.csv"))
	if !bytes.Equal(rows, []byte("1\n")) || string(one) != "2\n" || exists(filepath.Join(folder, "absent")) {
		t.Errorf("rows %q, one %q", rows, one)
	}
	write(t, filepath.Join(theirs, "school", "rows.csv"), "1\n")
	write(t, filepath.Join(theirs, "one.csv"), "2\n")
	if folder, err = received(); err != nil || folder == theirs {
		t.Errorf("a part that was not there is taken: %s, %v", folder, err)
	}
	if err := os.Remove(filepath.Join(theirs, "absent")); err != nil {
		t.Fatal(err)
	}
	if folder, err = received(); err != nil || folder != theirs {
		t.Errorf("the same files are fetched: %s, %v", folder, err)
	}
	clear(s)
	if err := os.RemoveAll(filepath.Join(theirs, "school")); err != nil {
		t.Fatal(err)
	}
	if _, err = received(); err == nil || !strings.Contains(err.Error(), "--data or COTERIE_DATA") {
		t.Errorf("missing: %v", err)
	}
}

// TestForeignLists: a list of files cannot write outside of its folder, and a name that is
// no hash is refused.
func TestForeignLists(t *testing.T) {
	s := store{}
	list := []byte(`[{"path":"../escaped","sha256":"` + hashOf([]byte("x")) + `","bytes":1}]`)
	s[hashOf(list)], s[hashOf([]byte("x"))] = list, []byte("x")
	c := &Cache{Folder: t.TempDir(), Store: s}
	for _, path := range []string{scheme + hashOf(list) + "/escaped", scheme + "../../etc/passwd", scheme + strings.Repeat("g", 64)} {
		run := config.Default("synthetic", "fedavg", "paper")
		run.Data.Source.Path = path
		if _, _, err := c.Receive(t.Context(), Sent{Run: run}); err == nil {
			t.Errorf("%s is taken", path)
		}
	}
	if _, err := c.ReceiveParts(t.Context(), Parts{"../up": hashOf(list)}); err == nil {
		t.Error("a part outside of the folder is taken")
	}
}

// TestDatabases have no hash.
func TestDatabases(t *testing.T) {
	run := config.Default("synthetic", "fedavg", "paper")
	run.Data.Source.Database = "postgres://me@host/rows"
	if _, err := (&Post{Store: store{}}).Send(t.Context(), run, nil); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "CSV or Parquet") {
		t.Error(err)
	}
}

// TestRunsTravelWhole: every run file of the examples is the same after the way through
// JSON that cells take.
func TestRunsTravelWhole(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		run, err := config.Resolve(text, nil, data.Check)
		if err != nil {
			continue // of another kind
		}
		sent, err := json.Marshal(Sent{Run: run, Start: run.Model.Start})
		var got Sent
		if err == nil {
			err = json.Unmarshal(sent, &got)
		}
		got.Run.Model.Start = got.Start
		before, _ := run.Encode()
		after, _ := got.Run.Encode()
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s arrives as another run (%v)", file, err)
		}
	}
}
