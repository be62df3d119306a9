//go:build !linux

// Command coterie-cuda talks to an NVIDIA GPU's driver for coterie, on Linux alone.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "coterie-cuda: GPUs are used on Linux alone")
	os.Exit(1)
}
