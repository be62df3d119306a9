package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	epsilonNumber = regexp.MustCompile(`(?i)\beps(ilon)?\b['s]*\s*(=|:|of)?\s*(\+?inf\b|[0-9])`)
	epsilonColumn = regexp.MustCompile(`(?i)\beps(ilons?)?\b`)
	aClaim        = regexp.MustCompile(`\b(proved|metric|heuristic|none)\b`)
	aUnit         = regexp.MustCompile(`\b(example|client|node|neighbourhood|person)\b`)
	aRelation     = regexp.MustCompile(`\b(add-remove|replace-one|metric)\b`)
)

// bareEpsilons are the lines with an epsilon's number whose statement, the line itself
// and a table's head, lacks claim, unit or relation.
func bareEpsilons(text string) (bare []string, seen int) {
	head := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		columns := strings.Contains(strings.TrimSpace(line), "  ")
		numbered := epsilonNumber.MatchString(line)
		switch {
		case !columns:
			head = ""
		case !numbered && epsilonColumn.MatchString(line):
			head = line
			continue
		}
		if !numbered && head == "" {
			continue
		}
		seen++
		statement := head + " " + line
		claims, relations := aClaim.FindAllString(statement, -1), aRelation.FindAllString(statement, -1)
		whole := len(claims) > 0 && len(relations) > 0 && aUnit.MatchString(statement)
		if whole && !slices.ContainsFunc(claims, func(s string) bool { return s != "metric" }) && !slices.ContainsFunc(relations, func(s string) bool { return s != "metric" }) {
			whole = len(claims) > 1 // one word cannot be both
		}
		if !whole {
			bare = append(bare, line)
		}
	}
	return bare, seen
}

// TestNoBareEpsilon walks what run, demo, account and sweep print for people: wherever
// an epsilon's number stands, its claim, unit and relation stand with it.
func TestNoBareEpsilon(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeFiles(t, folder, map[string]string{
		"paper.yaml":   "algorithm: {kind: group-private, rounds: 3}\n",
		"sound.yaml":   "algorithm: {kind: group-private, mode: sound, rounds: 3}\n",
		"average.yaml": "algorithm: {kind: fedavg, rounds: 2}\n",
		"silos.yaml":   "data: {kind: school, standardise: none}\nalgorithm: {kind: mr-mtl, rounds: 2}\n",
		"ifca.yaml":    "data: {kind: school}\nalgorithm: {kind: ifca, mode: sound, rounds: 2}\n",
		"persons.yaml": "data: {kind: school}\nalgorithm: {kind: local, rounds: 2}\nprivacy: {epsilon: 0, noise_multiplier: 20, records_per_person: 3}\n",
		"whole.yaml":   "data: {kind: school}\nalgorithm: {kind: fedavg, rounds: 2}\nprivacy: {protects: client}\n",
		"central.yaml": "data: {kind: school}\nalgorithm: {kind: central, rounds: 3}\nprivacy: {clipping: {rule: online}}\n",
		"grid.yaml":    "run: silos.yaml\nseeds: 1\ngrid: {privacy.epsilon: [2, 6]}\n",
		"group.yaml":   "run: sound.yaml\nseeds: 1\ngrid: {privacy.noise_multiplier: [2, 6]}\n",
		"charged.yaml": "run: silos.yaml\ngrid: {algorithm.lambda: [0.3, 1]}\ntuning: {distribution: tnb, mean_trials: 3, eta: 0, score: {bound: 0.05, noise: 5}}\n",
		"shared.yaml":  "run: silos.yaml\nseeds: 2\ngrid: {algorithm.lambda: [0.3, 1]}\ntuning: {charge: grid}\n",
		"silos.csv":    "silo,examples,batch,epochs,epsilon,delta\nnorth,872,64,10,0.5,1e-7\nsouth,1933,64,10,2,1e-6\n",
	})
	writeSchools(t, folder)
	// What each prints at least, in lines with an epsilon.
	for command, least := range map[string]int{
		"run FOLDER/paper.yaml":   1,
		"run FOLDER/sound.yaml":   1,
		"run FOLDER/average.yaml": 1,
		"run FOLDER/silos.yaml":   5,
		"run FOLDER/ifca.yaml":    4,
		"run FOLDER/persons.yaml": 5,
		"run FOLDER/whole.yaml":   4,
		"run FOLDER/central.yaml": 5,
		"demo":                    4,
		"sweep FOLDER/grid.yaml":  3,
		"sweep FOLDER/group.yaml": 1, "sweep FOLDER/charged.yaml": 8, "sweep FOLDER/shared.yaml": 9,
		"account gaussian --noise 2 --steps 100 --delta 1e-5 --explain":                                                                                1,
		"account gaussian --noise 2 --steps 100 --delta 1e-5 --exact-noise 100 --explain":                                                              1,
		"account dpsgd --noise 1.1 --rate 0.01 --steps 1000 --delta 1e-5 --explain":                                                                    4,
		"account dpsgd --noise 1.1 --rate 0.01 --steps 1000 --delta 1e-5 --exact-noise 1206590 --explain":                                              4,
		"account dpsgd --noise 4 --batch 512 --examples 60000 --epochs 10 --delta 1e-5 --sampling shuffle --explain":                                   4,
		"account dpsgd --noise 4 --batch 512 --examples 60000 --epochs 1 --delta 1e-5 --sampling without-replacement":                                  1,
		"account calibrate --epsilon 3 --delta 1e-5 --rate 0.00853 --steps 1180":                                                                       1,
		"account metric --dimension 2 --noise-multiplier 5 --releases 6 --radius 0.5 --distance 1":                                                     2,
		"account node --nodes 260997 --degree 5 --batch 512 --epochs 1 --noise 10 --delta 3.8e-07":                                                     2,
		"account node --nodes 260997 --degree 5 --batch 512 --epochs 1 --noise 10 --delta 3.8e-07 --formula authors-code":                              2,
		"account selection --epsilon 0.05 --selections 40 --noise 4 --rate 0.0734 --steps 521 --delta 1e-7 --explain":                                  3,
		"account tuning --noise 5 --delta 1e-5 --distribution tnb --mean-trials 10 --eta 0 --explain":                                                  3,
		"account silo FOLDER/silos.csv --explain":                                                                                                      7,
		"account mean-estimation --silos 20 --examples 200 --sigma 0.4 --tau 0.08 --epsilon 0.25 --delta 1e-5 --mean-trials 10 --eta 0 --simulate 100": 1,
		"account mean-estimation --silo 200,0.4,0.25 --silo 1000,0.4,1 --silo 50,0.4,inf --tau 0.08 --delta 1e-5":                                      3,
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(strings.ReplaceAll(command, "FOLDER", folder))
			switch args[0] {
			case "run", "sweep":
				args = append(args, "--data", folder, "--out", filepath.Join(t.TempDir(), "out"))
			case "demo":
				args = append(args, "--out", filepath.Join(t.TempDir(), "out"))
			}
			var out, errs bytes.Buffer
			if code := execute(t.Context(), args, &out, &errs); code != 0 {
				t.Fatalf("exit %d: %s", code, errs.String())
			}
			bare, seen := bareEpsilons(out.String())
			if len(bare) > 0 || seen < least {
				t.Errorf("%d lines with an epsilon, at least %d wanted, of which lack claim, unit or relation:\n%s\nin:\n%s", seen, least, strings.Join(bare, "\n"), out.String())
			}
		})
	}
}

// What was printed before is found: the walk has eyes.
func TestBareEpsilonsAreFound(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"method         rounds  median eps  max eps  declined  claim\nfedavg  85  inf  inf  0  none\n",
		"The federation's line, epsilon 6 at delta 0.001, assumes that nobody is in two silos.\n",
		"  pld, grid of 1e-4: epsilon 5.19257\n", "north   noise 2.1  epsilon 0.5  delta 1e-07\n",
		"proved for the same releases: epsilon 22.1 (replace-one)\n", "epsilon 2.4 (metric, neighbourhood)\n",
		"* loss         0.1   +- 0.01   privacy.epsilon=3\n",
	} {
		if bare, _ := bareEpsilons(text); len(bare) != 1 {
			t.Errorf("%q: %q", text, bare)
		}
	}
}

// The numbers that put a metric epsilon into perspective stand beside it.
func TestWiderBoundsAreShown(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeFiles(t, folder, map[string]string{"sound.yaml": "algorithm: {kind: group-private, mode: sound, rounds: 3}\n"})
	args := []string{"run", filepath.Join(folder, "sound.yaml"), "--out", filepath.Join(folder, "out")}
	object := runJSON(t, args...)
	privacy := object["privacy"].(map[string]any)
	var out, errs bytes.Buffer
	args[3] += "-again"
	if code := execute(t.Context(), args, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	page, err := os.ReadFile(filepath.Join(args[3], "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"epsilon_any_update", "epsilon_switch"} {
		value, ok := privacy[key].(float64)
		if !ok {
			t.Fatalf("%s is %v", key, privacy[key])
		}
		if shown := fmt.Sprintf(" %.2f ", value); !strings.Contains(out.String(), shown) {
			t.Errorf("%s = %v is not in the table:\n%s", key, value, out.String())
		}
	}
	_, summary, _ := strings.Cut(string(page), `id="summary"`)
	summary, _, _ = strings.Cut(summary, "</section>")
	for _, want := range []string{"unit neighbourhood, relation metric, radius", "any other update: ", "any other group: "} {
		if !strings.Contains(summary, want) {
			t.Errorf("the report's first table lacks %q", want)
		}
	}
}

// The program does not promise what some of its methods do not keep.
func TestHelpPromisesNothing(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := execute(t.Context(), []string{"--help"}, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	if text := out.String(); strings.Contains(text, "without giving") || !strings.Contains(text, "some methods promise nothing") {
		t.Errorf("%s", text)
	}
}

func writeFiles(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// writeSchools leaves three small schools where real ones are looked for.
func writeSchools(t *testing.T, folder string) {
	t.Helper()
	var text bytes.Buffer
	w := gzip.NewWriter(&text)
	fmt.Fprint(w, "school")
	const features = 28
	for j := range features {
		fmt.Fprintf(w, ",f%02d", j)
	}
	fmt.Fprintln(w, ",score")
	for row := range 120 {
		fmt.Fprint(w, row%3)
		for j := range features {
			fmt.Fprintf(w, ",%d", (row*(j+3)+j)%7%2)
		}
		fmt.Fprintf(w, ",%d\n", 10+row*7%50)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "school"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "school", "school.csv.gz"), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
