//go:build !linux

package main

// addresses are a part of a process's memory.
type addresses struct{}

// programParts are none: pages of the program's file stay until the system wants them.
func programParts() ([]addresses, error) { return nil, nil }

func forget([]addresses) error { return nil }
