package pandemic

import (
	"math"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/report/study"
)

// TestPrintedEpsilonsAreHeldExactly: figures without randomness are held against the printed
// digits, and say so; the theorem's at sigma 1 is not 84.
func TestPrintedEpsilonsAreHeldExactly(t *testing.T) {
	charts, rows, err := printedEpsilons()
	if err != nil || len(charts) != 1 {
		t.Fatalf("%d charts, %v", len(charts), err)
	}
	printed := 0
	for _, r := range rows {
		if !strings.Contains(r.Note, "nothing is random") || *r.Low != *r.Measured || *r.High != *r.Measured {
			t.Errorf("%s: from %v to %v, %q", r.Label, *r.Low, *r.High, r.Note)
		}
		if r.Paper == nil {
			continue
		}
		printed++
		half := 0.5
		if *r.Paper < 10 {
			half = 0.05
		}
		if near := math.Abs(float64(*r.Measured-*r.Paper)) <= half; near != (r.Verdict == study.Agrees) {
			t.Errorf("%s: %v beside %v is said to be %q", r.Label, *r.Measured, *r.Paper, r.Verdict)
		}
	}
	if printed != 6 {
		t.Errorf("%d printed epsilons", printed)
	}
}

// TestNormsOverPopulations: positives stand out by the whole interval over populations.
func TestNormsOverPopulations(t *testing.T) {
	for _, c := range []struct {
		times []float64
		want  study.Verdict
	}{
		{[]float64{3, 3.2, 2.9}, study.Agrees}, {[]float64{2, 4, 1.5}, study.Differs}, // 2.5 in the mean
		{[]float64{1.5, 1.6, 1.4}, study.Differs}, {[]float64{9}, study.Incomparable},
	} {
		of := make([]norms, len(c.times))
		for i, v := range c.times {
			of[i].Times = v
		}
		if rows := normRows(of); len(rows) != 1 || rows[0].Verdict != c.want {
			t.Errorf("%v: %+v, want %s", c.times, rows, c.want)
		}
	}
	if rows := normRows([]norms{{Times: 3}, {}}); rows != nil {
		t.Errorf("nobody falls ill: %+v", rows)
	}
	if bins := binned([]float64{1e-9, 1e-4, 1e9, 1e9}); bins[0] != 0.5 || bins[normBins-1] != 0.5 {
		t.Errorf("bins %v", bins)
	}
}

// TestCostsOverRepetitions: time is in proportion by the whole interval, to both sides, and by
// the processor's where it is known.
func TestCostsOverRepetitions(t *testing.T) {
	for name, c := range map[string]struct {
		times []float64 // of twice as many persons; of one part it is 1
		want  study.Verdict
	}{
		"in proportion": {[]float64{2.1, 2, 1.9}, study.Agrees},
		"by luck":       {[]float64{1, 3, 2}, study.Differs},
		"squared":       {[]float64{4, 4.1, 3.9}, study.Differs},
		"not at all":    {[]float64{1, 1.1, 0.9}, study.Differs},
		"once":          {[]float64{2}, study.Incomparable},
	} {
		var costs [][]cost
		for _, v := range c.times {
			costs = append(costs, []cost{{Persons: 100, Seconds: 7, Processor: 1}, {Persons: 200, Seconds: 1, Processor: v}})
		}
		found := false
		for _, r := range costRows(costs) {
			if strings.HasPrefix(r.Label, "processor time a person") {
				if found = true; r.Verdict != c.want {
					t.Errorf("%s: %s, want %s", name, r.Verdict, c.want)
				}
			}
		}
		if !found {
			t.Errorf("%s: no claim", name)
		}
		if charts := costCharts(costs); len(charts) != 2 || len(charts[0].Series[0].Points) != 2 {
			t.Errorf("%s: charts %+v", name, charts)
		}
	}
}
