//go:build unix

package trainer

import (
	"os"
	"syscall"
)

// errPipe is what writing to a child that closed its input gives.
var errPipe error = syscall.EPIPE

func killGroup(p *os.Process)      { syscall.Kill(-p.Pid, syscall.SIGKILL) }
func terminateGroup(p *os.Process) { syscall.Kill(-p.Pid, syscall.SIGTERM) }
