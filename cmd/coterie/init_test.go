package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// ownTable is a table of four sites with a byte-order mark, identifiers, dates, missing
// values and yes/no in several spellings. The target depends on age, ward and smoking.
func ownTable(target string) string {
	r := rand.New(rand.NewPCG(4, 4))
	var b strings.Builder
	b.WriteString("\ufeffpatient_id,site,admitted,age,bmi,ward,smoker,sex,income," + target + "\n")
	for i := range 1600 {
		age, ward, smoker := 20+70*r.Float64(), r.IntN(3), r.IntN(2)
		z := (age-55)/10 + float64(ward) - 1 + 1.5*(float64(smoker)-0.5)
		bmi := fmt.Sprintf("%.1f", 18+20*r.Float64())
		if r.IntN(12) == 0 {
			bmi = []string{"", "NA", "?"}[r.IntN(3)]
		}
		income := 1000 + r.IntN(4000)
		if i == 99 {
			income = 100_000_000
		}
		var y string
		switch target {
		case "readmitted":
			y = "no"
			if r.Float64() < 1/(1+math.Exp(-z)) {
				y = []string{"yes", "Yes", "Y"}[r.IntN(3)]
			}
		case "stage":
			y = []string{"low", "middle", "high"}[min(2, max(0, int(z+1.5+0.5*r.NormFloat64())))]
		default:
			y = fmt.Sprintf("%.2f", 10+2*z+r.NormFloat64())
		}
		fmt.Fprintf(&b, "P%06d,site-%d,2025-01-%02d,%.1f,%s,%c,%s,%s,%d,%s\n", i*13, i%4, 1+r.IntN(28), age, bmi, 'A'+ward,
			[][]string{{"no", "No", "0"}, {"yes", "Yes", "1"}}[smoker][r.IntN(3)], []string{"f", "m"}[r.IntN(2)], income, y)
	}
	return b.String()
}

// TestInitThenRun: the drafted run file trains at once, well, and claims no proof until
// nothing in it is taken from the data.
func TestInitThenRun(t *testing.T) {
	for target, c := range map[string]struct {
		task, figure string
		least        float64
	}{"readmitted": {"yes/no", "auc", 0.87}, "stage": {"classes", "auc", 0.89}, "stay": {"number", "r2", 0.93}} {
		t.Run(target, func(t *testing.T) {
			dir := t.TempDir()
			writeFiles(t, dir, map[string]string{"rows.csv": ownTable(target)})
			study := filepath.Join(dir, "study")
			found := runJSON(t, "init", filepath.Join(dir, "rows.csv"), "--client", "site", "--target", target, "--out", study)
			if found["task"] != c.task || found["directory"] != study || len(found["clients"].([]any)) != 4 {
				t.Errorf("%v", found)
			}
			run := filepath.Join(study, "run.yaml")
			result := runJSON(t, "run", run, "--out", filepath.Join(dir, "first"))
			privacy, figure := result["privacy"].(map[string]any), result["metrics"].(map[string]any)[c.figure].(map[string]any)["value"].(float64)
			if privacy["claim"] != "heuristic" || privacy["epsilon"].(float64) > 2 {
				t.Errorf("claim %v, epsilon %v; want heuristic, at most 2", privacy["claim"], privacy["epsilon"])
			}
			// Over 20 runs 0.907 (sd 0.006), 0.939 (0.008) and 0.954 (0.003): the bounds lie more than
			// five deviations below, so that fewer than one run in a million falls short by chance.
			if figure < c.least {
				t.Errorf("%s is %.3f, want at least %v", c.figure, figure, c.least)
			}
			text, err := os.ReadFile(run)
			if err != nil {
				t.Fatal(err)
			}
			before, list, _ := strings.Cut(string(text), "  not_public:")
			_, after, _ := strings.Cut(list, "\nmodel:")
			writeFiles(t, study, map[string]string{"public.yaml": before + "model:" + after})
			result = runJSON(t, "run", filepath.Join(study, "public.yaml"), "--out", filepath.Join(dir, "second"))
			if claim := result["privacy"].(map[string]any)["claim"]; claim != "proved" {
				t.Errorf("everything is said to be public, and the claim is %v, want proved", claim)
			}
		})
	}
}

// TestInitOnParquet: a file of another format, which is checked and trained on as drafted.
func TestInitOnParquet(t *testing.T) {
	type row struct {
		Site string   `parquet:"site"`
		Age  *float64 `parquet:"age,optional"`
		Ward string   `parquet:"ward"`
		Ill  bool     `parquet:"ill"`
	}
	var rows []row
	for i := range 600 {
		age := float64(20 + i%61)
		r := row{Site: fmt.Sprintf("s%d", i%3), Age: &age, Ward: []string{"A", "B"}[i/5%2], Ill: i%61 > 56}
		if i%11 == 0 {
			r.Age = nil
		}
		rows = append(rows, r)
	}
	dir := t.TempDir()
	if err := parquet.WriteFile(filepath.Join(dir, "rows.parquet"), rows); err != nil {
		t.Fatal(err)
	}
	study := filepath.Join(dir, "study")
	found := runJSON(t, "init", filepath.Join(dir, "rows.parquet"), "--client", "site", "--target", "ill", "--out", study)
	if found["task"] != "yes/no" || found["rows"] != 600.0 || len(found["clients"].([]any)) != 3 {
		t.Errorf("%v", found)
	}
	run := filepath.Join(study, "run.yaml")
	if _, errs, code := coterie(t, "data", "check", run); code != 0 {
		t.Errorf("exit %d: %s", code, errs)
	}
	text, err := os.ReadFile(run)
	if err != nil || !strings.Contains(string(text), "    # class_weights: [1, 15]  # not public") {
		t.Errorf("no weights of the rare outcome: %v\n%s", err, text)
	}
	runJSON(t, "run", run, "--out", filepath.Join(dir, "out"))
	writeFiles(t, study, map[string]string{"weighted.yaml": strings.Replace(string(text), "# class_weights", "class_weights", 1)})
	runJSON(t, "run", filepath.Join(study, "weighted.yaml"), "--out", filepath.Join(dir, "weighted"))
}

func TestInitWritesAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"rows.csv": ownTable("readmitted")})
	rows, study := filepath.Join(dir, "rows.csv"), filepath.Join(dir, "study")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{rows, "--client", "site", "--target", "readmited"}, `did you mean "readmitted"?`},
		{[]string{rows, "--target", "readmitted"}, "--client is missing"},
		{[]string{filepath.Join(dir, "nothing.csv"), "--client", "site", "--target", "y"}, "names no file"},
		{[]string{}, "accepts 1 arg"},
	} {
		_, stderr, code := coterie(t, append([]string{"init", "--out", study}, c.args...)...)
		if code == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit %d, %s; want %q", c.args, code, stderr, c.want)
		}
		if _, err := os.Stat(study); err == nil {
			t.Fatalf("%v: the folder was made", c.args)
		}
	}
	if _, stderr, code := coterie(t, "init", rows, "--client", "site", "--target", "readmitted"); code != exitUsage || !strings.Contains(stderr, "--out is missing") {
		t.Errorf("exit %d: %s", code, stderr)
	}

	out, stderr, code := coterie(t, "init", rows, "--client", "site", "--target", "readmitted", "--out", study)
	if code != 0 {
		t.Fatal(stderr)
	}
	run := filepath.Join(study, "run.yaml")
	for _, want := range []string{"they are for you", "coterie data check " + run, "coterie run " + run, "coterie predict", "patient_id", "looks like an identifier"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	var names []string
	entries, err := os.ReadDir(study)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s can be read by others: %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if want := []string{"join.yaml", "policy.yaml", "run.yaml", "serve.yaml"}; !slices.Equal(names, want) {
		t.Errorf("the folder holds %v, want %v", names, want)
	}

	writeFiles(t, study, map[string]string{"policy.yaml": "mine"})
	os.Remove(run)
	if _, stderr, code := coterie(t, "init", rows, "--client", "site", "--target", "readmitted", "--out", study); code != exitUsage || !strings.Contains(stderr, "--force") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if text, _ := os.ReadFile(filepath.Join(study, "policy.yaml")); string(text) != "mine" {
		t.Error("what was there is gone")
	}
	if _, err := os.Stat(run); err == nil {
		t.Error("run.yaml was written, and the rest was not")
	}
	if _, stderr, code := coterie(t, "init", rows, "--client", "site", "--target", "readmitted", "--out", study, "--force"); code != 0 {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if text, _ := os.ReadFile(filepath.Join(study, "policy.yaml")); string(text) == "mine" {
		t.Error("--force replaced nothing")
	}
}

func TestInitKeysAreDocumented(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"rows.csv": ownTable("stay")})
	found := runJSON(t, "init", filepath.Join(dir, "rows.csv"), "--client", "site", "--target", "stay", "--out", filepath.Join(dir, "study"))
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## `coterie init`")
	section, _, _ = strings.Cut(section, "\n## ")
	var check func(v any)
	check = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				if !strings.Contains(section, "`"+k+"`") {
					t.Errorf("%s is not documented", k)
				}
				check(x)
			}
		case []any:
			for _, x := range v {
				check(x)
			}
		}
	}
	check(found)
	if encoded, err := json.Marshal(found); err != nil || strings.Contains(string(encoded), "kind: table") {
		t.Errorf("the files' text is printed: %v", err)
	}
}

// TestInitOnPictures: client folders with class folders.
func TestInitOnPictures(t *testing.T) {
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(5, 5))
	for _, site := range []string{"north", "south"} {
		for class, name := range []string{"across", "down"} {
			folder := filepath.Join(dir, "in", site, name)
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			for i := range 30 {
				m := image.NewGray(image.Rect(0, 0, 9, 8))
				for j, at := 0, r.IntN(8); j < 8; j++ {
					m.SetGray([]int{j, at}[class], []int{at, j}[class], color.Gray{Y: 255})
				}
				file, err := os.Create(filepath.Join(folder, fmt.Sprint(i, ".png")))
				if err == nil {
					err = errors.Join(png.Encode(file, m), file.Close())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	study := filepath.Join(dir, "study")
	found := runJSON(t, "init", filepath.Join(dir, "in"), "--out", study)
	if found["kind"] != "pictures" || found["rows"] != 120.0 {
		t.Errorf("%v", found)
	}
	if out, stderr, code := coterie(t, "init", filepath.Join(dir, "in"), "--out", filepath.Join(dir, "again")); code != 0 || !strings.Contains(out, "coterie predict result --data NEW-FOLDER --out predictions.csv") || strings.Contains(out, ".csv --out") {
		t.Errorf("exit %d, %s: what comes next is\n%s", code, stderr, out)
	}
	result := runJSON(t, "run", filepath.Join(study, "run.yaml"), "--set", "algorithm.rounds=3", "--out", filepath.Join(dir, "run"))
	if claim := result["privacy"].(map[string]any)["claim"]; claim != "heuristic" {
		t.Errorf("the claim is %v", claim)
	}
}
