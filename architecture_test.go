package coterie_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const architecture = "docs/architecture.md"

var link = regexp.MustCompile(`\[([^\]]+)\]\(([^)#]+)\)`)

// TestArchitectureLinks: every file that docs/architecture.md links is there, and a link
// that is not named as its file is named as something that the file declares.
func TestArchitectureLinks(t *testing.T) {
	for _, l := range link.FindAllStringSubmatch(read(t, architecture), -1) {
		name, path := l[1], filepath.Join("docs", l[2])
		if _, err := os.Stat(path); err != nil {
			t.Errorf("[%s] links %s, which is not there", name, path)
			continue
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, name) && name != "all" && !declared(t, path)[name] {
			t.Errorf("%s declares no %s", path, name)
		}
	}
}

// declared are the names of a file's functions, methods (Type.Method) and types.
func declared(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			names[name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if ts, ok := s.(*ast.TypeSpec); ok {
					names[ts.Name.Name] = true
				}
			}
		}
	}
	return names
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// mostFiles is how many files a round may enter, from the loop to the aggregate.
const mostFiles = 8

var (
	walkSection = regexp.MustCompile(`(?s)<!-- walk: (\S+) -->(.*?)<!-- end -->`)
	walkCounts  = regexp.MustCompile(`It enters (\d+) files; below them are (\d+) files of dp and (\d+) of model and data\.`)
)

// TestWalks makes the rounds of docs/architecture.md with coverage counters: the files that
// the third round enters, up to the aggregate, are the files that the walk links.
func TestWalks(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program with coverage counters")
	}
	walks := walkSection.FindAllStringSubmatch(read(t, architecture), -1)
	if len(walks) != 2 {
		t.Fatalf("%d walks, not 2", len(walks))
	}
	program := filepath.Join(t.TempDir(), "walk")
	covered := "sim,fl/...,dp/...,model,data,testdata/walk"
	covered = module + "/" + strings.ReplaceAll(covered, ",", ","+module+"/")
	command(t, "go", "build", "-cover", "-covermode=atomic", "-coverpkg="+covered, "-o", program, "./testdata/walk")
	for _, w := range walks {
		file, text := w[1], w[2]
		if strings.Contains(file, "school") && os.Getenv("COTERIE_DATA") == "" {
			t.Logf("%s is not walked: COTERIE_DATA is not set", file)
			continue
		}
		entered := enters(t, program, file)
		var linked []string
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			if path := filepath.Clean(filepath.Join("docs", l[2])); counts(path) && !slices.Contains(linked, path) {
				linked = append(linked, path)
			}
		}
		slices.Sort(linked)
		var files []string
		below := map[string]int{}
		for _, path := range entered {
			switch top, _, _ := strings.Cut(path, "/"); {
			case counts(path):
				files = append(files, path)
			case top == "dp" || top == "model" || top == "data":
				below[top]++
			}
		}
		if !slices.Equal(files, linked) {
			t.Errorf("%s: a round enters %v, the walk links %v", file, files, linked)
		}
		if len(files) > mostFiles {
			t.Errorf("%s: a round enters %d files; at most %d are wanted", file, len(files), mostFiles)
		}
		want := []string{strconv.Itoa(len(files)), strconv.Itoa(below["dp"]), strconv.Itoa(below["model"] + below["data"])}
		if got := walkCounts.FindStringSubmatch(text); got == nil || !slices.Equal(got[1:], want) {
			t.Errorf("%s: the page says %q, counted were %v", file, got, want)
		}
	}
}

// TestFederatedWalkIsShort: the walk over the network links ten files at most, and says
// how many. It was counted by reading.
func TestFederatedWalkIsShort(t *testing.T) {
	_, text, _ := strings.Cut(read(t, architecture), "<!-- federated walk -->")
	text, _, found := strings.Cut(text, "<!-- end of federated walk -->")
	files := map[string]bool{}
	for _, l := range link.FindAllStringSubmatch(text, -1) {
		files[l[2]] = true
	}
	if says := fmt.Sprintf("It enters %d files.", len(files)); !found || len(files) > 10 || !strings.Contains(text, says) {
		t.Errorf("the walk links %d files, at most 10 are wanted, and does not say so", len(files))
	}
}

// counts says whether a file is part of a walk: what follows the aggregate is not.
func counts(path string) bool {
	return strings.HasSuffix(path, ".go") && (strings.HasPrefix(path, "fl/") || strings.HasPrefix(path, "sim/")) && path != "sim/record.go"
}

// enters are the files of which the third round of a run file entered a function, sorted.
func enters(t *testing.T, program, file string) []string {
	t.Helper()
	dir := t.TempDir()
	profile := filepath.Join(dir, "profile.txt")
	command(t, program, file, dir, "run.workers=1", "algorithm.stop.every=1000") // the judge comes after
	command(t, "go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+profile)
	files := map[string]bool{}
	for _, line := range strings.Split(read(t, profile), "\n") {
		path, rest, ok := strings.Cut(strings.TrimPrefix(line, module+"/"), ":")
		if ok && strings.HasSuffix(path, ".go") && !strings.HasSuffix(rest, " 0") {
			files[path] = true
		}
	}
	return slices.Sorted(maps.Keys(files))
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOCOVERDIR=%s", t.TempDir()))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
