// Command coterie-cuda talks to an NVIDIA GPU's driver for coterie, which starts it.
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/coterie-fl/coterie/internal/cuda/device"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "coterie-cuda is started by coterie, where a run file has run.device cuda or auto; it takes the device's number, pipes and shared memory from there")
		os.Exit(2)
	}
	n, err := strconv.Atoi(os.Args[1])
	if err == nil {
		err = device.Serve(n, os.Stdin, os.Stdout, os.NewFile(3, "shared memory"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "coterie-cuda:", err)
		os.Exit(1)
	}
}
