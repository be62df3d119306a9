package main

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/metrics"
)

// risksOf reads predictions of people.
func risksOf(t *testing.T, file string) (header []string, rows [][]string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all[0], all[1:]
}

// TestPredictPeople: risks of the run's own people have the average precision that the run
// has, those of the same people in a folder are the same, and those who were ill have none;
// people that are not the run's, and flags of tables, are refused, and nothing is left.
func TestPredictPeople(t *testing.T) {
	t.Setenv("COTERIE_DATA", "")
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	writeFiles(t, folder, map[string]string{
		"all.yaml":   "data: {kind: pandemic, persons: 3000, population_seed: 22}\nalgorithm: {mode: sound}\nprivacy: {epsilon: 1000}\n",
		"silos.yaml": "data: {kind: pandemic, persons: 3000, population_seed: 22, partition: region}\nalgorithm: {mode: sound, kind: fedavg}\n",
	})
	res := runJSON(t, "run", at("all.yaml"), "--out", at("run"))
	runJSON(t, "run", at("silos.yaml"), "--out", at("silos"))
	runJSON(t, "data", "generate", "population", "--persons", "3000", "--seed", "22", "--out", at("people"))

	_, stderr, code := coterie(t, "predict", at("run"), "--out", at("risks.csv"))
	if code != 0 || !strings.Contains(stderr, "for that person, or for the authority that holds the data") || !strings.Contains(stderr, "3003 persons: global") {
		t.Fatalf("%d, %s", code, stderr)
	}
	header, rows := risksOf(t, at("risks.csv"))
	if strings.Join(header, ",") != "pid,risk,infected" || len(rows) != 3003 {
		t.Fatalf("%v, %d rows", header, len(rows))
	}
	var risks []float64
	var ill []bool
	var units []uint32
	none := 0
	for i, r := range rows {
		risk, err := strconv.ParseFloat(r[1], 64)
		if err != nil || risk < 0 || risk > 1 {
			t.Fatalf("row %d: %v", i, r)
		}
		if risk == 0 {
			none++
		}
		risks, ill, units = append(risks, risk), append(ill, r[2] == "1"), append(units, uint32(i))
	}
	ranked, err := metrics.Rank(risks, ill, units, len(units))
	if err != nil {
		t.Fatal(err)
	}
	untrained := res["untrained"].(map[string]any)
	want := untrained["average_precision"].(map[string]any)["value"].(float64)
	if got := float64(ranked.AveragePrecision.Value); math.Abs(got-want) > 1e-4*want || none == 0 {
		t.Errorf("the average precision of the risks is %v, the run's %v; %d have no risk", got, want, none)
	}

	made := runJSON(t, "predict", at("run"), "--data", at("people"), "--out", at("again.csv"))
	if _, again := risksOf(t, at("again.csv")); made["rows"].(float64) != 3003 || !slices.EqualFunc(rows, again, slices.Equal) {
		t.Error("the same people in a folder have other risks")
	}
	if err := os.Remove(filepath.Join(at("people"), "disease_outcome_target.csv")); err != nil {
		t.Fatal(err)
	}
	stdout, _, _ := coterie(t, "predict", at("silos"), "--data", at("people"))
	if lines := strings.Split(stdout, "\n"); lines[0] != "pid,client,risk" || len(lines) != 3005 || !strings.Contains(stdout, ",region-9,") {
		t.Errorf("silos without a target: %q, %d lines", lines[0], len(lines))
	}

	writeFiles(t, at("run"), map[string]string{"run.yaml": strings.Replace(readFile(t, at("run/run.yaml")), "persons: 3000", "persons: 3100", 1)})
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{at("run")}, exitFailure, "are not those that it was trained on: then 3003 persons"},
		{[]string{at("run"), "--data", at("nowhere")}, exitFailure, "the folder of the population"},
		{[]string{at("run"), "--keep", "age"}, exitUsage, "leave out --database"},
		{[]string{at("silos"), "--client", "region-11"}, 0, "region-11 was not there in training"},
	} {
		out := at("refused.csv")
		_, stderr, code := coterie(t, append(append([]string{"predict"}, c.args...), "--out", out)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: %d, %s", c.args, code, stderr)
		}
		if _, err := os.Stat(out); (err == nil) != (code == 0) {
			t.Errorf("%v: exit %d, and the file of predictions: %v", c.args, code, err)
		}
	}
	if _, stderr, code := coterie(t, "evaluate", at("run"), "--data", at("people")); code == 0 || !strings.Contains(stderr, "its models are of people") {
		t.Errorf("evaluate: %d, %s", code, stderr)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
