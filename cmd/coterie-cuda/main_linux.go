// Command coterie-cuda talks to an NVIDIA GPU's driver for coterie, which starts it.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/coterie-fl/coterie/internal/cuda/device"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "coterie-cuda is started by coterie, where a run file has run.device cuda or auto; it takes the device's number, how many conversations to have, and their pipes and shared memory from there")
		os.Exit(2)
	}
	n, err := strconv.Atoi(os.Args[1])
	count, fault := strconv.Atoi(os.Args[2])
	if err = errors.Join(err, fault); err == nil {
		err = serve(n, count)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "coterie-cuda:", err)
		os.Exit(1)
	}
}

// serve has so many conversations at a time, each on a thread of its own, until all have
// ended or one fails: a device that is lost is lost for all.
func serve(n, count int) error {
	ended := make(chan error, count)
	for i := range count {
		var files [4]*os.File
		for k, name := range []string{"in", "out", "shared memory", "shared file"} {
			if files[k] = os.NewFile(uintptr(3+len(files)*i+k), name); files[k] == nil {
				return fmt.Errorf("conversation %d of %d has no %s", i, count, name)
			}
		}
		in, out := files[0], files[1]
		go func() { ended <- errors.Join(device.Serve(n, in, out, files[2:]...), out.Close()) }()
	}
	for range count {
		if err := <-ended; err != nil {
			return err
		}
	}
	return nil
}
