package trainer

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"
)

// setGroup makes the child lead a process group and die with us, even if we are
// killed.
func setGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return nil
}

// reap waits for the child's end, kills what it leaves behind in its group while
// its number is still its own, and only then lets the number go.
func (p *process) reap() {
	const byPID, exited, leave = 1, 4, 0x01000000 // P_PID, WEXITED, WNOWAIT of waitid(2)
	var info [128]byte
	for err := syscall.EINTR; err == syscall.EINTR; {
		_, _, err = syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(p.cmd.Process.Pid), uintptr(unsafe.Pointer(&info)), exited|leave, 0, 0)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	killGroup(p.cmd.Process)
	p.cmd.Wait() // its state is all we want to know
	p.reaped = true
	killMarked(p.mark)
}

// killMarked kills every process that has the marker in its environment: what left
// the child's group. It looks again while it finds any, for they may fork.
func killMarked(mark string) {
	for range 20 {
		found := false
		files, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, f := range files {
			env, err := os.ReadFile(f)
			if err != nil || !hasEntry(env, mark) {
				continue
			}
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil && pid != os.Getpid() {
				found = syscall.Kill(pid, syscall.SIGKILL) == nil || found
			}
		}
		if !found {
			return
		}
	}
}

func hasEntry(env []byte, entry string) bool {
	for one := range bytes.SplitSeq(env, []byte{0}) {
		if string(one) == entry {
			return true
		}
	}
	return false
}
