package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/internal/tier"
)

// TestPicturesOfNewcomersInClusters: without labels there is no choice; class folders and
// archives with labels make one.
func TestPicturesOfNewcomersInClusters(t *testing.T) {
	dir, _ := trainedOnPictures(t, "algorithm={kind: ifca, mode: sound, rounds: 8, hypotheses: 2, local: {batch: 20, step: 0.5}}")
	result, north := filepath.Join(dir, "result"), filepath.Join(dir, "later", "north")
	about := object(t, filepath.Join(result, "model.json"))
	if about["newcomer"] != "cluster" {
		t.Fatalf("newcomers get %v", about["newcomer"])
	}
	loose, _, _ := arrays(t, filepath.Join(dir, "scans"), 10)
	if _, errs, code := coterie(t, "predict", result, "--data", loose); code != exitUsage || !strings.Contains(errs, "pictures in class folders") || !strings.Contains(errs, "--cluster") {
		t.Errorf("exit %d: %s", code, errs)
	}
	lowest, best := math.Inf(1), -1
	for k := range 2 {
		cluster := strconv.Itoa(k)
		if rows := predicted(t, result, "--data", loose, "--client", "west", "--cluster", cluster); len(rows) != 11 {
			t.Errorf("cluster %d: %d lines", k, len(rows))
		}
		by := runJSON(t, "evaluate", result, "--data", north, "--client", "west", "--cluster", cluster)
		if loss := by["metrics"].(map[string]any)["log_loss"].(map[string]any)["value"].(float64); loss < lowest {
			lowest, best = loss, k
		}
	}
	_, errs, code := coterie(t, "predict", result, "--data", north, "--client", "west")
	if want := fmt.Sprintf("74 pictures: cluster %d: of 2 clusters it fits the labelled pictures best (74 of them)", best); code != 0 || !strings.Contains(errs, want) {
		t.Errorf("exit %d: %s, want %s", code, errs, want)
	}
	judged := runJSON(t, "evaluate", result, "--data", north, "--client", "west")
	if c := judged["clients"].([]any)[0].(map[string]any); c["rows"] != 74.0 || !strings.Contains(c["why"].(string), "other examples best") {
		t.Errorf("%v", c)
	}
}

// TestExportPictures: the graph takes pictures of the public size.
func TestExportPictures(t *testing.T) {
	dir, _ := trainedOnPictures(t)
	file := filepath.Join(dir, "north.onnx")
	res := runJSON(t, "export", filepath.Join(dir, "result"), "--format", "onnx", "--client", "north", "--out", file)
	text, err := os.ReadFile(file)
	if err != nil || res["chosen"] != "client north" {
		t.Fatal(res, err)
	}
	for _, part := range []string{"Conv", "Relu", "MaxPool", "Softmax", "healthy", "pictures: rows, columns, channels; pixels from 0 to 1"} {
		if !bytes.Contains(text, []byte(part)) {
			t.Errorf("the graph has no %q", part)
		}
	}
}

// TestPythonPredictsPicturesAsGo: arrays of pixels from 0 to 1 have the answers of
// `coterie predict`, by the names of the classes.
func TestPythonPredictsPicturesAsGo(t *testing.T) {
	python := tier.PythonProgram(t)
	dir, _ := trainedOnPictures(t)
	result := filepath.Join(dir, "result")
	_, _, npz := arrays(t, filepath.Join(dir, "scans"), 50)
	want := predicted(t, result, "--data", npz, "--client", "north")[1:]
	out := runPython(t, python, "-c", `
import sys, coterie, numpy
m, x = coterie.load(sys.argv[1]), numpy.load(sys.argv[2])["x"] / 255
for p, c in zip(m.predict(x, client="north"), m.classify(x, client="north")):
    print(repr(float(p)), c)
`, result, npz)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 50 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines {
		p, class, _ := strings.Cut(line, " ")
		// Go's network is one of 32 bits.
		if math.Abs(number(t, p)-number(t, want[i][2])) > 1e-4 || class != want[i][3] {
			t.Errorf("picture %d: Python says %s, Go %q", i, line, want[i])
		}
	}
}

// TestPicturesOfAFederation: a participant's out folder answers its own pictures with its
// own model, named or not, and the server's folder has the mean of all for anybody. Both can
// be attacked.
func TestPicturesOfAFederation(t *testing.T) {
	text, err := os.ReadFile(documentedPictures(t))
	if err != nil {
		t.Fatal(err)
	}
	run := strings.NewReplacer("rounds: 40", "rounds: 2", "delta: 0.001", "delta: 0.001\n  public_size: 144\n  noise: exact").Replace(string(text))
	f := newClinics(t, run, "", "ceilings:\n  - {unit: example, relation: replace-one, claim: proved, epsilon: 8.2, delta: 0.01}\n", "north", "south")
	drawClinics(t, f.path("clinics"), 90, 5)
	f.write("run.yaml", run)
	server := f.start("serve", f.path("serve.yaml"))
	var joins []*process
	for _, name := range f.names {
		f.enrol(name)
		f.write(name+"/join.yaml", "policy: ../policy.yaml\ndata: {kind: own, run: ../run.yaml, source: {path: ../clinics/"+name+"}}\n")
		joins = append(joins, f.start("join", f.path(name, "join.yaml")))
	}
	for _, p := range joins {
		f.result(p)
	}
	f.result(server)
	later := f.path("later")
	drawClinics(t, later, 10, 8)
	for _, c := range []struct{ folder, client, model string }{
		{f.path("north", "out"), "", "client north"}, {f.path("north", "out"), "north", "client north"},
		{f.path("north", "out"), "south", "mean"}, {f.path("server"), "", "mean"}, {f.path("server"), "north", "mean"},
	} {
		args := []string{c.folder, "--data", filepath.Join(later, "north")}
		if c.client != "" {
			args = append(args, "--client", c.client)
		}
		judged := runJSON(t, append([]string{"evaluate"}, args...)...)["clients"].([]any)[0].(map[string]any)
		if rows := predicted(t, args...); len(rows) != 21 || judged["model"] != c.model || judged["rows"] != 20.0 {
			t.Errorf("%+v: %d lines, judged %v", c, len(rows), judged)
		}
	}
	for _, folder := range []string{f.path("north", "out"), f.path("server")} {
		found := runJSON(t, "audit", "membership", folder, "--members", f.path("clinics", "north"), "--non-members", filepath.Join(later, "north"), "--client", "north")
		attacks := found["attacks"].([]any)
		if found["members"] != 180.0 || found["non_members"] != 20.0 || len(attacks) < 1 {
			t.Errorf("%s: %v members, %v others, attacks %v", folder, found["members"], found["non_members"], attacks)
		}
	}
}
