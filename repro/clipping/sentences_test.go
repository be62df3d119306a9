package clipping

import (
	"math"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// bookOf has figures of a task's methods at epsilon 3, one for every seed, of the settings that
// the best one is sought among.
func bookOf(of task, figures map[method][]float64) book {
	b := book{task: of, cells: map[key]record{}, whole: true}
	for m, values := range figures {
		for _, s := range of.expected(b.place(m, 3, 5)) {
			for i, v := range values {
				k := key{Study: of.kind, Method: m, Epsilon: 3, Runs: runsOf(m, 5), Setting: s, Seed: uint64(i + 1), Steps: of.steps()}
				b.cells[k] = record{Value: outcome{Figure: event.Number(v)}, Seconds: 10}
			}
		}
	}
	return b
}

// TestComparable: a point behind the best of the others is comparable with narrow seeds, two
// are not, and an error may be a tenth larger; the others' worst does not matter.
func TestComparable(t *testing.T) {
	others := map[method][]float64{threshold: {80, 80, 80}, quantile: {70, 70, 70}, adamWOSM: {90, 90, 90}}
	for name, c := range map[string]struct {
		task   task
		online []float64
		want   study.Verdict
	}{
		"level":      {digits, []float64{89.5, 89.6, 89.4}, study.Agrees},
		"ahead":      {digits, []float64{95, 95, 95}, study.Agrees},
		"behind":     {digits, []float64{88, 88.1, 87.9}, study.Differs},
		"wide":       {digits, []float64{80, 99, 95}, study.Differs},
		"error":      {clothes, []float64{72, 72, 72}, study.Agrees}, // 70 is the least
		"more error": {clothes, []float64{90, 90, 90}, study.Differs},
		"one seed":   {digits, []float64{95}, study.Incomparable},
	} {
		others[online] = c.online
		if r := bookOf(c.task, others).comparable(3, 0, "known"); r.Verdict != c.want {
			t.Errorf("%s: %+v, want %s", name, r, c.want)
		}
	}
	delete(others, quantile)
	if r := bookOf(digits, others).comparable(3, 0, ""); r.Measured != nil {
		t.Errorf("without FixedQuantile's cells: %+v", r)
	}
}

// TestSmallClip: the best clips of the seeds are small or not.
func TestSmallClip(t *testing.T) {
	for _, c := range []struct {
		best []float64 // clip that is best, seed by seed
		want study.Verdict
		told float64
	}{
		{[]float64{0.01, 0.01, 0.01}, study.Agrees, 0.01},
		{[]float64{0.01, 0.01, 0.1}, study.Differs, 0.0215}, // seeds that do not tell
		{[]float64{1, 1, 1}, study.Differs, 1},
		{[]float64{0.01, 0.1, 100}, study.Differs, 0.464},
	} {
		b := bookOf(news, map[method][]float64{adamWOSM: make([]float64, len(c.best))})
		for k, r := range b.cells {
			if k.Setting.Clip == c.best[k.Seed-1] {
				r.Value.Figure = 80
				b.cells[k] = r
			}
		}
		r := b.smallClip(adamWOSM, 3)
		if r.Verdict != c.want || math.Abs(float64(*r.Measured)/c.told-1) > 0.01 || !strings.Contains(r.Why, "Tested by") {
			t.Errorf("%v: %+v, want %s", c.best, r, c.want)
		}
	}
	if r := bookOf(news, nil).smallClip(adamWOSM, 3); r.Measured != nil {
		t.Errorf("without cells: %+v", r)
	}
}

// TestBurden: runs of Online may take a little longer than those of FixedThreshold on the same
// kernel; another kernel's do not count.
func TestBurden(t *testing.T) {
	for seconds, want := range map[float64]study.Verdict{11: study.Agrees, 15: study.Differs} {
		b := bookOf(digits, map[method][]float64{online: {1, 1, 1}, threshold: {1, 1, 1}})
		for k, r := range b.cells {
			if k.Method == online {
				r.Seconds = seconds
				b.cells[k] = r
				k.Setting.Step, r.Kernel, r.Seconds = 3.162, "another", 1000
				b.cells[k] = r
			}
		}
		if r := b.burden(); r.Verdict != want || math.Abs(float64(*r.Measured)-seconds/10) > 1e-9 {
			t.Errorf("%v s over 10 s: %+v, want %s", seconds, r, want)
		}
	}
	if r := bookOf(digits, nil).burden(); r.Measured != nil {
		t.Errorf("without cells: %+v", r)
	}
}

// TestUnknownsDoNotWait: a sentence that nothing can be held against is a row with its reason,
// and not one that waits for cells.
func TestUnknownsDoNotWait(t *testing.T) {
	for _, task := range []task{digits, clothes, news} {
		b := book{task: task, whole: true}
		judged, _ := b.claimRows()
		if len(judged) < 2 {
			t.Errorf("%s: %d rows", task.kind, len(judged))
		}
		for _, r := range judged {
			if r.Verdict != study.Incomparable || r.Note == "" || r.Sentence != "" {
				t.Errorf("%s: %+v", task.kind, r)
			}
		}
	}
}

// TestOpposite: a clip that turns the gradient round in all seeds is found, wherever it is.
func TestOpposite(t *testing.T) {
	seeds := func(lowest ...float64) (out [][]look) {
		for _, v := range lowest {
			out = append(out, []look{{Steps: 1, Clips: []float64{1, 2}, Cosine: []float64{0.3, 0.2}}, {Steps: 2, Clips: []float64{1, 2}, Cosine: []float64{v, 0.2}}})
		}
		return out
	}
	for want, cells := range map[study.Verdict][][]look{
		study.Agrees: seeds(-0.1, -0.11, -0.09), study.Differs: seeds(-0.1, 0.1, -0.2), study.Incomparable: seeds(-0.1),
	} {
		if r := opposite(cells); r.Verdict != want {
			t.Errorf("%+v, want %s", r, want)
		}
	}
	if r := opposite(seeds(0.05, 0.06, 0.04)); r.Verdict != study.Differs {
		t.Errorf("all cosines are above 0: %+v", r)
	}
}

// TestBothEndsOfTheClip: the best cosine over each end's.
func TestBothEndsOfTheClip(t *testing.T) {
	at := func(seeds ...[3]float64) (out []look) {
		for _, c := range seeds {
			out = append(out, look{Clips: []float64{0.01, 1, 100}, Cosine: c[:]})
		}
		return out
	}
	verdicts := func(of []look) (out []study.Verdict) {
		curve := lab.Curve("", of[0].Clips, func(j int) lab.Spread {
			return lab.MeanAndDeviation(lab.Pick(of, func(c look) float64 { return c.Cosine[j] }))
		})
		for _, r := range cosineRows(of, curve) {
			if strings.HasPrefix(r.Label, "best cosine less that") {
				out = append(out, r.Verdict)
			}
		}
		return out
	}
	got := verdicts(at([3]float64{0.1, 0.2, 0.21}, [3]float64{0.11, 0.2, 0.15}, [3]float64{0.1, 0.2, 0.19}))
	if len(got) != 2 || got[0] != study.Agrees || got[1] != study.Differs {
		t.Errorf("half at the small end, and nobody knows at the large one: %v", got)
	}
}

// TestSharesOfAGrid: what is no larger, and what q costs too much of, differs.
func TestSharesOfAGrid(t *testing.T) {
	if r := moreThanOne(study.Row{}, 1); r.Verdict != study.Differs {
		t.Errorf("one is more than one: %+v", r)
	}
	for alone, want := range map[float64]study.Verdict{2.9: study.Agrees, 2.8: study.Differs} {
		if r := costOfQ("", 3, alone); r.Verdict != want {
			t.Errorf("%v of 3: %+v", alone, r)
		}
	}
}
