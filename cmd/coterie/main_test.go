package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/repro"
)

var soak = flag.Bool("soak", false, "ten times as many kills")

// binary is the real program, built once.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "coterie-test-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "coterie")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s\n", out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// coterie runs the program and returns what it printed and its exit code.
func coterie(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// runJSON runs a command that must succeed and returns its object.
func runJSON(t *testing.T, args ...string) map[string]any {
	t.Helper()
	out, errs, code := coterie(t, append(args, "--output", "json")...)
	if code != 0 {
		t.Fatalf("coterie %s: exit %d\n%s", strings.Join(args, " "), code, errs)
	}
	var v map[string]any
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("coterie %s printed %q: %v", strings.Join(args, " "), out, err)
	}
	return v
}

func example(name string) string { return filepath.Join("..", "..", "examples", name) }

func TestDemo(t *testing.T) {
	out := filepath.Join(t.TempDir(), "demo")
	began := time.Now()
	demo := runJSON(t, "demo", "--out", out)
	if s := time.Since(began).Seconds(); s > 5 {
		t.Errorf("the demo takes %.1f s, want less than 5", s)
	}
	runs := demo["runs"].([]any)
	var methods []string
	var losses []float64
	for _, r := range runs {
		run := r.(map[string]any)
		methods = append(methods, run["algorithm"].(string))
		losses = append(losses, run["metrics"].(map[string]any)["loss"].(float64))
		if _, err := os.Stat(run["report"].(string)); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(methods, []string{"fedavg", "ifca", "group-private"}) {
		t.Fatalf("methods %v", methods)
	}
	if !(losses[1] < losses[2] && losses[2] < 0.7 && losses[0] > 2.5) {
		t.Errorf("losses %v: group-private should lie between the others, near IFCA", losses)
	}
	if page, err := os.ReadFile(demo["report"].(string)); err != nil || !bytes.Contains(page, []byte("heuristic")) {
		t.Errorf("the report does not name the claim (%v)", err)
	}
	text, _, code := coterie(t, "demo", "--out", out+"-text")
	if code != 0 || !strings.Contains(text, "group-private") || !strings.Contains(text, "report  ") {
		t.Errorf("exit %d:\n%s", code, text)
	}
}

func TestExamplesRun(t *testing.T) {
	files, err := filepath.Glob(example("*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("--data FOLDER")) && os.Getenv("COTERIE_DATA") == "" {
			t.Logf("%s is left out: COTERIE_DATA is not set", file)
			continue
		}
		if slices.ContainsFunc(longExamples, func(kind string) bool { return bytes.Contains(text, []byte(kind)) }) {
			continue
		}
		var args []string
		if bytes.Contains(text, []byte("kind: wikitext")) {
			args = strings.Fields("--set algorithm.rounds=1 --set algorithm.local.steps=2 --set algorithm.local.batch=32 --set data.samples=200")
		}
		runExample(t, file, args...)
	}
}

// longExamples take seconds to minutes as they stand: TestModelHashesAreKept runs a part
// of each.
var longExamples = []string{"kind: writers", "kind: rotated-mnist", "kind: cifar10", "kind: mnist}"}

// runExample runs one of the examples and looks at what it leaves.
func runExample(t *testing.T, file string, args ...string) map[string]any {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	res := runJSON(t, append([]string{"run", file, "--out", dir}, args...)...)
	want := strings.TrimSuffix(filepath.Base(file), ".yaml")
	if res["name"] != want || res["directory"] != dir {
		t.Errorf("%s: name %v in %v", file, res["name"], res["directory"])
	}
	for _, name := range []string{"run.yaml", "result.json", "model.json", "model.safetensors", "report.html"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	files := 5
	if strings.HasPrefix(want, "wikitext") {
		files++ // the pairs that its words are made of
	}
	if entries, _ := os.ReadDir(dir); len(entries) != files {
		t.Errorf("%s leaves %v", file, entries)
	}
	return res
}

func TestSameBytesForAnyWorkers(t *testing.T) {
	for _, file := range []string{"fedavg.yaml", "ifca.yaml", "group-private.yaml"} {
		var want any
		for _, workers := range []string{"1", "2", "8"} {
			res := runJSON(t, "run", example(file), "--seed", "5", "--workers", workers, "--out", filepath.Join(t.TempDir(), "run"),
				"--set", "data.users=500", "--set", "data.validation_users=500", "--set", "algorithm.clients_per_round=400")
			if want == nil {
				want = res["model_sha256"]
			}
			if res["model_sha256"] != want {
				t.Errorf("%s with %s workers: %v, with one: %v", file, workers, res["model_sha256"], want)
			}
		}
	}
}

// longRun lasts a second or more and leaves a checkpoint every few rounds.
var longRun = []string{"--set", "data.users=2000", "--set", "data.validation_users=200", "--set", "algorithm.clients_per_round=200",
	"--set", "algorithm.rounds=6000", "--set", "algorithm.stop.patience=0", "--set", "algorithm.sampling=balanced",
	"--set", "run.checkpoint_seconds=0.01"}

// TestKillAndResume kills the program three times at random moments of its first
// quarter second, then lets a resume come through: the models must be those of a
// run in one piece.
func TestKillAndResume(t *testing.T) {
	whole := runJSON(t, append([]string{"run", example("group-private.yaml"), "--out", filepath.Join(t.TempDir(), "whole")}, longRun...)...)
	runs := 4
	if *soak {
		runs = 60
	}
	random := rand.New(rand.NewPCG(1, 2))
	kills := 0
	for range runs {
		dir := filepath.Join(t.TempDir(), "run")
		fresh := append([]string{"run", example("group-private.yaml"), "--out", dir, "--output", "json"}, longRun...)
		for try := 0; ; try++ {
			args := []string{"run", "--resume", dir, "--output", "json"}
			if _, err := os.Stat(filepath.Join(dir, "run.yaml")); err != nil {
				if _, err := os.Stat(dir); err == nil {
					t.Fatalf("%s is there without its run file", dir)
				}
				args = fresh // killed before the directory existed: there is nothing to resume
			}
			wait := time.Duration(random.Float64() * float64(250*time.Millisecond))
			if try >= 3 {
				wait = time.Hour
			}
			killed, out := killAfter(t, wait, args...)
			if killed {
				kills++
				continue
			}
			var res map[string]any
			if err := json.Unmarshal(out, &res); err != nil {
				t.Fatalf("%s: %v", out, err)
			}
			if res["model_sha256"] != whole["model_sha256"] {
				t.Fatalf("after %d kills the models are %v, in one piece %v", try, res["model_sha256"], whole["model_sha256"])
			}
			break
		}
	}
	t.Logf("%d kills in %d runs", kills, runs)
	if kills < runs {
		t.Errorf("only %d kills: the test did not test much", kills)
	}
}

// killAfter starts the program and ends it with SIGKILL unless it was faster.
func killAfter(t *testing.T, wait time.Duration, args ...string) (killed bool, stdout []byte) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return true, nil
	}
	if err != nil {
		t.Fatalf("coterie %s: %v\n%s", strings.Join(args, " "), err, errs.Bytes())
	}
	return false, out.Bytes()
}

func TestInterruptLeavesACheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	cmd := exec.Command(binary, append([]string{"run", example("ifca.yaml"), "--out", dir, "--set", "algorithm.rounds=100000000"}, longRun[:6]...)...)
	cmd.Args = append(cmd.Args, "--set", "algorithm.stop.patience=0", "--set", "run.checkpoint_seconds=1000")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 500 { // until it has begun
		if _, err := os.Stat(filepath.Join(dir, "run.yaml")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if cmd.ProcessState.ExitCode() != exitFailure || !strings.Contains(errs.String(), "coterie run --resume "+dir) {
		t.Fatalf("%v: %s", err, errs.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "checkpoint")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "result.json")); err == nil {
		t.Error("an interrupted run has a result")
	}
}

// TestResumeOfAnotherRunFile: the result of a run is not given for a run.yaml that was changed since.
func TestResumeOfAnotherRunFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	runJSON(t, "run", example("ifca.yaml"), "--set", "algorithm.rounds=2", "--out", dir)
	file := filepath.Join(dir, "run.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for was, is := range map[string]string{"rounds: 2\n": "rounds: 3\n", "seed: 1\n": "seed: 2\n"} {
		if !bytes.Contains(text, []byte(was)) {
			t.Fatalf("no %q in %s", was, text)
		}
		if err := os.WriteFile(file, bytes.Replace(text, []byte(was), []byte(is), 1), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, stderr, code := coterie(t, "run", "--resume", dir); code != exitFailure || !strings.Contains(stderr, "changed since") || !strings.Contains(stderr, "--out ANOTHER") {
			t.Errorf("%q: exit %d, %s", is, code, stderr)
		}
	}
}

func TestResumeOfAFinishedRunPrintsItAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	first := runJSON(t, "run", example("ifca.yaml"), "--out", dir)
	again := runJSON(t, "run", "--resume", dir)
	if fmt.Sprint(first) != fmt.Sprint(again) {
		t.Errorf("%v\n%v", first, again)
	}
	if more := runJSON(t, "run", "--resume", dir, "--workers", "2"); more["model_sha256"] != first["model_sha256"] {
		t.Errorf("with two workers %v", more)
	}
	page, _ := os.ReadFile(filepath.Join(dir, "report.html"))
	if err := os.Remove(filepath.Join(dir, "report.html")); err != nil {
		t.Fatal(err)
	}
	runJSON(t, "report", dir)
	if fresh, err := os.ReadFile(filepath.Join(dir, "report.html")); err != nil || !bytes.Equal(fresh, page) {
		t.Errorf("the report written again differs (%v)", err)
	}
}

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	good, bad := example("group-private.yaml"), filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("algorithm:\n  hypotheses: 0\n  clients_per_round: 1000\n  speed: 3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "run")
	for _, c := range []struct {
		code int
		part string
		args []string
	}{
		{exitUsage, "unknown command", []string{"trian"}},
		{exitUsage, "unknown flag", []string{"run", good, "--sed", "1"}},
		{exitUsage, "--output", []string{"version", "--output", "xml"}},
		{exitUsage, "name one run file", []string{"run"}},
		{exitUsage, "accepts at most 1 arg", []string{"run", good, good}},
		{exitUsage, "no such file", []string{"run", filepath.Join(dir, "none.yaml"), "--out", out}},
		{exitUsage, "3 faults", []string{"run", bad, "--out", out}},
		{exitUsage, "line 2, column 15: algorithm.hypotheses: 0 is out of range; allowed: 1 to 1000", []string{"run", bad, "--out", out}},
		{exitUsage, "line 3, column 22: algorithm.clients_per_round: 1000 is more than the 100 clients that train", []string{"run", bad, "--out", out}},
		{exitUsage, "negative", []string{"run", good, "--out", out, "--set", "privacy.noise_multiplier=-1", "--set", "name=negative"}},
		{exitUsage, "is not a number", []string{"run", good, "--out", out, "--set", "privacy.noise_multiplier=.nan"}},
		{exitUsage, "takes no FILE", []string{"run", good, "--resume", out}},
		{exitFailure, "not a run directory", []string{"run", "--resume", filepath.Join(dir, "nothing")}},
		{exitFailure, "holds no finished run", []string{"report", dir}},
		{exitFailure, "is not empty", []string{"run", good, "--out", dir}},
		{exitFailure, "smaller algorithm.local.step", []string{"run", good, "--out", out + "-diverged", "--set", "algorithm.local.step=1e308"}},
		{exitRefused, "refused for privacy", []string{"run", good, "--out", out, "--set", "privacy.ceiling=0.1"}},
		{exitUsage, "without noise every release is above any ceiling", []string{"run", example("ifca.yaml"), "--out", out, "--set", "privacy.ceiling=5"}},
	} {
		stdout, stderr, code := coterie(t, c.args...)
		if c.part == "negative" {
			c.part = "-1 is out of range; allowed: 0 or more"
		}
		if code != c.code || !strings.Contains(stderr, c.part) || stdout != "" {
			t.Errorf("coterie %s: exit %d, want %d with %q:\n%s%s", strings.Join(c.args, " "), code, c.code, c.part, stdout, stderr)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a run that never began left a directory")
	}
}

func TestSchemaAndVersion(t *testing.T) {
	out, _, code := coterie(t, "run", "--schema")
	if code != 0 || !json.Valid([]byte(out)) || !strings.Contains(out, "noise_multiplier") {
		t.Errorf("exit %d: %.200s", code, out)
	}
	if v := runJSON(t, "version"); v["kernel"] == "" || v["version"] == "" {
		t.Errorf("%v", v)
	}
	text, _, _ := coterie(t, "version")
	if flag, _, code := coterie(t, "--version"); code != 0 || flag != text || !strings.HasPrefix(flag, "coterie ") {
		t.Errorf("--version: exit %d, %q; version prints %q", code, flag, text)
	}
	if v, flag := runJSON(t, "version"), runJSON(t, "--version"); !maps.Equal(v, flag) {
		t.Errorf("--version says %v, version says %v", flag, v)
	}
	if out, _, code := coterie(t, "run", "--version"); code != exitUsage {
		t.Errorf("run --version: exit %d\n%s", code, out)
	}
}

// TestCompletion: every shell's script is printed, and bash completes commands with it.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out, errs, code := coterie(t, "completion", shell); code != 0 || !strings.Contains(out, "__complete") {
			t.Errorf("completion %s: exit %d\n%s", shell, code, errs)
		}
	}
	// What a shell calls when the tab key is pressed after "coterie ser".
	cmd := exec.Command("bash", "-c", `source <(coterie completion bash) && COMP_WORDS=(coterie ser) COMP_CWORD=1 COMP_LINE='coterie ser' COMP_POINT=11 &&
compopt() { :; } && _get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=ser; prev=coterie; } &&
__start_coterie && printf '%s\n' "${COMPREPLY[@]}"`)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "serve" {
		t.Errorf("bash completes ser to %q: %v", out, err)
	}
}

func TestDeclinedClientsShow(t *testing.T) {
	res := runJSON(t, "run", example("group-private.yaml"), "--out", filepath.Join(t.TempDir(), "run"),
		"--set", "privacy.ceiling=0.8", "--set", "algorithm.stop.patience=0")
	p := res["privacy"].(map[string]any)
	if p["declined"].(float64) == 0 || p["max_epsilon"].(float64) != 0.8 || p["ceiling"].(float64) != 0.8 || res["stopped"] != "budget" {
		t.Errorf("%v, stopped by %v", p, res["stopped"])
	}
}

func TestReproduce(t *testing.T) {
	list := runJSON(t, "reproduce")["experiments"].([]any)
	if len(list) < 4 {
		t.Errorf("%d experiments", len(list))
	}
	out := filepath.Join(t.TempDir(), "study")
	study := runJSON(t, "reproduce", "synthetic", "--scale", "smoke", "--out", out)
	for _, key := range []string{"id", "paper", "scale", "seeds", "seconds", "rows", "report"} {
		if study[key] == nil {
			t.Errorf("%s is not printed", key)
		}
	}
	row := study["rows"].([]any)[0].(map[string]any)
	for _, key := range []string{"label", "metric", "settings", "paper", "sentence", "measured", "low", "high", "unit", "verdict", "note"} {
		if _, ok := row[key]; !ok {
			t.Errorf("a row has no %s", key)
		}
	}
	if text, _, code := coterie(t, "reproduce", "synthetic", "--scale", "smoke", "--out", out); code != 0 || !strings.Contains(text, "IFCA") {
		t.Errorf("exit %d:\n%s", code, text)
	}
	if _, stderr, code := coterie(t, "reproduce", "nothing"); code != exitUsage {
		t.Errorf("an unknown experiment: exit %d, %s", code, stderr)
	}
}

// TestReproduceAll: what has no data is named and stops nothing; the rest ends in a table and
// a picture whose counts are those of the studies.
func TestReproduceAll(t *testing.T) {
	out := filepath.Join(t.TempDir(), "all")
	args := []string{"reproduce", "all", "--scale", "smoke", "--data", t.TempDir(), "--out", out}
	all := runJSON(t, args...)
	records, missing := all["records"].([]any), all["skipped"].([]any)
	if total := len(repro.List()); len(records)+len(missing) != total || len(records) < 8 {
		t.Errorf("%d studies made, %d not, of %d", len(records), len(missing), total)
	}
	if why := missing[0].(map[string]any); why["id"] != "hospital" || why["reason"] != "data not available: hospital, zip (docs/data.md)" {
		t.Errorf("%v", why)
	}
	agree := 0
	for _, r := range records {
		claims, _ := r.(map[string]any)["claims"].([]any)
		for _, c := range claims {
			if c.(map[string]any)["verdict"] == "agrees" {
				agree++
			}
		}
	}
	text, _, code := coterie(t, args...)
	if last := regexp.MustCompile(`(?m)^all +(\d+)`).FindStringSubmatch(text); code != 0 || len(last) < 2 || last[1] != fmt.Sprint(agree) || agree == 0 {
		t.Errorf("exit %d, %d claims agree:\n%s", code, agree, text)
	}
	for _, name := range []string{"summary.md", "summary.svg", "synthetic/report.html", "synthetic/record.json"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
	if _, stderr, code := coterie(t, "reproduce", "all", "--scale", "huge", "--out", out); code != exitUsage {
		t.Errorf("a scale that nobody has: exit %d, %s", code, stderr)
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	a := &app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() && c.Example == "" {
			t.Errorf("%s has no example in its help", c.CommandPath())
		}
		if c.Short == "" {
			t.Errorf("%s does not say what it does", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(a.newRoot())
	if code := execute(context.Background(), []string{"help", "run"}, a.stdout, a.stderr); code != 0 {
		t.Errorf("help: exit %d", code)
	}
}
