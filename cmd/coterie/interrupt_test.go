package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/sim"
)

// longRound is one round of seconds.
var longRound = []string{"--workers", "1", "--set", "algorithm.rounds=1", "--set", "algorithm.clients_per_round=20", "--set", "algorithm.local.epochs=55000"}

// TestInterruptWithinALongRound stops the real program in the middle of its only round. It
// answers within a second; and what it says to go on with, pasted into a shell from a
// folder whose name needs quotes, gives the models of a run in one piece.
func TestInterruptWithinALongRound(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector is not in the program")
	}
	file, err := filepath.Abs(example("network.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	whole := runJSON(t, append([]string{"run", file, "--out", filepath.Join(t.TempDir(), "whole")}, longRound...)...)
	took := time.Since(began)
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		const folder = `-it's "$HOME" & more`
		cmd := exec.Command(binary, append([]string{"run", file, "--out", folder, "--data", "some data"}, longRound...)...)
		cmd.Dir = t.TempDir()
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(min(2*time.Second, took/2)) // into the round
		asked := time.Now()
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		if answered := time.Since(asked); cmd.ProcessState.ExitCode() != exitFailure || answered > time.Second {
			t.Fatalf("%v: answered after %v, exit %d: %v\n%s", signal, answered, cmd.ProcessState.ExitCode(), err, errs.Bytes())
		}
		said := regexp.MustCompile(`interrupted in round 1, which (\d+) of 20 clients have answered, of at most 1; continue with: (.*)\n`).FindStringSubmatch(errs.String())
		if said == nil {
			t.Fatalf("%v: %s", signal, errs.Bytes())
		}
		if !strings.HasSuffix(said[2], " --data 'some data'") {
			t.Errorf("%v: the data's folder is not in %s", signal, said[2])
		}
		if n, _ := strconv.Atoi(said[1]); n < 1 || n > 19 {
			t.Errorf("%v: %d answers are kept of a round that was half made", signal, n)
		}
		paste := exec.Command("bash", "-c", said[2]+" --output json")
		paste.Dir, paste.Env = cmd.Dir, append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
		out, err := paste.Output()
		var res map[string]any
		if err != nil || json.Unmarshal(out, &res) != nil || res["model_sha256"] != whole["model_sha256"] {
			t.Errorf("%s: %v, %v; in one piece %v", said[2], err, res["model_sha256"], whole["model_sha256"])
		}
		if signal == os.Interrupt && !*soak { // once is enough for the other one's handler
			break
		}
	}
}

// TestEmptyRunFilesAreRefused, and the reader is sent to what helps.
func TestEmptyRunFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"nothing": "", "blank": " \n\n", "comments": "# a run\n#seed: 1\n", "marker": "---\n", "null": "null\n", "no keys": "{}\n",
	} {
		file := filepath.Join(dir, "run.yaml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, "out")
		_, stderr, code := coterie(t, "run", file, "--out", out)
		if code != exitUsage || !strings.Contains(stderr, file) || !strings.Contains(stderr, "coterie init") || !strings.Contains(stderr, "coterie demo") {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: a run directory was made", name)
		}
	}
	if _, stderr, code := coterie(t, "run", example("ifca.yaml"), "--out", filepath.Join(dir, "full"), "--set", "algorithm.rounds=1"); code != 0 {
		t.Errorf("a run file with keys: %s", stderr)
	}
}

func TestMomentsInWords(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for want, m := range map[string]sim.Moment{
		"round 3/200, client 14 of 20, the judge's figure 0.125":     {Round: 2, Rounds: 200, Clients: 14, Of: 20, Figure: 0.125, Judged: true},
		"round 1/200, client 1 of 20, not judged yet":                {Rounds: 200, Clients: 1, Of: 20, Figure: inf},
		"round 0/200, not judged yet":                                {Rounds: 200, Figure: nan},
		"round 1/5, judged by 3 of 9, not judged yet":                {Rounds: 5, Doing: sim.Judging, Clients: 3, Of: 9, Figure: inf},
		"round 17/200, the judge's figure is not finite":             {Round: 17, Rounds: 200, Figure: nan, Judged: true},
		"5 rounds made, the last figures, the judge's figure 2":      {Round: 5, Rounds: 5, Doing: sim.Finishing, Figure: 2, Judged: true},
		"5 rounds made, the last figures, 1 of 7, not judged yet":    {Round: 5, Rounds: 5, Doing: sim.Finishing, Clients: 1, Of: 7},
		"round 3/20, step 17 of 59, the judge's figure 0.1":          {Round: 2, Rounds: 20, Clients: 1, Of: 1, Step: 17, Steps: 59, Figure: 0.1, Judged: true},
		"round 3/20, client 1 of 1, not judged yet":                  {Round: 2, Rounds: 20, Clients: 1, Of: 1, Steps: 59},
		"round 3/20, being judged, not judged yet":                   {Round: 2, Rounds: 20, Doing: sim.Judging, Of: 1, Step: 59, Steps: 59},
		"round 5/5, client 7 of 7, the judge's figure 1e+20":         {Round: 5, Rounds: 5, Clients: 7, Of: 7, Figure: 1e20, Judged: true},
		"round 2/5, client 7 of 7, the judge's figure is not finite": {Round: 1, Rounds: 5, Clients: 7, Of: 7, Figure: -inf, Judged: true},
	} {
		if _, got := inWords(m, nil); got != want {
			t.Errorf("%+v is %q, want %q", m, got, want)
		}
	}
	for step, want := range map[int]float64{0: 0.5, 1: 0.5, 31: 0.75, 60: 0.5 + 0.5*59/60} {
		if share, _ := inWords(sim.Moment{Round: 1, Rounds: 2, Clients: 1, Of: 1, Step: step, Steps: 60}, nil); math.Abs(share-want) > 1e-12 {
			t.Errorf("step %d of 60 in the second of 2 rounds: share %v, want %v", step, share, want)
		}
	}
	others := []string{"local", "fedavg"}
	last := -1.0
	for _, m := range []sim.Moment{
		{Method: "mr-mtl", Rounds: 4}, {Method: "mr-mtl", Rounds: 4, Clients: 3, Of: 6}, {Method: "mr-mtl", Round: 1, Rounds: 4},
		{Method: "local", Rounds: 4, Clients: 1, Of: 6}, {Method: "fedavg", Round: 2, Rounds: 4}, {Method: "fedavg", Round: 3, Rounds: 4, Clients: 6, Of: 6},
	} {
		share, words := inWords(m, others)
		if share <= last || share < 0 || share > 1 || !strings.Contains(words, m.Method+" (method ") {
			t.Errorf("%+v is %v, after %v: %s", m, share, last, words)
		}
		last = share
	}
}
