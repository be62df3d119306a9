package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
)

// opened is a device of plan.
func opened(t *testing.T) *Device {
	t.Helper()
	d, err := Open(0, plan(t, 4))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// asked has a device compute the outputs of a picture.
func asked(d *Device) error {
	pictures := &data.Images{Height: 4, Width: 4, Pixels: make([]byte, 16), Labels: []int{1}}
	c := &data.Client{Pictures: data.Pictures{Images: pictures, Index: []int{0}}}
	return d.Outputs(make([]float32, 3), make([]float32, d.plan.Parameters), c, []int{0})
}

// gone fails if a program goes on.
func gone(t *testing.T, p *program) {
	t.Helper()
	if !p.endsWithin(5 * time.Second) {
		t.Error("the program goes on")
		_ = p.cmd.Process.Kill()
	}
}

// limits sets how long helpers are waited for.
func limits(t *testing.T, greet, answer, leave, lost time.Duration) {
	before := [...]time.Duration{greetWithin, answerWithin, leaveWithin, lostWithin}
	greetWithin, answerWithin, leaveWithin, lostWithin = greet, answer, leave, lost
	t.Cleanup(func() {
		greetWithin, answerWithin, leaveWithin, lostWithin = before[0], before[1], before[2], before[3]
	})
}

// script has a shell's text stand in for the helper.
func script(t *testing.T, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), Program)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("COTERIE_CUDA_PROGRAM", path)
}

// TestProgramsOfLostDevices: what is opened after a device was lost has another program, whether
// conversations of the old one are free, wait, or go on; it ends with those that go on.
func TestProgramsOfLostDevices(t *testing.T) {
	cudatest.Use(t)
	if cudatest.OnDevice() {
		t.Skip("a GPU does not fail when it is asked to")
	}
	t.Setenv("COTERIE_CUDA_TEST", t.Name())
	t.Setenv("COTERIE_EMU_FAIL", "lost") // after three launches
	lost, other, waits := opened(t), opened(t), opened(t)
	p := lost.helper.program
	if other.helper.program != p || waits.helper.program != p {
		t.Fatal("networks at once have several programs")
	}
	if err := waits.Close(); err != nil {
		t.Fatal(err)
	}
	if err := asked(lost); err == nil || !strings.Contains(err.Error(), "the device may be lost") {
		t.Fatalf("a lost device: %v", err)
	}
	at := opened(t)
	if at.helper.program == p {
		t.Error("what is opened when a device was lost has its program")
	}
	if err := lost.Close(); err != nil {
		t.Error(err)
	}
	next := opened(t)
	if next.helper.program == p {
		t.Error("what is opened when a lost device was closed has its program")
	}
	idle.Lock()
	for _, h := range idle.helpers {
		if h.program == p {
			t.Error("a helper of a lost device waits to be used")
		}
	}
	idle.Unlock()
	if p.endsWithin(0) {
		t.Error("a program ends while somebody has a network there")
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	gone(t, p)
	for _, d := range []*Device{at, next} {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRefusedNetworksSpoilNothing: a network for which there is too little memory is refused, and others'
// program goes on to be used.
func TestRefusedNetworksSpoilNothing(t *testing.T) {
	cudatest.Use(t)
	if cudatest.OnDevice() {
		t.Skip("a GPU has the memory that it has")
	}
	t.Setenv("COTERIE_EMU_MEMORY", "1000000")
	first := opened(t)
	if _, err := Open(0, plan(t, 100)); err == nil || !strings.Contains(err.Error(), "free are") {
		t.Errorf("a network that is too large: %v", err)
	}
	next := opened(t)
	if next.helper.program != first.helper.program {
		t.Error("a refusal takes the program away")
	}
	for _, d := range []*Device{first, next} {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestHelpersThatHang: whoever says nothing is waited for as long as the limits say, and no longer, and is
// ended: before the greeting, when it is asked, when a conversation is to end, and when a program does.
func TestHelpersThatHang(t *testing.T) {
	limits(t, 200*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond, 200*time.Millisecond)
	began := time.Now()
	soon := func(t *testing.T) {
		t.Helper()
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
	}
	t.Run("before the greeting", func(t *testing.T) {
		script(t, "echo 'waits for the driver' >&2; sleep 20") // which holds what the shell had for its words
		_, err := Open(0, plan(t, 4))
		if err == nil || !strings.Contains(err.Error(), "coterie-cuda has not said within 200ms who it is") || !strings.Contains(err.Error(), "waits for the driver") {
			t.Errorf("no greeting: %v", err)
		}
		soon(t)
	})
	stop := func(t *testing.T, p *program) {
		t.Helper()
		if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		for state := ""; state != "T"; time.Sleep(time.Millisecond) { // which takes a moment
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			state = strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))[0]
		}
	}
	real := func(t *testing.T) {
		t.Helper()
		cudatest.Use(t)
		t.Setenv("COTERIE_CUDA_TEST", t.Name())
		greetWithin, answerWithin = time.Minute, time.Minute // until it is there
	}
	t.Run("asked", func(t *testing.T) {
		real(t)
		d := opened(t)
		p := d.helper.program
		began, d.helper.out.most, answerWithin = time.Now(), 300*time.Millisecond, 300*time.Millisecond
		stop(t, p)
		if err := asked(d); err == nil || !strings.Contains(err.Error(), "was lost: coterie-cuda has not answered for 300ms") {
			t.Errorf("no answer: %v", err)
		}
		if err := d.Close(); err == nil || !strings.Contains(err.Error(), "did not end within 200ms, and was killed") {
			t.Errorf("closed: %v", err)
		}
		gone(t, p)
		soon(t)
	})
	t.Run("a conversation's end", func(t *testing.T) {
		real(t)
		one, other := opened(t), opened(t)
		h, p := one.helper, one.helper.program
		began = time.Now()
		stop(t, p)
		if err := h.end(); err == nil || !strings.Contains(err.Error(), "has not ended a conversation within 300ms") || p.endsWithin(0) {
			t.Errorf("one of two: %v", err)
		}
		if !p.spoiled() {
			t.Error("another network would have the program")
		}
		if err := other.helper.end(); err == nil || !strings.Contains(err.Error(), "did not end within 200ms, and was killed") {
			t.Errorf("the last one: %v", err)
		}
		gone(t, p)
		soon(t)
	})
	t.Run("a program's end", func(t *testing.T) {
		script(t, fmt.Sprintf(`echo '{"Version":%d}' >&4; exec 4>&-; sleep 20 4>&-`, Version))
		h, _, err := taken(keyFor(0))
		if err != nil {
			t.Fatal(err)
		}
		if err := h.greet(); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		if err := h.end(); err == nil || !strings.Contains(err.Error(), "did not end within 300ms, and was killed") {
			t.Errorf("ended: %v", err)
		}
		gone(t, h.program)
		soon(t)
	})
}

// TestLastWords: of a helper that has ended, how it did and its last words are told, also if these come a
// moment after the end of the pipe; of one that never greeted not that a GPU was lost.
func TestLastWords(t *testing.T) {
	t.Run("before the greeting", func(t *testing.T) {
		script(t, "exec 4>&-; sleep 0.2; echo 'no such library' >&2; exit 3")
		_, err := Open(0, plan(t, 4))
		if want := "coterie-cuda ended before it said who it is (exit status 3): no such library"; err == nil || err.Error() != want {
			t.Errorf("%v instead of %s", err, want)
		}
	})
	t.Run("killed", func(t *testing.T) {
		cudatest.Use(t)
		t.Setenv("COTERIE_CUDA_TEST", t.Name())
		d := opened(t)
		if err := d.helper.program.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := asked(d); err == nil || !strings.Contains(err.Error(), "was lost: coterie-cuda has ended (signal: killed)") {
			t.Errorf("killed: %v", err)
		}
		if err := d.Close(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
			t.Errorf("closed: %v", err)
		}
	})
}
