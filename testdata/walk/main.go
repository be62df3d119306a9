// Command walk makes some rounds of a run file and writes which code the last one
// entered: TestWalks builds it with coverage counters.
package main

import (
	"fmt"
	"os"
	"runtime/coverage"

	_ "github.com/coterie-fl/coterie/all"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/sim"
)

func main() {
	if err := walk(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "walk:", err)
		os.Exit(1)
	}
}

// walk makes three rounds of a run file and leaves the counters of the third in out.
func walk(file, out string, set []string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	run, err := config.Resolve(text, set, sim.Checks()...)
	if err != nil {
		return err
	}
	s, err := sim.New(run, data.NewFolder(os.Getenv("COTERIE_DATA")))
	if err != nil {
		return err
	}
	defer s.Close()
	for range 2 {
		if _, err := s.Step(); err != nil {
			return err
		}
	}
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	if _, err := s.Step(); err != nil {
		return err
	}
	if err := coverage.WriteMetaDir(out); err != nil {
		return err
	}
	return coverage.WriteCountersDir(out)
}
