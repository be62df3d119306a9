package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// writeLetters leaves the run file of docs/text.md in a folder, and text that is nobody's.
func writeLetters(t *testing.T, dir string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "text.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "```yaml\n")
	block, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("docs/text.md has no run file")
	}
	letters := func(from int) string {
		var b strings.Builder
		for i := range 60 {
			fmt.Fprintf(&b, "On day %d the %s nurse met %d guests. ", from+i, []string{"north", "south", "tall"}[i%3], i*7%11)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"run.yaml": block, "public.txt": letters(0), "texts/north.txt": letters(100), "texts/south.txt": letters(200), "texts/west.txt": letters(300),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func beforeText(w *walk) { writeLetters(w.T, w.dir) }

// TestText: from a vocabulary to figures, a further run from where the first ended, and
// what is refused.
func TestText(t *testing.T) {
	dir := t.TempDir()
	writeLetters(t, dir)
	at := func(name string) string { return filepath.Join(dir, name) }
	found := runJSON(t, "data", "vocabulary", at("public.txt"), at("texts"), "--size", "300", "--out", at("merges.bpe"))
	if found["vocabulary"] != 300.0 || found["files"] != 4.0 || len(found["not_covered"].([]any)) != 1 {
		t.Errorf("the vocabulary: %v", found)
	}
	run := func(name string, more ...string) map[string]any {
		t.Helper()
		return runJSON(t, append([]string{"run", at("run.yaml"), "--out", at(name)}, more...)...)
	}
	open := []string{"--set", "privacy.protects=nothing", "--set", "privacy.epsilon=0", "--set", "privacy.public_size=0", "--set", "algorithm.local.step=0.02"}
	first := run("result", open...)
	lossOf := func(v map[string]any) float64 {
		t.Helper()
		return v["metrics"].(map[string]any)["log_loss"].(map[string]any)["value"].(float64)
	}
	if loss := lossOf(first); loss > 5.5 { // a start knows nothing: ln 300 is 5.7
		t.Errorf("log loss %v", loss)
	}
	further := run("further", append(open, "--set", "model.start="+at("result"))...)
	if lossOf(further) > lossOf(first)-0.1 {
		t.Errorf("log loss %v after going on from %v", lossOf(further), lossOf(first))
	}
	judged := runJSON(t, "evaluate", at("further"), "--data", at("texts"))
	if clients := judged["clients"].([]any); len(clients) != 3 || lossOf(judged) > lossOf(first) {
		t.Errorf("%d clients are judged, log loss %v", len(clients), lossOf(judged))
	}
	checkForeseen(t, at("further"), at("texts"), at("foreseen.csv"), judged)
	private := run("private", "--set", "model.start=result")
	text := fmt.Sprint(private["privacy"])
	if !strings.Contains(text, "model.start") || !strings.Contains(text, "a row of 16 words") || !strings.Contains(text, "proved") {
		t.Errorf("a private run from a start says: %s", text)
	}
	for _, c := range []struct{ args, want string }{
		{"predict further --data run.yaml --out p.csv --keep id", "the models are of words"},
		{"predict further --data none --out p.csv", "no such file"},
		{"evaluate further --data none", "no such file"},
		{"evaluate further --data texts --merges run.yaml", "is no word that earlier lines make"},
		{"data vocabulary public.txt --size 255", "--size 255; allowed: 256 to"},
		{"run run.yaml --set model.start=run.yaml", "model.start: " + at("run.yaml")},
		{"run run.yaml --set model.start=result --set data.context=12", "of other data"},
		{"run run.yaml --set model.start=result --set algorithm.kind=ifca --set algorithm.hypotheses=2", "model.start"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Chdir(dir)
			out, errs, code := coterie(t, strings.Fields(c.args)...)
			if code == 0 || !strings.Contains(errs, c.want) || out != "" {
				t.Errorf("exit %d, %q, want an error with %q; printed %q", code, errs, c.want, out)
			}
		})
	}
	if _, err := os.Stat(at("p.csv")); err == nil {
		t.Error("a refused prediction left a file")
	}
}

// checkForeseen: the lines of predict have the log loss that evaluate has, row by row, and
// the likeliest word of 300 has more than a 300th.
func checkForeseen(t *testing.T, models, texts, out string, judged map[string]any) {
	t.Helper()
	made := runJSON(t, "predict", models, "--data", texts, "--out", out)
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(lines) < 2 || strings.Join(lines[0], ",") != "client,row,log loss,perplexity,next,probability" || float64(len(lines)-1) != made["rows"] {
		t.Fatalf("%d lines, %v, of %v rows, %v", len(lines), lines[:1], made["rows"], err)
	}
	number := func(cell string) float64 {
		v, err := strconv.ParseFloat(cell, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	type sums struct {
		rows int
		loss float64
	}
	of := map[string]sums{}
	for _, line := range lines[1:] {
		s, loss, p := of[line[0]], number(line[2]), number(line[5])
		s.rows++
		s.loss += loss
		of[line[0]] = s
		if row := int(number(line[1])); row != s.rows || math.Abs(number(line[3])/math.Exp(loss)-1) > 1e-6 || !(p > 1.0/300 && p <= 1) || line[4] == "" {
			t.Errorf("row %d of %s: %v", s.rows, line[0], line)
		}
	}
	for _, c := range judged["clients"].([]any) {
		c := c.(map[string]any)
		s := of[c["client"].(string)]
		want := c["metrics"].(map[string]any)["log_loss"].(map[string]any)["value"].(float64)
		if got := s.loss / float64(s.rows); float64(s.rows) != c["rows"] || math.Abs(got-want) > 1e-6 {
			t.Errorf("%v: mean log loss %v over %d rows; evaluate has %v over %v", c["client"], got, s.rows, want, c["rows"])
		}
	}
}

// TestNextWord: of text that goes round, the word behind every row is known.
func TestNextWord(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"merges.bpe": "",
		"round.txt":  strings.Repeat("abcde", 400),
		"run.yaml": "data: {kind: text, source: {path: round.txt}, merges: merges.bpe, vocabulary: 256, context: 6, test_share: 0.2}\n" +
			"model: {kind: transformer, blocks: 1, width: 16, heads: 2}\n" +
			"algorithm: {kind: central, rounds: 10, local: {batch: 16, step: 0.02}}\nprivacy: {protects: nothing}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runJSON(t, "run", "run.yaml", "--out", "model")
	out, errs, code := coterie(t, "predict", "model", "--data", "round.txt")
	lines, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if code != 0 || err != nil || len(lines) != 1+2000/6 {
		t.Fatalf("exit %d, %s, %v, %d lines", code, errs, err, len(lines))
	}
	for i, line := range lines[1:] {
		if want := string("abcde"[(i+1)*6%5]); line[4] != want {
			t.Fatalf("behind row %d comes %q, foreseen is %q with %s", i+1, want, line[4], line[5])
		}
	}
}

// TestInitOnText: a folder of text, a file a client, or one file: the drafted run trains,
// with the vocabulary marked as taken from the data; what is too short is refused.
func TestInitOnText(t *testing.T) {
	dir := t.TempDir()
	writeLetters(t, dir)
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		path, method string
		clients      int
	}{{"texts", "fedavg", 3}, {"public.txt", "central", 1}} {
		study, out := at("study-"+c.method), at("out-"+c.method)
		found := runJSON(t, "init", at(c.path), "--out", study)
		if found["kind"] != "text" || len(found["clients"].([]any)) != c.clients || !strings.Contains(fmt.Sprint(found["not_public"]), "data.merges") {
			t.Errorf("%v", found)
		}
		result := runJSON(t, "run", filepath.Join(study, "run.yaml"), "--set", "algorithm.rounds=1", "--set", "privacy.noise=exact-seeded", "--out", out)
		if claim := result["privacy"].(map[string]any)["claim"]; claim != "heuristic" || result["algorithm"] != c.method {
			t.Errorf("the claim of %v is %v", result["algorithm"], claim)
		}
		if judged := runJSON(t, "evaluate", out, "--data", at(c.path)); len(judged["clients"].([]any)) != c.clients {
			t.Errorf("judged: %v", judged["clients"])
		}
	}
	if err := os.WriteFile(at("texts/short.txt"), []byte("Too short."), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"init " + at("texts") + " --out " + at("none"), "short.txt has "},
		{"init " + at("public.txt") + " --target word --out " + at("none"), "neither --client nor --target"},
	} {
		if _, stderr, code := coterie(t, strings.Fields(c.args)...); code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %s", c.args, code, stderr)
		}
	}
	if _, err := os.Stat(at("none")); err == nil {
		t.Error("a refused draft left files")
	}
}

// TestFolderCarriesItsWords: models of words are judged wherever their folder goes, and
// refused where its pairs are missing or others.
func TestFolderCarriesItsWords(t *testing.T) {
	dir := t.TempDir()
	writeLetters(t, dir)
	t.Chdir(dir)
	runJSON(t, "data", "vocabulary", "public.txt", "--size", "300", "--out", "merges.bpe")
	runJSON(t, "data", "vocabulary", "texts/west.txt", "--size", "300", "--out", "other.bpe")
	runJSON(t, "run", "run.yaml", "--out", "result", "--set", "algorithm.rounds=1", "--set", "model.width=8")
	want := runJSON(t, "evaluate", "result", "--data", "texts")
	if err := os.Mkdir("alone", 0o755); err != nil {
		t.Fatal(err)
	}
	bring := func(from, to string) {
		t.Helper()
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"model.json", "model.safetensors", "merges.bpe"} {
		bring(filepath.Join("result", name), filepath.Join("alone", name))
	}
	for _, name := range []string{"run.yaml", "merges.bpe"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if got := runJSON(t, "evaluate", "alone", "--data", "texts"); fmt.Sprint(got["metrics"]) != fmt.Sprint(want["metrics"]) {
		t.Errorf("judged alone %v, in its run directory %v", got["metrics"], want["metrics"])
	}
	bring("result/run.yaml", "again.yaml")
	refused := func(say string, args ...string) {
		t.Helper()
		if out, stderr, code := coterie(t, args...); code == 0 || out != "" || !strings.Contains(stderr, say) {
			t.Errorf("%v: exit %d, %q; want %q", args, code, stderr, say)
		}
	}
	refused("leave --merges out", "evaluate", "alone", "--data", "texts", "--merges", "other.bpe")
	refused("set data.merges", "run", "again.yaml", "--set", "model.start=alone", "--set", "data.merges=other.bpe", "--out", "none")
	bring("other.bpe", "alone/merges.bpe")
	refused("from one folder", "evaluate", "alone", "--data", "texts")
	if err := os.Remove("alone/merges.bpe"); err != nil {
		t.Fatal(err)
	}
	refused("alone/merges.bpe is missing", "evaluate", "alone", "--data", "texts")
	runJSON(t, "evaluate", "alone", "--data", "texts", "--merges", "result/merges.bpe")
}
