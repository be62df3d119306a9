package trainer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/config"
)

// TestForksAreKilled: in the child's group and outside of it, with the child alive
// or not, and even though they hold the pipes open.
func TestForksAreKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what left the group is found on Linux only")
	}
	for _, name := range []string{"forks and dies", "forks away and dies", "forks away and hangs"} {
		t.Run(name, func(t *testing.T) {
			checkLeaks(t)
			file := filepath.Join(t.TempDir(), "pid")
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			tr, err := Start(ctx, player(name, file), 3)
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			answered := make(chan error)
			go func() {
				_, err := tr.train(config.Local{}, ones(3))
				answered <- err
			}()
			if name == "forks away and hangs" {
				awaitFile(t, file)
				cancel()
			}
			if err := <-answered; err == nil {
				t.Fatal("no error")
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal("the fork did not start: ", err)
			}
			pid, _ := strconv.Atoi(string(text))
			if !gone(pid) {
				t.Errorf("process %d lives on", pid)
				syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
}

func awaitFile(t *testing.T, file string) {
	t.Helper()
	for range 2000 {
		if _, err := os.Stat(file); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the fork did not start")
}

// gone waits a little for a process to end; a zombie that nobody reaps has ended.
func gone(pid int) bool {
	for range 300 {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// TestCloseEndsTheStubborn: one that ignores the end of its input is asked, then killed.
func TestCloseEndsTheStubborn(t *testing.T) {
	checkLeaks(t)
	for _, name := range []string{"does not read", "ignores all signals"} {
		tr, err := Start(context.Background(), player(name), 3)
		if err != nil {
			t.Fatal(err)
		}
		pid := tr.child.cmd.Process.Pid
		if err := tr.Close(); err != nil || !gone(pid) {
			t.Errorf("%s: process %d lives on, %v", name, pid, err)
		}
		if err := tr.Close(); err != nil {
			t.Errorf("%s: closed twice: %v", name, err)
		}
	}
}

// TestDiesWithItsParent: a participant that is killed leaves no trainer behind, even
// one that does not notice the end of its input.
func TestDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells children of their parent's death")
	}
	parent := exec.Command(os.Args[0], "play", "parent")
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	for range 2000 {
		list, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", parent.Process.Pid))
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent.Process.Pid))
		for _, task := range tasks { // the thread that started it has it
			more, _ := os.ReadFile(task)
			list = append(list, more...)
		}
		if fields := strings.Fields(string(list)); len(fields) > 0 {
			child, _ = strconv.Atoi(fields[0])
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	parent.Process.Kill()
	parent.Wait()
	if child == 0 || !gone(child) {
		t.Errorf("process %d lives on", child)
	}
}

// TestContextEndsTheChild: while it hangs, and while nothing is asked of it.
func TestContextEndsTheChild(t *testing.T) {
	checkLeaks(t)
	for _, name := range []string{"hangs", "well"} {
		ctx, cancel := context.WithCancel(context.Background())
		tr, err := Start(ctx, player(name), 3)
		if err != nil {
			t.Fatal(err)
		}
		pid := tr.child.cmd.Process.Pid
		if name == "hangs" {
			answered := make(chan error)
			go func() {
				_, err := tr.train(config.Local{}, ones(3))
				answered <- err
			}()
			cancel()
			if err := <-answered; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
		}
		cancel()
		if !gone(pid) {
			t.Errorf("%s: process %d lives on", name, pid)
		}
		tr.Close()
	}
}
