// Package labtest sets up experiments for tests.
package labtest

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
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

// commit is how the version of a program ends that names its commit.
var commit = regexp.MustCompile(`[-+][0-9a-f]{12}$`)

// Committed are the cells of lines that come with the program: each once, of a commit and a day.
func Committed[K comparable, V any](t *testing.T, lines []byte) map[K]lab.Record[K, V] {
	t.Helper()
	l := &lab.Lab{Options: lab.Options{Out: t.TempDir(), Tick: func(int, int) {}}, Context: t.Context()}
	finished, err := lab.Fill(l, "cells.jsonl", lines, nil, func(*lab.Lab, K) (v V, err error) { return v, nil })
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(lines, []byte("\n")); n != len(finished) {
		t.Errorf("%d lines of %d cells", n, len(finished))
	}
	for k, r := range finished {
		if r.Date == "" || r.Seconds <= 0 || !commit.MatchString(r.Version) || strings.Contains(r.Version, "dirty") {
			t.Errorf("%v is of %q, %q, in %v s", k, r.Version, r.Date, r.Seconds)
		}
	}
	return finished
}
