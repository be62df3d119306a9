//go:build !linux

package federation

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
