package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const clinicRun = `data:
  kind: table
  source: {path: clinic.csv, client: site}
  target: ill
  task: yes/no
  features:
    - {name: age, type: number, range: [0, 100]}
    - {name: ward, type: category, values: [A, B], missing: indicator}
  test: {column: part, value: test}
privacy: {public_size: 3}
`

func writeClinic(t *testing.T, table string) (runFile string) {
	folder := t.TempDir()
	writeFiles(t, folder, map[string]string{"run.yaml": clinicRun, "clinic.csv": table})
	return filepath.Join(folder, "run.yaml")
}

func TestDataCheck(t *testing.T) {
	file := writeClinic(t, "site;ill;age;ward;part\nN;yes;50;A;train\nN;no;120;C;test\nS;1;12,5;;train\nS;no;10;B;train\nS;no;10;B;test\n")
	stdout, stderr, code := coterie(t, "data", "check", file)
	if code != 0 {
		t.Fatal(stderr)
	}
	for _, want := range []string{
		"client  rows  held out  missing cells  no  yes\n", "N       2     1         0              1   1\n", "S       3     1         1              2   1\n",
		"5 rows read, 5 kept", "note: age: 1 moved to the end of the public range", "note: ward: 1 not in the public list (other), 1 missing",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}
	var s struct {
		Kind    string
		Clients []struct {
			Name    string
			Trains  bool
			Missing *int
			Classes []struct {
				Class string
				Rows  int
			}
			Mean *float64
		}
		Columns []struct {
			Name                    string
			Clipped, Other, Missing int
		}
		Read struct{ Rows, Kept int }
	}
	stdout, stderr, _ = coterie(t, "data", "check", file, "--output", "json")
	if err := json.Unmarshal([]byte(stdout), &s); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	if c := s.Clients[1]; s.Kind != "table" || len(s.Clients) != 2 || c.Name != "S" || !c.Trains || *c.Missing != 1 || c.Classes[1].Class != "yes" || c.Classes[1].Rows != 1 || c.Mean != nil || s.Read.Rows != 5 {
		t.Errorf("%s", stdout)
	}
	if len(s.Columns) != 2 || s.Columns[0].Clipped != 1 || s.Columns[1].Other != 1 || s.Columns[1].Missing != 1 {
		t.Errorf("%s", stdout)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 2 {
		t.Errorf("files were made: %v, %v", left, err)
	}
}

func TestDataCheckListsAllFaults(t *testing.T) {
	file := writeClinic(t, "site,ill,age,ward,part\nN,yes,old,A,train\n\nN,perhaps,,C,test\n")
	for _, args := range [][]string{{"data", "check", file}, {"run", file, "--out", filepath.Join(filepath.Dir(file), "out")}} {
		_, stderr, code := coterie(t, args...)
		for _, want := range []string{"the table has 3 faults", "line 2, column age", "line 4, column ill", "line 4, column age"} {
			if code != exitUsage || !strings.Contains(stderr, want) {
				t.Errorf("%s: exit %d, %q is not in\n%s", args[0], code, want, stderr)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), "out")); err == nil {
		t.Error("a run directory was made of a faulty table")
	}
	_, stderr, code := coterie(t, "data", "check", file, "--output", "json")
	var e struct {
		Faults []struct {
			Path, Message string
			Line          int
		}
	}
	if err := json.Unmarshal([]byte(stderr), &e); err != nil || code != exitUsage || len(e.Faults) != 3 {
		t.Fatalf("exit %d, %v: %s", code, err, stderr)
	}
	if f := e.Faults[1]; f.Line != 4 || !strings.HasSuffix(f.Path, "clinic.csv") || !strings.HasPrefix(f.Message, "column ill: ") {
		t.Errorf("%+v", f)
	}
}

// TestDataCheckOfOtherKinds: drawn data have values and clients that validate.
func TestDataCheckOfOtherKinds(t *testing.T) {
	folder := t.TempDir()
	writeSchools(t, folder)
	writeFiles(t, folder, map[string]string{"drawn.yaml": "data: {kind: synthetic, users: 70, validation_users: 3}\n", "schools.yaml": "data: {kind: school, standardise: none}\nalgorithm: {kind: mr-mtl}\n"})
	stdout, stderr, code := coterie(t, "data", "check", filepath.Join(folder, "drawn.yaml"))
	if code != 0 || !strings.Contains(stdout, "mean of the target") || !strings.Contains(stdout, "and 13 more clients") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	stdout, stderr, code = coterie(t, "data", "check", filepath.Join(folder, "schools.yaml"), "--data", folder)
	if code != 0 || !strings.Contains(stdout, "school 0") || !strings.Contains(stdout, "rows read") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

func TestDataList(t *testing.T) {
	stdout, _, _ := coterie(t, "data", "list", "--output", "json")
	var list struct {
		Kinds []struct{ Name, Is, Get string }
	}
	if err := json.Unmarshal([]byte(stdout), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Kinds) < 12 {
		t.Errorf("%d kinds", len(list.Kinds))
	}
	for _, k := range list.Kinds {
		if k.Is == "" || k.Get == "" && k.Name != "synthetic" || strings.HasSuffix(k.Get, ".") {
			t.Errorf("%+v", k)
		}
	}
	if stdout, _, _ = coterie(t, "data", "list"); !strings.Contains(stdout, "adult\n  UCI Adult") || !strings.Contains(stdout, "Nothing is needed.") {
		t.Error(stdout)
	}
}
