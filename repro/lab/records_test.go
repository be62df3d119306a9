package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func recordsLab(t *testing.T) *Lab {
	return &Lab{Options: Options{Out: t.TempDir(), Version: "v1", Workers: 1, Tick: func(int, int) {}}, Context: t.Context(), began: time.Now()}
}

// TestCommittedCellsAreNotMade: cells that came with the program are taken as they are,
// unless they are asked for anew, and stay out of the folder's file.
func TestCommittedCellsAreNotMade(t *testing.T) {
	const committed = `{"key":"a","value":1,"date":"2026-11-16","version":"v0","kernel":"go","seconds":2}` + "\n"
	for anew, want := range map[bool]string{false: "b", true: "ab"} {
		l := recordsLab(t)
		l.Anew = anew
		made := ""
		finished, err := Fill(l, "cells.jsonl", []byte(committed), []string{"a", "b", "a"}, func(_ *Lab, k string) (int, error) {
			made += k
			return 7, nil
		})
		if err != nil || made != want || len(finished) != 2 {
			t.Errorf("anew %v: made %q, %d finished, %v", anew, made, len(finished), err)
		}
		if want := map[bool]float64{false: 2}[anew]; l.committed != want {
			t.Errorf("anew %v: committed cells took %v s, want %v", anew, l.committed, want)
		}
		if got := finished["a"]; !anew && (got.Value != 1 || got.Version != "v0" || got.Seconds != 2) || anew && (got.Value != 7 || got.Version != "v1") {
			t.Errorf("anew %v: %+v", anew, got)
		}
		lines, err := os.ReadFile(filepath.Join(l.Out, "cells.jsonl"))
		if err != nil || strings.Count(string(lines), "\n") != len(want) {
			t.Errorf("anew %v: %q, %v", anew, lines, err)
		}
	}
}

// TestAFailedCellIsNamed, and those before it are kept.
func TestAFailedCellIsNamed(t *testing.T) {
	l := recordsLab(t)
	ill := errors.New("ill")
	_, err := Fill(l, "cells.jsonl", nil, []string{"a", "b"}, func(_ *Lab, k string) (int, error) {
		if k == "b" {
			return 0, ill
		}
		return 7, nil
	})
	if !errors.Is(err, ill) || !strings.Contains(err.Error(), "cell b") {
		t.Error(err)
	}
	finished, err := Fill(l, "cells.jsonl", nil, []string{"a", "b"}, func(_ *Lab, k string) (int, error) {
		if k != "b" {
			t.Errorf("%s is made again", k)
		}
		return 8, nil
	})
	if err != nil || finished["a"].Value != 7 || finished["b"].Value != 8 {
		t.Errorf("%v, %v", finished, err)
	}
	if _, err := Fill(recordsLab(t), "cells.jsonl", []byte("{}\n{\n"), []string{"a"}, func(*Lab, string) (int, error) { return 0, nil }); err == nil || !strings.Contains(err.Error(), "the committed cells.jsonl, line 2") {
		t.Errorf("what is committed is no cell: %v", err)
	}
}
