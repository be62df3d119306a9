package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/coterie-fl/coterie/internal/tier"
)

// TestWorkersSpeed measures sweeps by workers, with -soak: the smallest runs a second, whose
// own time is most of it (sweep/queue's BenchmarkTinyCells has the queue's), and what two workers
// make of cells of a second beside two processes that share nothing. They take turns. The
// clock tells what others left of the cores, too. So what is judged is what a sweep by
// workers loses by itself: processor time beyond that of the processes (the queue's server,
// the command, the workers), over all turns, and time in which a worker waits for its next
// cell.
func TestWorkersSpeed(t *testing.T) {
	if !*soak {
		t.Skip("it measures for minutes")
	}
	median := func(times []float64) float64 { slices.Sort(times); return times[len(times)/2] }
	var tiny, clock, waiting []float64
	var apart, together time.Duration
	for range 3 {
		file := grid(t, 1, 20, 200)
		took := byWorkers(t, file, 2).took
		tiny = append(tiny, 4000/took.Seconds())
	}
	t.Logf("smallest runs a second, of 4,000: %.0f (%.0f)", median(tiny), tiny)
	for range 5 {
		before := processorTime(t)
		alone := twoApart(t)
		one := processorTime(t) - before
		w := byWorkers(t, grid(t, cellOfASecond, 2, 10), 2)
		clock = append(clock, alone.Seconds()/w.took.Seconds())
		waiting = append(waiting, w.waiting)
		apart, together = apart+one, together+w.cpu
		t.Logf("20 cells: two processes apart %v, %v of processor time; two workers %v, %v with server and command, %.2f %% of the time without a cell",
			alone, one, w.took, w.cpu, 100*w.waiting)
	}
	share := apart.Seconds() / together.Seconds() * (1 - median(waiting))
	t.Logf("two workers make %.3f of what two processes do on free cores; by the clock %.3f (%.3f)", share, median(clock), clock)
	if share < 0.97 {
		t.Error("two workers are slower than two processes")
	}
}

// processorTime is what all processes that this one has waited for have used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cellOfASecond is how many rounds of the example take about a second here.
const cellOfASecond = 100000

// bySweep is what a sweep by workers took.
type bySweep struct {
	took    time.Duration
	cpu     time.Duration // of server, command and workers, without their start
	waiting float64       // share of the time between a worker's first and last cell without one
}

// waitingIn is that share, by when results were written and how long cells took.
func waitingIn(t *testing.T, url string) float64 {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	results, err := js.KeyValue(t.Context(), "coterie-results")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := results.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type made struct{ began, ended time.Time }
	by := map[string][]made{}
	for _, key := range keys {
		entry, err := results.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		var r struct {
			Worker  string
			Seconds float64
		}
		if err := json.Unmarshal(entry.Value(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Seconds > 0.1 { // those before are to connect
			by[r.Worker] = append(by[r.Worker], made{entry.Created().Add(-time.Duration(r.Seconds * 1e9)), entry.Created()})
		}
	}
	var worked, span time.Duration
	for _, all := range by {
		slices.SortFunc(all, func(x, y made) int { return x.ended.Compare(y.ended) })
		span += all[len(all)-1].ended.Sub(all[0].began)
		for _, m := range all {
			worked += m.ended.Sub(m.began)
		}
	}
	if span == 0 {
		return 0
	}
	return 1 - worked.Seconds()/span.Seconds()
}

// byWorkers is what a sweep takes that workers wait for already, at a server of its own.
func byWorkers(t *testing.T, file string, workers int) (out bySweep) {
	t.Helper()
	all := processorTime(t)
	t.Run("by workers", func(t *testing.T) { // its server ends with it
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
		before := processorTime(t)
		sweep(grid(t, 1, 2, 2)) // they are connected
		all += processorTime(t) - before
		time.Sleep(time.Second)
		for _, w := range c.all {
			all += usedBy(t, w.Process.Pid)
		}
		began := time.Now()
		sweep(file)
		out.took = time.Since(began)
		out.waiting = waitingIn(t, url)
	})
	out.cpu = processorTime(t) - all
	return out
}

// usedBy is the processor time of a process that goes on.
func usedBy(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		t.Fatal(err)
	}
	system, err := strconv.Atoi(fields[12])
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
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
