// Package labtest sets up experiments for tests.
package labtest

import (
	"context"
	"os"
	"testing"

	"github.com/coterie-fl/coterie/repro/lab"
)

// Options are those of a test's own folder and the real data, if there are any.
func Options(t *testing.T, scale string) lab.Options {
	return lab.Options{Scale: scale, Out: t.TempDir(), Data: os.Getenv("COTERIE_DATA"), Version: "test", Tick: func(int, int) {}}
}

// New is the lab of an experiment on real data; without them the test is skipped.
func New(t *testing.T, e lab.Experiment, o lab.Options) *lab.Lab {
	t.Helper()
	if o.Data == "" {
		t.Skip("COTERIE_DATA is not set: see README, real data")
	}
	l, err := lab.New(context.Background(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
