package crossing

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/repro/lab/labtest"
)

// TestSmoke runs both experiments on real data: every contender has a figure under every
// protection that it takes part in, rows of one table promise the same, and no row claims
// to agree with a paper.
func TestSmoke(t *testing.T) {
	for _, c := range []struct {
		e      lab.Experiment
		levels map[string]int    // contenders by table
		notes  map[string]string // what is promised
	}{
		{handwritingMethods, map[string]int{"Nothing is protected": 6, "Updates are protected, nu 10": 5},
			map[string]string{"Nothing is protected": "claim none", "Updates are protected, nu 10": "claim metric"}},
		{schoolClustering, map[string]int{"Epsilon 6, as paper 002 accounts": 7, "Epsilon 6, proved": 7},
			map[string]string{"Epsilon 6, as paper 002 accounts": "epsilon 6, claim heuristic", "Epsilon 6, proved": "epsilon 6, claim proved"}},
	} {
		t.Run(c.e.ID, func(t *testing.T) {
			o := labtest.Options(t, lab.Smoke)
			labtest.New(t, c.e, o) // skips without data
			s, err := c.e.Run(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			levels, promised := map[string]int{}, map[string]string{}
			for _, r := range s.Rows {
				if r.Verdict != study.NoNumber || r.Paper != nil {
					t.Errorf("%s, %s: %q, though the papers have no figure", r.Section, r.Label, r.Verdict)
				}
				if v := float64(*r.Measured); math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%s, %s: %v", r.Section, r.Label, v)
				}
				if c.levels[r.Section] == 0 {
					continue
				}
				levels[r.Section]++
				if before, ok := promised[r.Section]; ok && before != r.Note {
					t.Errorf("%s: %q and %q in one table", r.Section, before, r.Note)
				}
				if promised[r.Section] = r.Note; !strings.Contains(r.Note, c.notes[r.Section]) {
					t.Errorf("%s, %s: promises %q, want %q", r.Section, r.Label, r.Note, c.notes[r.Section])
				}
			}
			for section, n := range c.levels {
				if levels[section] != n {
					t.Errorf("%s: %d contenders of %d", section, levels[section], n)
				}
			}
			if len(s.Charts) != 1 || len(s.Caveats) == 0 || !strings.HasPrefix(s.Caveats[0], "No figure in the papers") {
				t.Errorf("%d charts, caveats %q", len(s.Charts), s.Caveats)
			}
		})
	}
}

// TestScalesAreRunFiles: every contender of every scale is a run that is accepted.
func TestScalesAreRunFiles(t *testing.T) {
	for _, scale := range []string{lab.Smoke, lab.Quick, lab.Full} {
		w := writerScaleOf(scale)
		if (scale == lab.Quick) != (w.file == handwritingFile) {
			t.Errorf("%s: the run file is not its own", scale)
		}
		if _, err := settled(w.file, setting{}, writerMethods(w.lambdas)); err != nil {
			t.Errorf("%s: %v", scale, err)
		}
		if n := len(w.drawn()); n > 8 {
			t.Errorf("%s: %d curves share the 8 colours of the page", scale, n)
		}
	}
	if _, err := settled(schoolFile, setting{}, schoolMethods); err != nil {
		t.Error(err)
	}
	if _, err := settled(schoolFile, setting{title: "none"}, []contender{{"nobody", []string{"algorithm.kind=nobody"}}}); err == nil || !strings.Contains(err.Error(), "none, nobody") {
		t.Errorf("a contender that is no method: %v", err)
	}
}

// TestDifferences: pairs go by seed, the interval is Student's, and words follow it.
func TestDifferences(t *testing.T) {
	of := func(figures ...float64) (o outcome) {
		for _, f := range figures {
			c := cell{}
			c.Figure = *lab.Number(f)
			o.cells = append(o.cells, c)
		}
		return o
	}
	// Differences 1, 2, 3 points: mean 2, standard error 1/sqrt(3), t(2) = 4.302653.
	s := paired(of(0.51, 0.62, 0.73), of(0.5, 0.6, 0.7), points)
	if half := 4.302653 / math.Sqrt(3); math.Abs(s.Middle-2) > 1e-9 || math.Abs(s.High-2-half) > 1e-5 || math.Abs(2-s.Low-half) > 1e-5 {
		t.Errorf("%+v", s)
	}
	if s := paired(of(0.9), of(1), percent); math.Abs(s.Middle+10) > 1e-9 || s.Low != s.High {
		t.Errorf("%+v", s)
	}
	d := duel{"a", "b"}
	for _, c := range []struct {
		s     lab.Spread
		seeds int
		lower bool
		want  string
	}{
		{lab.Spread{Middle: 2, Low: 1, High: 3}, 3, false, "a is better"},
		{lab.Spread{Middle: 2, Low: 1, High: 3}, 3, true, "b is better"},
		{lab.Spread{Middle: -2, Low: -3, High: -1}, 3, true, "a is better"},
		{lab.Spread{Middle: 2, Low: -1, High: 5}, 3, true, "3 seeds do not tell them apart"},
		{lab.Exactly(0), 3, true, "the same figures with every seed"},
		{lab.Exactly(2), 1, true, "one seed tells nothing about chance"},
	} {
		if got := words(c.s, d, c.seeds, c.lower); got != c.want {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
}
