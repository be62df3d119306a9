package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/internal/tier"
	"github.com/coterie-fl/coterie/sweep"
	"github.com/coterie-fl/coterie/sweep/cells"
)

// grid is a sweep whose runs take a while, on data that are drawn.
func grid(t *testing.T, rounds, points, seeds int) string {
	t.Helper()
	file, err := filepath.Abs(example("ifca.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("run: %s\nset: [algorithm.rounds=%d, algorithm.stop.patience=0]\nseeds: %d\ngrid:\n  algorithm.local.step: [", file, rounds, seeds)
	for i := range points {
		text += fmt.Sprintf("%g, ", 0.05+0.01*float64(i))
	}
	path := filepath.Join(t.TempDir(), "grid.yaml")
	if err := os.WriteFile(path, []byte(text+"]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// sweptIn is the result file of a sweep.
func sweptIn(t *testing.T, out string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, sweep.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// crew is workers, processes, that take cells, some of which are killed.
type crew struct {
	t    *testing.T
	args []string
	mu   sync.Mutex
	all  []*exec.Cmd
	logs bytes.Buffer
}

// Write takes up what they say.
func (c *crew) Write(text []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.logs.Write(text)
}

func (c *crew) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.logs.String()
}

func (c *crew) hire() {
	c.t.Helper()
	cmd := exec.Command(binary, append([]string{"worker", "--workers", "1", "--checkpoint", "50ms", "--cache", c.t.TempDir()}, c.args...)...)
	cmd.Stderr = c
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.all = append(c.all, cmd)
}

// kill ends a worker by chance, in the middle of whatever it does, and hires another.
func (c *crew) kill() {
	i := rand.IntN(len(c.all))
	_ = c.all[i].Process.Kill()
	_ = c.all[i].Wait()
	c.all = append(c.all[:i], c.all[i+1:]...)
	c.hire()
}

func (c *crew) dismiss() {
	for _, cmd := range c.all {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	c.all = nil
}

// begin starts a command and waits for a line that matches.
func begin(t *testing.T, want string, args ...string) (cmd *exec.Cmd, errs *bytes.Buffer, match []string) {
	t.Helper()
	cmd, errs = exec.Command(binary, args...), new(bytes.Buffer)
	cmd.Stderr = errs
	file := filepath.Join(t.TempDir(), "stdout")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(20 * time.Millisecond) { // a cluster may be choosing who leads
		text, _ := os.ReadFile(file)
		if match = regexp.MustCompile(want).FindStringSubmatch(string(text)); match != nil {
			return cmd, errs, match
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("coterie %s prints %q: %s", strings.Join(args, " "), text, errs)
		}
	}
}

// TestWorkersOfOneCommand: a sweep hands its runs to two worker processes, and comes to the
// result of one process, to the byte; killed in between, the same command goes on. So do
// runs of many seeds, whose models come back, and a table of one's own travels.
func TestWorkersOfOneCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector is not in the program")
	}
	file, local, out := grid(t, 2000, 4, 2), t.TempDir(), t.TempDir()
	runJSON(t, "sweep", file, "--out", local)
	args := []string{"sweep", file, "--out", out, "--listen", "127.0.0.1:0", "--listen-only", "--lease", "2s"}
	first, _, _ := begin(t, `--nats`, args...) // stopped before it has a worker
	_ = first.Process.Signal(os.Interrupt)
	if err := first.Wait(); first.ProcessState.ExitCode() != exitFailure {
		t.Fatal(err)
	}
	cmd, errs, match := begin(t, `coterie worker (--nats \S+) (--nats-token-file) (\S+)`, args...)
	c := &crew{t: t, args: append(strings.Fields(match[1]), match[2], match[3])}
	defer c.dismiss()
	c.hire()
	c.hire()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, errs, c.said())
	}
	if !bytes.Equal(sweptIn(t, local), sweptIn(t, out)) {
		t.Error("two workers come to another result than one process")
	}
	c.dismiss()

	table, seeds := example("own-table.yaml"), "1..3"
	here := runJSON(t, "run", table, "--seeds", seeds, "--out", t.TempDir())
	away := t.TempDir()
	cmd, errs, match = begin(t, `coterie worker (--nats \S+) (--nats-token-file) (\S+)`, "run", table, "--seeds", seeds, "--out", away, "--listen", "127.0.0.1:0", "--listen-only")
	c.args = append(strings.Fields(match[1]), match[2], match[3])
	c.hire()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, errs, c.said())
	}
	again := runJSON(t, "run", table, "--seeds", seeds, "--out", away) // takes up what is there
	for i, one := range here["runs"].([]any) {
		mine, theirs := one.(map[string]any), again["runs"].([]any)[i].(map[string]any)
		if mine["model_sha256"] != theirs["model_sha256"] || mine["value"] != theirs["value"] {
			t.Errorf("seed %v: %v here, %v on a worker", mine["seed"], mine, theirs)
		}
		dir := theirs["directory"].(string)
		if _, errs, code := coterie(t, "predict", dir, "--data", example("clinics.csv"), "--client-column", "clinic", "--out", filepath.Join(t.TempDir(), "p.csv")); code != 0 {
			t.Errorf("seed %v: the models that came back do not predict: %s", mine["seed"], errs)
		}
	}
}

// TestAttended: a command says who makes its cells once its folder is there, and takes the
// word back when it ends.
func TestAttended(t *testing.T) {
	old := attendEvery
	attendEvery = 5 * time.Millisecond
	t.Cleanup(func() { attendEvery = old })
	out := filepath.Join(t.TempDir(), "out")
	file := filepath.Join(out, cells.CrewFile)
	stop := attend(out, func() []cells.Hand { return []cells.Hand{{Name: "north", Slots: 2, Doing: []string{"x"}}} })
	time.Sleep(50 * time.Millisecond)
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it made the folder: %v", err)
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	var text []byte
	for deadline := time.Now().Add(10 * time.Second); len(text) == 0; time.Sleep(time.Millisecond) {
		if text, _ = os.ReadFile(file); time.Now().After(deadline) {
			t.Fatal("nothing is said")
		}
	}
	if want := `{"workers":[{"name":"north","slots":2,"made":0,"doing":["x"]}]}` + "\n"; string(text) != want {
		t.Errorf("it says %s, want %s", text, want)
	}
	stop()
	if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// cellsIn are the cells below a folder with their content.
func cellsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "cells", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.Base(f)+" "+string(text))
	}
	return names
}

// TestExperimentsOnWorkers: cells of studies with stages, and of those whose cells share
// models, are found again by workers, which run the study's own program.
func TestExperimentsOnWorkers(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector is not in the program")
	}
	studies := []string{"synthetic"}
	if os.Getenv("COTERIE_DATA") != "" {
		studies = append(studies, "membership")
	}
	for _, id := range studies {
		local, out := t.TempDir(), t.TempDir()
		args := []string{"reproduce", id, "--scale", "smoke"}
		runJSON(t, append(args, "--out", local)...)
		runJSON(t, append(args, "--out", out, "--listen", "127.0.0.1:0")...)
		mine, theirs := strings.Join(cellsIn(t, local), ""), strings.Join(cellsIn(t, out), "")
		if mine != theirs || len(mine) == 0 {
			t.Errorf("%s: %d bytes of cells here, %d by workers", id, len(mine), len(theirs))
		}
		if made, _ := filepath.Glob(filepath.Join(out, "models", "*")); len(made) > 0 {
			t.Errorf("%s: with a queue the command trained by itself: %v", id, made)
		}
	}
}

// TestWorkersOnACluster: workers killed by chance and a node of the cluster lost, every
// cell is once in the result, with the figures of one machine. There are as many sweeps as
// it takes to kill 4 workers, with -soak 200, however quick the machine.
func TestWorkersOnACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector is not in the program")
	}
	kills, rounds, points := 4, 20000, 4
	if *soak {
		kills, rounds, points = 200, 60000, 40
	}
	cluster := tier.NATSCluster(t, [3]string{})
	c := &crew{t: t, args: []string{"--nats", cluster.URL}}
	defer c.dismiss()
	file, made, sweeps := "", 0, 0
	for made < kills {
		file = grid(t, rounds+sweeps, points, 2) // cells of its own, or the queue had them
		made = killedIn(t, c, cluster, file, made, kills)
		sweeps++
	}
	t.Logf("%d kills in %d sweeps of %d cells, %d cells gone on with from a checkpoint", made, sweeps, 2*points, strings.Count(c.said(), "goes on after round"))
	if *soak && !strings.Contains(c.said(), "goes on after round") {
		t.Error("no cell went on from a checkpoint")
	}
	began := time.Now() // nothing is made again: nobody is there who could
	c.dismiss()
	runJSON(t, "sweep", file, "--out", t.TempDir(), "--nats", cluster.URL)
	t.Logf("the same from the queue's results: %v", time.Since(began))
}

// killedIn compares a sweep of killed workers with that of one process. Workers are killed
// until it ends or kills are made, of which made were before it; after half of them a node
// of the cluster is killed, after three quarters started again.
func killedIn(t *testing.T, c *crew, cluster *tier.Cluster, file string, made, kills int) int {
	t.Helper()
	local, out := t.TempDir(), t.TempDir()
	runJSON(t, "sweep", file, "--out", local)
	cmd, errs, _ := begin(t, `coterie worker`, "sweep", file, "--out", out, "--nats", cluster.URL, "--lease", "2s")
	for len(c.all) < 3 {
		c.hire()
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	for done := false; !done; {
		var next <-chan time.Time
		if made < kills {
			next = time.After(time.Duration(200+rand.IntN(800)) * time.Millisecond)
		}
		select {
		case err := <-over:
			if err != nil {
				t.Fatalf("after %d kills: %v\n%s\n%s", made, err, errs, c.said())
			}
			done = true
		case <-next:
			c.kill()
			if made == kills/2 {
				cluster.Kill(kills / 2 % 3)
			}
			if made == kills*3/4 {
				cluster.Start(kills / 2 % 3)
			}
			made++
		}
	}
	if !bytes.Equal(sweptIn(t, local), sweptIn(t, out)) {
		t.Errorf("after %d kills the result is another than one process's", made)
	}
	return made
}
