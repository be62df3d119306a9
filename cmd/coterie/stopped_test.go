package main

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestParticipantStopsWhenAsked: what a service manager sends is answered with the code
// that units call success; Ctrl-C is a failure, as everywhere.
func TestParticipantStopsWhenAsked(t *testing.T) {
	c := newClinics(t, seededRun(""), "", clinicsPolicy, "a", "b", "c", "d")
	c.serve("--unsafe-seeded-noise")
	c.enrol("a")
	for signal, want := range map[syscall.Signal]int{syscall.SIGTERM: exitStopped, syscall.SIGINT: exitFailure} {
		cmd := exec.Command(binary, "join", c.path("a", "join.yaml"), "--unsafe-seeded-noise")
		log, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended long ago
		lines := bufio.NewScanner(log)
		for lines.Scan() && !strings.Contains(lines.Text(), `"msg":"joined"`) {
		}
		if err := cmd.Process.Signal(signal); err != nil { // while it waits for the others
			t.Fatal(err)
		}
		rest, err := io.ReadAll(log)
		if err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the exit code is looked at
		if code := cmd.ProcessState.ExitCode(); code != want || !strings.Contains(string(rest), "interrupted") {
			t.Errorf("%s: exit %d, want %d\n%s", signal, code, want, rest)
		}
	}
}
