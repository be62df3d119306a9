package trainer

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// errPipe is what writing to a child that closed its input gives.
var errPipe error = syscall.ERROR_BROKEN_PIPE

// setGroup refuses: pipes have no deadlines here, so a trainer that hangs could not
// be contained.
func setGroup(*exec.Cmd) error {
	return errors.New("trainers need Linux or another Unix")
}

func killGroup(p *os.Process)      { p.Kill() }
func terminateGroup(p *os.Process) { p.Kill() }
