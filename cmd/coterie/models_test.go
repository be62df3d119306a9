package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// clinicFile is a run on patients.csv, which writePatients writes.
const clinicFile = `
name: clinics
seed: 5
data:
  kind: table
  source: {path: patients.csv, client: clinic}
  target: back
  task: yes/no
  features:
    - {name: age, type: number, range: [0, 100]}
    - {name: bmi, type: number, range: [10, 50], missing: indicator}
    - {name: ward, type: category, values: [A, B, C]}
    - {name: smoker, type: yes/no}
  sensitive: [{name: sex, values: [f, m]}]
  test: {path: later.csv}
algorithm: {kind: mr-mtl, mode: sound, rounds: 20, local: {step: 0.5}}
privacy: {epsilon: 2, delta: 1.0e-5, public_size: 100}
`

// writePatients writes run.yaml, and three tables of the same clinics: patients.csv and
// later.csv with the target, new.csv without it.
func writePatients(t *testing.T, dir string) {
	t.Helper()
	src := rand.New(rand.NewPCG(7, 8))
	table := func(rows int, labelled bool) string {
		var b strings.Builder
		b.WriteString("\ufeffclinic,patient,age,bmi,ward,smoker,sex")
		if labelled {
			b.WriteString(",back")
		}
		for k, clinic := range []string{"north", "south", "west"} {
			for i := range rows {
				age, bmi, ward, smokes, sex := src.IntN(100), strconv.Itoa(15+src.IntN(30)), src.IntN(4), src.IntN(2), src.IntN(3)
				if src.IntN(10) == 0 {
					bmi = ""
				}
				fmt.Fprintf(&b, "\n%s,%s%d,%d,%s,%c,%s,%s", clinic, clinic[:1], i, age, bmi, 'A'+ward, [...]string{"no", "yes"}[smokes], [...]string{"f", "m", "x"}[sex])
				if labelled {
					p := 1 / (1 + math.Exp(-(0.05*float64(age-50) + float64(smokes) - float64(k))))
					b.WriteString(map[bool]string{true: ",yes", false: ",no"}[src.Float64() < p])
				}
			}
		}
		return b.String() + "\n"
	}
	writeFiles(t, dir, map[string]string{"run.yaml": clinicFile, "patients.csv": table(150, true), "later.csv": table(60, true), "new.csv": table(20, false)})
}

// afterModels holds what the lines of docs/models.md leave against each other.
func afterModels(w *walk) {
	t, dir := w.T, w.dir
	result := filepath.Join(dir, "result")
	// The run holds out later.csv, so that judging its models there is what the run did.
	stored := object(t, filepath.Join(result, "result.json"))
	judged := runJSON(t, "evaluate", result, "--data", filepath.Join(dir, "later.csv"), "--client-column", "clinic")
	for key, v := range judged["metrics"].(map[string]any) {
		if want := stored["metrics"].(map[string]any)[key]; fmt.Sprint(v) != fmt.Sprint(want) {
			t.Errorf("%s is %v, the run says %v", key, v, want)
		}
	}
	// Predictions of a clinic's rows are the same, whoever says whose they are.
	all, north := rowsOf(t, filepath.Join(dir, "predictions.csv")), rowsOf(t, filepath.Join(dir, "north.csv"))
	if len(all) != 61 || len(north) != 61 || all[0][0] != "patient" || all[1][4] != "client north" || all[60][4] != "client west" {
		t.Fatalf("%d and %d lines, from %q to %q", len(all), len(north), all[1], all[60])
	}
	for i := 1; i <= 20; i++ {
		if !slices.Equal(all[i][1:4], north[i][1:4]) {
			t.Errorf("row %d: %q and %q", i, all[i], north[i])
		}
	}
	if slices.Equal(all[21][1:4], north[21][1:4]) {
		t.Error("the south's rows are answered by the north's model")
	}
	if info, err := os.Stat(filepath.Join(dir, "predictions.csv")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("predictions are for their owner alone: %v (%v)", info.Mode(), err)
	}
	if file, err := os.ReadFile(filepath.Join(dir, "north.onnx")); err != nil || !bytes.Contains(file, []byte("ward")) {
		t.Errorf("the ONNX file does not know the wards (%v)", err)
	}
	fairness := runJSON(t, "audit", "fairness", result, "--attribute", "sex")["attributes"].([]any)[0].(map[string]any)
	if fairness["rows"].(float64)+fairness["no_group"].(float64) != 180 || fairness["no_group"].(float64) == 0 || fairness["clients"].(float64) != 3 || fairness["models"].(float64) != 3 {
		t.Errorf("the fairness audit judged %v rows of %v clients with %v models, and left out %v", fairness["rows"], fairness["clients"], fairness["models"], fairness["no_group"])
	}
}

func object(t *testing.T, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	var v map[string]any
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func rowsOf(t *testing.T, path string) [][]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDocumentedModelKeys holds the sections of docs/json.md against what is printed.
func TestDocumentedModelKeys(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writePatients(t, dir)
	result := filepath.Join(dir, "result")
	runJSON(t, "run", filepath.Join(dir, "run.yaml"), "--out", result)
	later := []string{"--data", filepath.Join(dir, "later.csv"), "--client-column", "clinic"}
	printed := map[string]map[string]any{
		"`model.json`":       object(t, filepath.Join(result, "model.json")),
		"`coterie predict`":  runJSON(t, append([]string{"predict", result, "--out", filepath.Join(dir, "p.csv")}, later...)...),
		"`coterie evaluate`": runJSON(t, append([]string{"evaluate", result}, later...)...),
		"`coterie export`":   runJSON(t, "export", result, "--out", filepath.Join(dir, "m.onnx")),
	}
	for section, v := range printed {
		_, rest, ok := strings.Cut(string(text), "\n## "+section+"\n")
		rest, _, _ = strings.Cut(rest, "\n## ")
		if !ok {
			t.Errorf("docs/json.md has no section %s", section)
			continue
		}
		documented := map[string]bool{}
		for _, m := range regexp.MustCompile("`([a-z0-9_]+)`").FindAllStringSubmatch(rest, -1) {
			documented[m[1]] = true
		}
		top := map[string]bool{}
		for key, x := range v {
			top[key] = true
			if list, ok := x.([]any); ok && (key == "models" || key == "clients") {
				for _, item := range list {
					for key := range item.(map[string]any) {
						top[key] = true
					}
				}
			}
			if inner, ok := x.(map[string]any); ok && (key == "encoding" || key == "shape" || key == "model") {
				for key := range inner {
					top[key] = true
				}
			}
		}
		for _, key := range slices.Sorted(maps.Keys(top)) {
			if !documented[key] {
				t.Errorf("%s prints %s, which is not documented", section, key)
			}
		}
		// Words that are values, of other sections, or of other folders than this one.
		others := []string{"number", "classes", "global", "cluster", "mean", "client", "channels", "layers", "centre", "scale", "personal_sha256", "accuracy", "mse", "captured", "init_sd", "projection", "components", "directions", "claim", "merges_sha256", "words", "windows", "bias"}
		for _, key := range slices.Sorted(maps.Keys(documented)) {
			if !top[key] && !slices.Contains(others, key) {
				t.Errorf("%s documents %s, which is not printed", section, key)
			}
		}
	}
	if about := printed["`model.json`"]; about["newcomer"] != "mean" || len(about["models"].([]any)) != 4 {
		t.Errorf("newcomers get the %v of %d models", about["newcomer"], len(about["models"].([]any)))
	}
	whole, err := os.ReadFile(filepath.Join(result, "model.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, private := range []string{"patients.csv", `"rows"`, `"kept"`, "examples"} {
		if bytes.Contains(whole, []byte(private)) {
			t.Errorf("model.json tells %q", private)
		}
	}
}

// TestPredictRefuses: nothing is left behind by what cannot be done.
func TestPredictRefuses(t *testing.T) {
	dir := t.TempDir()
	writePatients(t, dir)
	writeFiles(t, dir, map[string]string{
		"wrong.csv": "clinic,age,bmi,ward,smokr\nnorth,1,20,A,no\n",
		"late.csv":  "clinic,age,bmi,ward,smoker\n" + strings.Repeat("north,1,20,A,no\n", 5000) + "north,old,20,A,perhaps\n",
	})
	in := func(name string) string { return filepath.Join(dir, name) }
	runJSON(t, "run", in("run.yaml"), "--out", in("result"))
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no data":         {[]string{"result"}, exitUsage, "--data"},
		"both clients":    {[]string{"result", "--data", in("new.csv"), "--client", "a", "--client-column", "b"}, exitUsage, "--client-column"},
		"no model":        {[]string{"", "--data", in("new.csv")}, exitUsage, "no model.json"},
		"a wrong column":  {[]string{"result", "--data", in("wrong.csv")}, exitUsage, `(did you mean "smokr"?)`},
		"no such column":  {[]string{"result", "--data", in("new.csv"), "--client-column", "hospital"}, exitUsage, "column hospital"},
		"a fault at last": {[]string{"result", "--data", in("late.csv")}, exitUsage, "line 5002, column age"},
		"no such file":    {[]string{"result", "--data", in("nothing.csv")}, exitFailure, "nothing.csv"},
		"a cluster":       {[]string{"result", "--data", in("new.csv"), "--cluster", "0", "--client", "east"}, exitUsage, "keeps no clusters"},
	} {
		out := in("out-" + strings.ReplaceAll(name, " ", "-") + ".csv")
		args := append([]string{"predict", in(c.args[0])}, c.args[1:]...)
		_, stderr, code := coterie(t, append(args, "--out", out)...)
		_, err := os.Stat(out)
		if code != c.code || !strings.Contains(stderr, c.want) || (err == nil) != (code == 0) {
			t.Errorf("%s: exit %d, %v, %s", name, code, err, stderr)
		}
		if stdout, _, again := coterie(t, args...); again != code || code != 0 && stdout != "" {
			t.Errorf("%s: exit %d, printed %q", name, again, stdout)
		}
	}
	if _, stderr, code := coterie(t, "predict", in("result"), "--data", in("new.csv"), "--output", "json"); code != exitUsage || !strings.Contains(stderr, "--out FILE") {
		t.Errorf("JSON and predictions in one stream: exit %d, %s", code, stderr)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	for _, args := range [][]string{{"--format", "pmml", "--out", in("x")}, {}, {"--cluster", "3", "--out", in("x")}} {
		if _, stderr, code := coterie(t, append([]string{"export", in("result")}, args...)...); code != exitUsage {
			t.Errorf("export %q: exit %d, %s", args, code, stderr)
		}
	}
	// Standard output has the same predictions as a file.
	stdout, stderr, code := coterie(t, "predict", in("result"), "--data", in("new.csv"), "--client", "nobody")
	if code != 0 || strings.Count(stdout, "\n") != 61 || !strings.Contains(stderr, "60 rows: mean: nobody was not there in training") {
		t.Errorf("exit %d, %s\n%s", code, stderr, stdout)
	}
}
