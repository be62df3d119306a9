package lab

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/report/study"
)

// TestCellsOfAnEarlierProgram: they are taken where the caller says so, never otherwise, and
// study and record name who made them.
func TestCellsOfAnEarlierProgram(t *testing.T) {
	const v1, v2 = "v0.0.0-20261117170810-88db46ae7e83", "v0.0.0-20261118170810-0123456789ab"
	folder := t.TempDir()
	made, cells := 0, 2
	e := Experiment{ID: "counted", Seeds: map[string]int{Quick: 1}, Launch: func(l *Lab) (s study.Study, err error) {
		sum := 0
		for i := range cells {
			var into int
			err = l.Remember([]any{"cell", i}, &into, func(*Lab) (any, error) { made++; return i + 1, nil })
			sum += into
		}
		s.Intro = []string{fmt.Sprint(sum)}
		return s, err
	}}
	run := func(version, before string) study.Study {
		t.Helper()
		made = 0
		s, err := e.Run(t.Context(), Options{Scale: Quick, Out: folder, Version: version, CellsOf: before, Tick: func(int, int) {}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	record := func() study.Record {
		t.Helper()
		r, err := study.ReadRecord(folder + "/" + study.RecordFile)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if run(v1, ""); made != 2 {
		t.Fatalf("%d cells were made, want 2", made)
	}
	cells = 3
	s := run(v2, v1)
	if made != 1 || s.Intro[0] != "6" {
		t.Errorf("%d cells were made, want the third alone; they sum up to %s", made, s.Intro[0])
	}
	if s.CellsOf != v1 || !slices.ContainsFunc(s.Devices, func(d string) bool { return strings.HasPrefix(d, "2 cells: an earlier program, "+v1) }) || !strings.HasSuffix(s.Command, "--cells-of "+v1) {
		t.Errorf("cells of %q, computed by %q, by %q", s.CellsOf, s.Devices, s.Command)
	}
	if r := record(); r.Version != "0123456" || r.CellsOf != "88db46a" || !strings.Contains(study.Markdown([]study.Record{r}), "cells 88db46a, rows 0123456") {
		t.Errorf("the record is of %s and %s: %s", r.Version, r.CellsOf, study.Markdown([]study.Record{r}))
	}
	if s := run(v2, ""); made != 2 || s.CellsOf != "" {
		t.Errorf("without being asked for, %d cells of three were made: one is its own; cells of %q", made, s.CellsOf)
	}
	if s := run(v2, "v9"); made != 0 || len(s.Caveats) != 1 || !strings.Contains(s.Caveats[0], "No cell of v9") {
		t.Errorf("%d cells were made; caveats %q", made, s.Caveats)
	}
}

// TestTimesOfTheSameCells: processor time of runs before counts where it made these cells.
func TestTimesOfTheSameCells(t *testing.T) {
	for _, c := range []struct {
		old  study.Record
		s    study.Study
		want bool
	}{
		{study.Record{Version: "a"}, study.Study{Version: "a"}, true},
		{study.Record{Version: "a"}, study.Study{Version: "b"}, false},
		{study.Record{Version: "a"}, study.Study{Version: "b", CellsOf: "a"}, true},
		{study.Record{Version: "b", CellsOf: "a"}, study.Study{Version: "c", CellsOf: "a"}, true},
		{study.Record{Version: "b"}, study.Study{Version: "c", CellsOf: "a"}, false},
		{study.Record{Version: "b", CellsOf: "a"}, study.Study{Version: "c"}, false},
	} {
		if got := cellsOf(c.old, c.s); got != c.want {
			t.Errorf("%+v of %+v: %v", c.old, c.s, got)
		}
	}
}
