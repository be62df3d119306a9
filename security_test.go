package coterie_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	linkTo   = regexp.MustCompile(`\]\(([^)#]+)\)`)
	inCode   = regexp.MustCompile("`([^`]+)`")
	testName = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// TestSecurityTableIsTrue: every file, folder and test that SECURITY.md stands on is
// there.
func TestSecurityTableIsTrue(t *testing.T) {
	text, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range securityFaults(string(text)) {
		t.Error(fault)
	}
	// The check can fail: each of these is a false table.
	for name, change := range map[string][2]string{
		"a lost proof":              {"docs/proofs/filters.md", "docs/proofs/filter.md"},
		"a lost file":               {"`ledger/witness.go`", "`ledger/witnesses.go`"},
		"a lost test":               {"`TestKilledProcess`", "`TestKilledProcesses`"},
		"a test of another package": {"federation/participant `TestServersNoiseMustBeNamed`", "ledger `TestServersNoiseMustBeNamed`"},
		"no test":                   {"| ledger `TestLedgersWrittenBefore` |", "| |"},
	} {
		wrong := strings.Replace(string(text), change[0], change[1], 1)
		if wrong == string(text) || len(securityFaults(wrong)) == 0 {
			t.Errorf("%s goes unnoticed", name)
		}
	}
}

func securityFaults(text string) (faults []string) {
	for _, link := range linkTo.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(link[1]); err != nil && !strings.Contains(link[1], "://") {
			faults = append(faults, "SECURITY.md links to "+link[1]+", which is not there")
		}
	}
	rows := 0
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || strings.HasPrefix(line, "| claim |") || strings.HasPrefix(line, "| --- |") {
			continue
		}
		rows++
		claim := strings.TrimSpace(cells[1])
		for _, path := range inCode.FindAllStringSubmatch(cells[3], -1) {
			if _, err := os.Stat(path[1]); err != nil {
				faults = append(faults, claim+": there is no "+path[1])
			}
		}
		named := 0
		for _, part := range strings.Split(cells[4], ";") {
			folder, _, _ := strings.Cut(strings.TrimSpace(part), " ")
			for _, name := range inCode.FindAllStringSubmatch(part, -1) {
				named++
				if !hasTest(folder, name[1]) {
					faults = append(faults, claim+": there is no test "+name[1]+" in "+folder)
				}
			}
		}
		if named == 0 || !inCode.MatchString(cells[3]) || strings.TrimSpace(cells[5]) == "" {
			faults = append(faults, claim+": the row lacks code, tests or what would falsify it")
		}
	}
	if rows < 10 {
		faults = append(faults, "SECURITY.md has no table of claims")
	}
	return faults
}

// hasTest says whether a package has a test of this name; a name may end in *.
func hasTest(folder, name string) bool {
	files, _ := filepath.Glob(filepath.Join(folder, "*_test.go"))
	prefix, many := strings.CutSuffix(name, "*")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		for _, found := range testName.FindAllSubmatch(text, -1) {
			if string(found[1]) == name || many && strings.HasPrefix(string(found[1]), prefix) {
				return true
			}
		}
	}
	return false
}
