package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// trainedOnPictures trains the run file of docs/data.md, for fewer rounds, and judges it
// on later pictures: folders of clinics, later and result lie in what it returns.
func trainedOnPictures(t *testing.T, set ...string) (dir string, result map[string]any) {
	t.Helper()
	file := documentedPictures(t)
	dir = filepath.Dir(file)
	drawClinics(t, filepath.Join(dir, "later"), 37, 8)
	args := []string{"run", file, "--out", filepath.Join(dir, "result"), "--set", "data.source.path=" + filepath.Join(dir, "clinics"),
		"--set", "data.test_share=0", "--set", "data.test.path=" + filepath.Join(dir, "later"), "--set", "algorithm.rounds=8"}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	return dir, runJSON(t, args...)
}

// sameFigures holds figures against others by every key of the first.
func sameFigures(t *testing.T, what string, got, want any) {
	t.Helper()
	for key, v := range got.(map[string]any) {
		if w := want.(map[string]any)[key]; fmt.Sprint(v) != fmt.Sprint(w) {
			t.Errorf("%s: %s is %v, want %v", what, key, v, w)
		}
	}
}

// TestEvaluatePictures: the run judged its models on later pictures, so that judging them
// there again gives the run's figures, to the last digit; and one clinic's folder, idx
// pair or file gives what that clinic has among all.
func TestEvaluatePictures(t *testing.T) {
	dir, ran := trainedOnPictures(t)
	later, result := filepath.Join(dir, "later"), filepath.Join(dir, "result")
	about := object(t, filepath.Join(result, "model.json"))
	if fmt.Sprint(about["classes"]) != "[healthy ill]" || about["encoding"] != nil || about["precision"] != "float32" {
		t.Errorf("model.json: classes %v, encoding %v, precision %v", about["classes"], about["encoding"], about["precision"])
	}
	all := runJSON(t, "evaluate", result, "--data", later)
	sameFigures(t, "all", all["metrics"], ran["metrics"])
	clients := all["clients"].([]any)
	if all["rows"] != 222.0 || len(clients) != 3 || all["left_out"] != 0.0 {
		t.Fatalf("%v pictures of %d clients, %v left out", all["rows"], len(clients), all["left_out"])
	}
	losses := map[string]bool{}
	for i, name := range []string{"east", "north", "south"} {
		c := clients[i].(map[string]any)
		if c["client"] != name || c["model"] != "client "+name || c["rows"] != 74.0 {
			t.Errorf("client %v: %v on %v pictures", c["client"], c["model"], c["rows"])
		}
		losses[fmt.Sprint(c["metrics"].(map[string]any)["log_loss"])] = true
		own := runJSON(t, "evaluate", result, "--data", filepath.Join(later, name), "--client", name)["clients"].([]any)
		if len(own) != 1 {
			t.Fatalf("%s alone are %d clients", name, len(own))
		}
		sameFigures(t, name, own[0].(map[string]any)["metrics"], c["metrics"])
	}
	if len(losses) != 3 {
		t.Error("clients have equal losses: they were judged by one model")
	}
	some := runJSON(t, "evaluate", result, "--data", filepath.Join(later, "n*"))["clients"].([]any)
	if len(some) != 1 || some[0].(map[string]any)["client"] != "north" {
		t.Errorf("a pattern: %v", some)
	}
	// A newcomer gets the mean, named or not.
	for _, args := range [][]string{{}, {"--client", "west"}} {
		c := runJSON(t, append([]string{"evaluate", result, "--data", filepath.Join(later, "north")}, args...)...)["clients"].([]any)[0].(map[string]any)
		if c["model"] != "mean" || c["rows"] != 74.0 || !strings.Contains(c["why"].(string), "mean of the personal models") {
			t.Errorf("%q: %v", args, c)
		}
	}
	text, errs, code := coterie(t, "evaluate", result, "--data", later)
	if code != 0 || !strings.HasPrefix(text, "client  pictures  model") || !strings.Contains(text+errs, "a client's pictures") {
		t.Errorf("exit %d: %s%s", code, text, errs)
	}
}

// beforePictures leaves what the lines of docs/models.md on pictures read: the run file of
// docs/data.md, pictures of three clinics, later ones, and loose new ones.
func beforePictures(w *walk) {
	if err := os.CopyFS(w.dir, os.DirFS(filepath.Dir(documentedPictures(w.T)))); err != nil {
		w.Fatal(err)
	}
	drawClinics(w.T, w.path("later"), 10, 8)
	loose, _, _ := arrays(w.T, w.path("scans"), 20)
	if err := os.Rename(loose, w.path("new")); err != nil {
		w.Fatal(err)
	}
}

func afterPictures(w *walk) {
	if rows := rowsOf(w.T, w.path("predictions.csv")); len(rows) != 21 || rows[20][0] != filepath.Join("new", "0019.png") {
		w.Errorf("%d lines up to %q", len(rows), rows[len(rows)-1])
	}
	if n := strings.Count(w.out, "client north"); n != 3 { // predicted for, judged among all, judged alone
		w.Errorf("the north's model is told %d times:\n%s", n, w.out)
	}
}

// arrays are pictures of 12x12, drawn at random: as loose PNG files, as an idx pair and as
// an npz file, which are the same to a model.
func arrays(t *testing.T, dir string, n int) (folder, idx, npz string) {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 4))
	pixels, labels := make([]byte, 144*n), make([]byte, n)
	for i := range pixels {
		pixels[i] = byte(random.IntN(256))
	}
	for i := range labels {
		labels[i] = byte(random.IntN(2))
	}
	folder = filepath.Join(dir, "loose")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		img := image.NewGray(image.Rect(0, 0, 12, 12))
		copy(img.Pix, pixels[144*i:])
		var b bytes.Buffer
		if err := png.Encode(&b, img); err != nil {
			t.Fatal(err)
		}
		writeFiles(t, folder, map[string]string{fmt.Sprintf("%04d.png", i): b.String()})
	}
	header := func(dims ...int) string {
		out := []byte{0, 0, 8, byte(len(dims))}
		for _, d := range dims {
			out = append(out, 0, 0, byte(d>>8), byte(d))
		}
		return string(out)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, a := range map[string]struct{ shape, values string }{"x": {fmt.Sprintf("(%d, 12, 12)", n), string(pixels)}, "y": {fmt.Sprintf("(%d,)", n), string(labels)}} {
		w, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': %s, }", a.shape)
		fmt.Fprintf(w, "\x93NUMPY\x01\x00%c%c%s%s", byte(len(text)), 0, text, a.values)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string]string{
		"scans-images-idx3-ubyte": header(n, 12, 12) + string(pixels), "scans-labels-idx1-ubyte": header(n) + string(labels), "scans.npz": b.String(),
	})
	return folder, filepath.Join(dir, "scans-images-idx3-ubyte"), filepath.Join(dir, "scans.npz")
}

// predicted are the cells of predictions.
func predicted(t *testing.T, args ...string) [][]string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "predictions.csv")
	if _, errs, code := coterie(t, append(append([]string{"predict"}, args...), "--out", out)...); code != 0 {
		t.Fatalf("%q: exit %d: %s", args, code, errs)
	}
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("predictions are for their owner alone: %v (%v)", info.Mode(), err)
	}
	return rowsOf(t, out)
}

// TestPredictPictures: every layout has the same answers for the same pictures, in order,
// and they are those that the evaluation judges.
func TestPredictPictures(t *testing.T) {
	dir, _ := trainedOnPictures(t)
	result, north := filepath.Join(dir, "result"), filepath.Join(dir, "later", "north")
	// The answers for class folders, by hand into figures.
	rows := predicted(t, result, "--data", north, "--client", "north")
	if len(rows) != 75 || !slices.Equal(rows[0], []string{"picture", "probability healthy", "probability ill", "predicted"}) {
		t.Fatalf("%d lines after %q", len(rows), rows[0])
	}
	right, loss := 0, 0.0
	for i, row := range rows[1:] {
		if want := filepath.Join(north, []string{"healthy", "ill"}[i/37], fmt.Sprintf("%03d", i%37)); row[0] != want {
			t.Fatalf("line %d is of %s, want %s", i+2, row[0], want)
		}
		healthy, ill := number(t, row[1]), number(t, row[2])
		if math.Abs(healthy+ill-1) > 1e-8 || (ill > healthy) != (row[3] == "ill") {
			t.Errorf("%q", row)
		}
		if filepath.Base(filepath.Dir(row[0])) == row[3] {
			right++
		}
		loss -= math.Log([]float64{healthy, ill}[i/37]) / 74
	}
	judged := runJSON(t, "evaluate", result, "--data", north, "--client", "north")["metrics"].(map[string]any)
	value := func(key string) float64 { return judged[key].(map[string]any)["value"].(float64) }
	if float64(right)/74 != value("accuracy") || math.Abs(loss-value("log_loss")) > 1e-6 {
		t.Errorf("accuracy %v and log loss %v, the evaluation has %v and %v", float64(right)/74, loss, value("accuracy"), value("log_loss"))
	}
	// The names of folders are nobody's question.
	renamed := filepath.Join(dir, "renamed")
	for from, to := range map[string]string{"healthy": "batch 1", "ill": "batch, 2"} {
		if err := os.MkdirAll(renamed, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(renamed, to), os.DirFS(filepath.Join(north, from))); err != nil {
			t.Fatal(err)
		}
	}
	again := predicted(t, result, "--data", renamed, "--client", "north")
	for i, row := range again[1:] {
		if !slices.Equal(row[1:], rows[i+1][1:]) || !strings.HasPrefix(row[0], filepath.Join(renamed, "batch")) {
			t.Errorf("line %d: %q, want the answers of %q", i+2, row, rows[i+1])
		}
	}
	// More pictures than a batch has, loose, in an idx file and in an npz file.
	loose, idx, npz := arrays(t, filepath.Join(dir, "scans"), 600)
	files := predicted(t, result, "--data", loose, "--client", "south")
	if len(files) != 601 || files[600][0] != filepath.Join(loose, "0599.png") || slices.Equal(files[1][1:], files[2][1:]) {
		t.Fatalf("%d lines up to %q", len(files), files[len(files)-1])
	}
	for _, path := range []string{idx, npz} {
		numbers := predicted(t, result, "--data", path, "--client", "south")
		for i := range files {
			if !slices.Equal(numbers[i][1:], files[i][1:]) || i > 0 && numbers[i][0] != strconv.Itoa(i-1) {
				t.Fatalf("%s, line %d: %q, want the answers of %q", path, i+1, numbers[i], files[i])
			}
		}
	}
	one := runJSON(t, "evaluate", result, "--data", idx, "--client", "south")
	two := runJSON(t, "evaluate", result, "--data", npz, "--client", "south")
	if one["rows"] != 600.0 || fmt.Sprint(one["metrics"]) != fmt.Sprint(two["metrics"]) {
		t.Errorf("an idx pair: %v\nan npz file: %v", one, two)
	}
	// Labels need not be there, and a single file is a picture.
	if err := os.Remove(filepath.Join(dir, "scans", "scans-labels-idx1-ubyte")); err != nil {
		t.Fatal(err)
	}
	if numbers := predicted(t, result, "--data", idx, "--client", "south"); len(numbers) != 601 {
		t.Errorf("without labels %d lines", len(numbers))
	}
	if single := predicted(t, result, "--data", filepath.Join(loose, "0007.png"), "--client", "south"); len(single) != 2 || !slices.Equal(single[1], files[8]) {
		t.Errorf("%q, want %q", single, files[8])
	}
	// Whoever is not named gets the mean, and is told.
	stdout, errs, code := coterie(t, "predict", result, "--data", loose)
	if code != 0 || strings.Count(stdout, "\n") != 601 || !strings.Contains(errs, "600 pictures: mean: no client is named") || strings.Contains(stdout, strings.Join(files[1], ",")) {
		t.Errorf("exit %d: %s%.300s", code, errs, stdout)
	}
	told := runJSON(t, "predict", result, "--data", loose, "--client", "south", "--out", filepath.Join(dir, "p.csv"))
	if told["rows"] != 600.0 || told["models"].([]any)[0].(map[string]any)["model"] != "client south" {
		t.Errorf("%v", told)
	}
}

func number(t *testing.T, cell string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestPredictPicturesRefuses: faults are listed with their paths, and nothing is left.
func TestPredictPicturesRefuses(t *testing.T) {
	dir, _ := trainedOnPictures(t)
	in := func(name ...string) string { return filepath.Join(append([]string{dir}, name...)...) }
	loose, idx, _ := arrays(t, in("scans"), 300)
	for _, name := range []string{"0299.png", "0290.png"} { // in the last batch
		if err := os.Truncate(filepath.Join(loose, name), 70); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(in("none"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(idx, 300*144-10); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		command string
		args    []string
		code    int
		want    []string
	}{
		"broken at last":     {"predict", []string{"--data", loose}, exitFailure, []string{"2 faults", "0299.png: is broken", "0290.png: is broken"}},
		"a cut idx file":     {"predict", []string{"--data", idx}, exitFailure, []string{"the header says 43200"}},
		"several archives":   {"predict", []string{"--data", in("scans")}, exitFailure, []string{"holds 2 idx or npz files"}},
		"the training's":     {"predict", []string{"--data", in("later")}, exitFailure, []string{"6 faults", "is a folder too deep", "name one's folder"}},
		"nothing":            {"predict", []string{"--data", in("none")}, exitFailure, []string{"holds no picture"}},
		"no such folder":     {"predict", []string{"--data", in("nowhere")}, exitFailure, []string{"nowhere"}},
		"no picture":         {"predict", []string{"--data", in("run.yaml")}, exitFailure, []string{"neither a PNG nor a JPEG"}},
		"a column":           {"predict", []string{"--data", loose, "--client-column", "clinic"}, exitUsage, []string{"have no columns"}},
		"kept columns":       {"predict", []string{"--data", loose, "--keep", "clinic"}, exitUsage, []string{"have no columns"}},
		"a database":         {"predict", []string{"--database", "sqlite:x.db", "--query", "SELECT 1"}, exitUsage, []string{"--data"}},
		"a cluster":          {"predict", []string{"--data", loose, "--cluster", "0"}, exitUsage, []string{"keeps no clusters"}},
		"loose and judged":   {"evaluate", []string{"--data", loose, "--client", "north"}, exitFailure, []string{"300 faults", "stands outside the class folders"}},
		"no class folder":    {"evaluate", []string{"--data", in("scans")}, exitFailure, []string{"is a second client"}},
		"judged by a column": {"evaluate", []string{"--data", loose, "--client-column", "clinic"}, exitUsage, []string{"have no columns"}},
	} {
		t.Run(name, func(t *testing.T) {
			args, out := append([]string{c.command, in("result")}, c.args...), in("out.csv")
			stdout, errs, code := coterie(t, args...)
			if code != c.code || stdout != "" {
				t.Errorf("exit %d, printed %.100q", code, stdout)
			}
			for _, want := range c.want {
				if !strings.Contains(errs, want) {
					t.Errorf("%q is not in %.2000s", want, errs)
				}
			}
			if c.command != "predict" {
				return
			}
			if _, _, again := coterie(t, append(args, "--out", out)...); again != code {
				t.Errorf("with --out exit %d, without %d", again, code)
			}
			if _, err := os.Stat(out); !os.IsNotExist(err) {
				t.Errorf("predictions are left: %v", err)
			}
		})
	}
	if left, err := filepath.Glob(in(".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}
