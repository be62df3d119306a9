package federation_test

import (
	"syscall"
)

// dieWithParent keeps helpers from outliving a test that is killed.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
