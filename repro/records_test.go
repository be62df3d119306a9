package repro

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

var rewrite = flag.Bool("rewrite", false, "write docs/reproduction.md's table and docs/reproduction.svg anew from records/")

// committed are the records of the last runs that are kept, in the order of the list.
func committed(t *testing.T) (records []study.Record) {
	t.Helper()
	paths, err := filepath.Glob("records/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no records: %v", err)
	}
	for _, path := range paths {
		r, err := study.ReadRecord(path)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(path) != r.ID+".json" {
			t.Errorf("%s is of %s", path, r.ID)
		}
		if !aCommit.MatchString(r.Version) {
			t.Errorf("%s is of the program %q, which names no commit: build it from a clean checkout with go build -buildvcs=true", path, r.Version)
		}
		records = append(records, r)
	}
	place := func(r study.Record) int {
		return slices.IndexFunc(List(), func(e lab.Experiment) bool { return e.ID == r.ID })
	}
	for _, r := range records {
		if place(r) < 0 {
			t.Errorf("there is no study %s any more: take its record out", r.ID)
		}
	}
	slices.SortFunc(records, func(a, b study.Record) int { return place(a) - place(b) })
	return records
}

// aCommit is what records have as their program, without a mark of changed files.
var aCommit = regexp.MustCompile(`^[0-9a-f]{7}$`)

// TestReproductionPage holds docs/reproduction.md and its picture against the committed
// records: the table, and that studies without a record are named as such.
func TestReproductionPage(t *testing.T) {
	const page, picture, from, to = "../docs/reproduction.md", "../docs/reproduction.svg", "<!-- studies: made by go test ./repro -run TestReproductionPage -rewrite -->\n", "<!-- end -->\n"
	records := committed(t)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), from)
	_, after, too := strings.Cut(rest, to)
	if !ok || !too {
		t.Fatalf("%s has no place for the table", page)
	}
	table := study.Markdown(records)
	var missing []string
	for _, e := range List() {
		if !slices.ContainsFunc(records, func(r study.Record) bool { return r.ID == e.ID }) {
			missing = append(missing, "`"+e.ID+"`")
		}
	}
	if len(missing) > 0 {
		table += "\nWithout a committed run: " + strings.Join(missing, ", ") + ".\n"
	}
	want, drawing := before+from+"\n"+table+"\n"+to+after, study.Drawing(records)
	if *rewrite {
		for path, content := range map[string]string{page: want, picture: drawing} {
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s does not say what the records say: go test ./repro -run TestReproductionPage -rewrite", page)
	}
	if drawn, err := os.ReadFile(picture); err != nil || string(drawn) != drawing {
		t.Errorf("%s is not drawn of the records: go test ./repro -run TestReproductionPage -rewrite (%v)", picture, err)
	}
}
