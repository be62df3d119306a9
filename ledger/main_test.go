package ledger

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain fixes what the property tests draw, and is the process that
// TestKilledProcess kills.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(childFolder) != "" {
		if err := childProcess(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	sequences := "500"
	if *soak {
		sequences = "5000"
	}
	for name, value := range map[string]string{"rapid.seed": "20261115", "rapid.nofailfile": "true", "rapid.checks": sequences} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue { // flags override it
			if err := flag.Set(name, value); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	os.Exit(m.Run())
}
