//go:build unix && !linux

package trainer

import (
	"os/exec"
	"syscall"
)

func setGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return nil
}
