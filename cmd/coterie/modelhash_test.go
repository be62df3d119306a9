package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/model"
)

var rewriteHashes = flag.Bool("rewrite-hashes", false, "write testdata/model-hashes.txt anew: name every changed line in the commit")

// hashList has one line a run: the hash of its models, the example, what is set
// otherwise. Comments begin with #.
const hashList = "testdata/model-hashes.txt"

// TestModelHashesAreKept runs every line of the list. A refactoring keeps every hash;
// a change that must not is named, with its reason, in the commit and in the list. On a
// processor with other kernels the lines are run, and no hash is compared.
func TestModelHashesAreKept(t *testing.T) {
	if testing.Short() {
		t.Skip("results do not depend on the race detector")
	}
	text, err := os.ReadFile(hashList)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	seen, others := map[string]bool{}, ""
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if kernels, ok := strings.CutPrefix(line, "# kernel: "); ok && !strings.Contains(kernels, model.Kernel()) {
			others = kernels
		}
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] == "#" {
			fmt.Fprintln(&out, line)
			continue
		}
		seen[fields[1]] = true
		got := hashOf(t, fields[1], fields[2:])
		if got == "" || others != "" { // real data are missing
			got = fields[0]
		}
		if got != fields[0] && !*rewriteHashes {
			t.Errorf("%s: the models are %s", line, got)
		}
		fmt.Fprintln(&out, strings.Join(append([]string{got}, fields[1:]...), " "))
	}
	files, err := filepath.Glob(example("*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !seen[filepath.Base(file)] {
			t.Errorf("%s is not in %s", filepath.Base(file), hashList)
		}
	}
	if others != "" {
		t.Skipf("no hash is compared: the list is of the kernels %s, this processor has %s", others, model.Kernel())
	}
	if *rewriteHashes {
		if err := os.WriteFile(hashList, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// hashOf runs an example; it is empty if that needs real data and there are none.
func hashOf(t *testing.T, file string, settings []string) string {
	t.Helper()
	text, err := os.ReadFile(example(file))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("--data FOLDER")) && os.Getenv("COTERIE_DATA") == "" {
		t.Logf("%s is left out: COTERIE_DATA is not set", file)
		return ""
	}
	var args []string
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	sum, _ := runExample(t, example(file), args...)["model_sha256"].(string)
	if len(sum) != 64 {
		t.Fatalf("%s %v: the hash is %q", file, settings, sum)
	}
	return sum
}
