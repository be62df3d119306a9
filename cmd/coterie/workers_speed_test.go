package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/internal/tier"
)

// TestWorkersSpeed measures sweeps by workers, with -soak: the smallest runs a second, whose
// own time is most of it (sweep/queue's BenchmarkTinyCells has the queue's), and what two workers
// make of cells of a second beside two processes that share nothing. They take turns; the
// figures are medians.
func TestWorkersSpeed(t *testing.T) {
	if !*soak {
		t.Skip("it measures for minutes")
	}
	median := func(times []float64) float64 { slices.Sort(times); return times[len(times)/2] }
	var tiny, ratios []float64
	for range 3 {
		file := grid(t, 1, 20, 200)
		took := byWorkers(t, file, 2)
		tiny = append(tiny, 4000/took.Seconds())
	}
	t.Logf("smallest runs a second, of 4,000: %.0f (%.0f)", median(tiny), tiny)
	for range 5 {
		alone := twoApart(t)
		together := byWorkers(t, grid(t, cellOfASecond, 2, 10), 2)
		ratios = append(ratios, alone.Seconds()/together.Seconds())
		t.Logf("20 cells: two processes apart %v, two workers %v", alone, together)
	}
	t.Logf("two workers make %.3f of what two processes do (%.3f)", median(ratios), ratios)
	if median(ratios) < 0.97 {
		t.Error("two workers are slower than two processes")
	}
}

// cellOfASecond is how many rounds of the example take about a second here.
const cellOfASecond = 60000

// byWorkers is how long a sweep takes that workers wait for already, at a server of its own.
func byWorkers(t *testing.T, file string, workers int) time.Duration {
	t.Helper()
	url := tier.NATSServer(t, t.TempDir())
	c := &crew{t: t, args: []string{"--nats", url, "--checkpoint", "10s"}}
	defer c.dismiss()
	for range workers {
		c.hire()
	}
	sweep := func(file string) {
		if text, err := exec.Command(binary, "sweep", file, "--out", t.TempDir(), "--nats", url, "--quiet").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s\n%s", err, text, c.said())
		}
	}
	sweep(grid(t, 1, 2, 2)) // they are connected
	time.Sleep(time.Second)
	began := time.Now()
	sweep(file)
	return time.Since(began)
}

// twoApart is how long two processes take that share the cells of byWorkers between them.
func twoApart(t *testing.T) time.Duration {
	t.Helper()
	var both [2]*exec.Cmd
	for i := range both {
		text, err := os.ReadFile(grid(t, cellOfASecond, 2, 10))
		if err != nil {
			t.Fatal(err)
		}
		step := []string{"0.05, ", "0.06, "}[i]
		one := filepath.Join(t.TempDir(), "grid.yaml")
		whole, _, _ := strings.Cut(string(text), "algorithm.local.step: [")
		if err := os.WriteFile(one, fmt.Appendf(nil, "%salgorithm.local.step: [%s]\n", whole, step), 0o644); err != nil {
			t.Fatal(err)
		}
		both[i] = exec.Command(binary, "sweep", one, "--out", t.TempDir(), "--workers", "1", "--quiet")
	}
	began := time.Now()
	for _, cmd := range both {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, cmd := range both {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(began)
}
