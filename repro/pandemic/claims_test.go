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
		if strings.HasPrefix(r.Section, "Section 2.5.3: scenarios") { // of two sizes
			continue
		}
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
	if printed != 8 {
		t.Errorf("%d printed epsilons", printed)
	}
}

// TestScenarioRows: both sizes must keep a scenario.
func TestScenarioRows(t *testing.T) {
	made := func(large float64) []study.Row {
		rows, err := scenarioRows(func(nodes int64, noise float64, _, _ int64, _ string) (float64, error) {
			if epsilon := 9 / noise; nodes < 1_000_000 || noise < 0.5 {
				return 10 * epsilon, nil
			}
			return large, nil
		})
		if err != nil || len(rows) != 8 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		return rows
	}
	for i, r := range made(600) { // 20, 90, 180 and 900 of the small one
		if want := map[bool]study.Verdict{true: study.Agrees, false: study.Differs}[i >= 6]; r.Verdict != want {
			t.Errorf("%s: %s, want %s", r.Label, r.Verdict, want)
		}
	}
	if r := made(100)[2]; r.Verdict != study.Agrees || *r.Low != 90 || *r.High != 100 {
		t.Errorf("%+v", r)
	}
}

// TestDegreeRows: a straight line that doubles agrees, a root or hardly any growth does not.
func TestDegreeRows(t *testing.T) {
	rows := degreeRows([]int64{5, 10, 20, 50}, []float64{1, 2, 4}, [][]float64{{5, 5, 5}, {10, 7.1, 5.1}, {20, 10, 5.3}, {50, 15.8, 5.9}})
	for i, want := range []study.Verdict{study.Agrees, study.Agrees, study.Agrees, study.Differs, study.Differs, study.Agrees} {
		if rows[i].Verdict != want {
			t.Errorf("%s: %s, want %s", rows[i].Label, rows[i].Verdict, want)
		}
	}
}

// TestNoiseRows: average precision falls with every step of noise, or with none.
func TestNoiseRows(t *testing.T) {
	made := func(precisions ...float64) map[arm][]outcome {
		cells := map[arm][]outcome{}
		for i, epsilon := range []float64{0, 5, 1, 0.3, 0.1} {
			for _, off := range []float64{0, 0.001} {
				cells[arm{"nominated", epsilon}] = append(cells[arm{"nominated", epsilon}], outcome{Precision: precisions[i] + off, Told: true})
			}
		}
		return cells
	}
	for want, cells := range map[study.Verdict]map[arm][]outcome{study.Agrees: made(0.5, 0.4, 0.3, 0.2, 0.1), study.Differs: made(0.1, 0.2, 0.3, 0.4, 0.5)} {
		rows := noiseRows(cells)
		if len(rows) != 5 {
			t.Fatalf("%d rows", len(rows))
		}
		for _, r := range rows {
			if r.Verdict != want {
				t.Errorf("%s: %s, want %s", r.Label, r.Verdict, want)
			}
		}
	}
	if rows := noiseRows(map[arm][]outcome{}); rows != nil {
		t.Errorf("nothing was trained: %+v", rows)
	}
}

// TestOrdersCanFail: claims about recall, spread and few neighbours follow the figures.
func TestOrdersCanFail(t *testing.T) {
	of := func(precisions ...float64) (cells []cell) {
		for _, v := range precisions {
			cells = append(cells, cell{AP: v, Recall: v})
		}
		return cells
	}
	for name, c := range map[string][2]study.Row{
		"naive":    {naive("s", of(0.001, 0.002, 0)), naive("s", of(0.1, 0.11, 0.12))},
		"cheap":    {cheap("s", of(0.97, 0.98, 0.96), of(1, 1.01, 0.99)), cheap("s", of(0.8, 0.81, 0.79), of(1, 1.01, 0.99))},
		"steadier": {steadier("s", of(1, 1.01, 0.99), of(1, 3, 0.2)), steadier("s", of(1, 3, 0.2), of(1, 3, 0.2))},
	} {
		if c[0].Verdict != study.Agrees || c[1].Verdict != study.Differs {
			t.Errorf("%s: %s where it is so, %s where not", name, c[0].Verdict, c[1].Verdict)
		}
	}
	if r := cheap("s", of(0.8, 0.81, 0.79), of(1, 1.01, 0.99)); r.Why == fewPopulations {
		t.Error("too few populations to tell, where the whole interval says that it differs")
	}
	if r := cheap("s", of(0.8, 1.1, 0.79), of(1, 1.01, 0.99)); r.Why != fewPopulations {
		t.Errorf("an interval across the limit: %s", r.Why)
	}
	if r := missing("s", "l", 2, "sentence", "why"); r.Verdict != study.Incomparable || *r.Paper != 2 || r.Measured != nil {
		t.Errorf("%+v", r)
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
			of[i] = norms{Ill: make([]float64, normBins), Well: make([]float64, normBins), People: [2]int{1, 999}, Times: v}
		}
		if rows := normRows(of, 0.002); len(rows) != 4 || rows[0].Verdict != c.want {
			t.Errorf("%v: %+v, want %s", c.times, rows, c.want)
		}
	}
	apart := func(well, ill float64, people [2]int) norms {
		return norms{Ill: binned([]float64{ill, ill}), Well: binned([]float64{well, well}), People: people, Times: 3}
	}
	for want, n := range map[study.Verdict]norms{study.Agrees: apart(0.1, 3, [2]int{3, 997}), study.Differs: apart(1.1, 0.9, [2]int{10, 990})} {
		for _, r := range normRows([]norms{n, n}, 0.002)[1:] {
			if r.Verdict != want {
				t.Errorf("%s: %s, want %s", r.Label, r.Verdict, want)
			}
		}
	}
	batch := batchChart(apart(0.1, 3, [2]int{6, 506}))
	if well, ill := batch.Series[0].Points, batch.Series[1].Points; len(ill) != 6 || len(well) != 506 || ill[0].Y < 2 || well[0].Y > 0.2 {
		t.Errorf("%d of a batch fall ill, %d do not: %+v, %+v", len(ill), len(well), ill[0], well[0])
	}
	if under, over := edges(1); edge(under) > 1 || edge(under+1) <= 1 || edge(over) < 1 || over-under > 1 {
		t.Errorf("1 is between bins %d and %d", under, over)
	}
	if rows := normRows([]norms{{Times: 3}, {}}, 0.002); rows != nil {
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
