package federation_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// memoryWatch follows a process's memory.
type memoryWatch struct {
	pid  int
	end  chan struct{}
	done sync.WaitGroup

	mu                  sync.Mutex
	anonymous, resident int64
}

func watchMemory(pid int) *memoryWatch {
	w := &memoryWatch{pid: pid, end: make(chan struct{})}
	w.done.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			w.now()
			select {
			case <-tick.C:
			case <-w.end:
				return
			}
		}
	})
	return w
}

// now is what the process has: memory of its own, and that with mapped files.
func (w *memoryWatch) now() (anonymous, resident int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if len(fields) != 2 {
			continue
		}
		kilobytes, _ := strconv.ParseInt(fields[0], 10, 64)
		switch name {
		case "RssAnon":
			anonymous = 1024 * kilobytes
		case "VmRSS":
			resident = 1024 * kilobytes
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.anonymous, w.resident = max(w.anonymous, anonymous), max(w.resident, resident)
	return anonymous, resident
}

// cpu is the processor time that a process has used, in seconds: on a busy machine it
// tells more than a clock.
func cpu(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100 // ticks
}

// most is the largest so far.
func (w *memoryWatch) most() (anonymous, resident int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.anonymous, w.resident
}

func (w *memoryWatch) stop() {
	close(w.end)
	w.done.Wait()
}
