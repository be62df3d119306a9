//go:build !linux

package federation_test

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
