package lab

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/coterie-fl/coterie/report/study"
)

// A claim agrees by its whole interval: a mean above 0 is not enough, and one seed says
// nothing.
func TestEffectsCanFail(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   study.Verdict
	}{
		{[]float64{1, 1.2, 0.9, 1.1}, study.Agrees},
		{[]float64{3, -2, 4, -1}, study.Differs}, // the mean is 1
		{[]float64{-1, -1.2, -0.9}, study.Differs},
		{[]float64{5}, study.Incomparable},
	} {
		if r := Effect(study.Row{Sentence: "s"}, c.values, 0); r.Verdict != c.want || c.want == study.Incomparable && r.Sentence != "" {
			t.Errorf("%v: %+v, want %s", c.values, r, c.want)
		}
	}
	wide, narrow := []float64{1, 9, -7, 4, -5, 8}, []float64{1, 1.1, 0.9, 1, 1.05, 0.95}
	for _, c := range []struct {
		a, b []float64
		want study.Verdict
	}{{wide, narrow, study.Agrees}, {narrow, wide, study.Differs}, {wide, wide, study.Differs}, {wide[:1], narrow, study.Incomparable}} {
		r := Wider(study.Row{Sentence: "s"}, c.a, c.b)
		if r.Verdict != c.want {
			t.Errorf("deviations of %v over %v: %+v, want %s", c.a, c.b, r, c.want)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("deviations of %v over %v: %v", c.a, c.b, err)
		}
	}
	less, more := []float64{1, 1.1, 0.9}, []float64{2.1, 2, 1.9}
	for _, c := range []struct {
		row  study.Row
		want study.Verdict
	}{
		{Times(study.Row{Sentence: "s"}, more, less, 1.5), study.Agrees}, {Times(study.Row{Sentence: "s"}, more, less, 2), study.Differs},
		{Times(study.Row{Sentence: "s"}, more[:1], less[:1], 1), study.Incomparable},
		{AtMost(study.Row{Sentence: "s"}, less, 1.5), study.Agrees}, {AtMost(study.Row{Sentence: "s"}, less, 1.05), study.Differs}, {AtMost(study.Row{Sentence: "s"}, less[:1], 2), study.Incomparable},
		{Within(study.Row{Sentence: "s"}, less, 0.7, 1.3), study.Agrees}, {Within(study.Row{Sentence: "s"}, less, 0.8, 1.3), study.Differs},
		{Within(study.Row{Sentence: "s"}, less, 0.7, 1.2), study.Differs}, {Within(study.Row{Sentence: "s"}, less[:1], 0, 2), study.Incomparable},
	} {
		if c.row.Verdict != c.want {
			t.Errorf("%+v, want %s", c.row, c.want)
		}
	}
	// 95 % intervals of a mean of four values: t is 3.182.
	if s := Interval([]float64{0, 2, 0, 2}); s.Middle != 1 || s.High-1 < 1.83 || s.High-1 > 1.84 {
		t.Errorf("interval %+v", s)
	}
}

// TestPrintedMeans: Welch's interval of two means, by hand: it has
// fewer degrees of freedom than seeds, and without a deviation of the text's it is ours alone.
func TestPrintedMeans(t *testing.T) {
	ours := []float64{9, 10, 11}
	for _, c := range []struct {
		printed Printed
		half    float64
	}{
		{Printed{12, 1, 5}, 2.70 * math.Sqrt(1./3+1./5)},    // 4.34 degrees: between t of 4, 2.776, and of 5, 2.571
		{Printed{12, 0, 5}, 4.303 * math.Sqrt(1./3)},        // 2 degrees
		{Printed{12, 100, 5}, 2.776 * math.Sqrt(1./3+2000)}, // 4 degrees, all theirs
	} {
		got := c.printed.Again(ours)
		if half := got.High - 10; got.Middle != 10 || math.Abs(half/c.half-1) > 0.01 || math.Abs(half-(10-got.Low)) > 1e-12 {
			t.Errorf("%+v: %+v, want half a width of %v", c.printed, got, c.half)
		}
	}
	if got := (Printed{12, 1, 5}).Again(ours[:1]); got != Exactly(9) {
		t.Errorf("one seed has an interval: %+v", got)
	}
}

// TestSharesAndRoundedFigures: five of five cases do not show a share above a half (2.5 % of
// such draws of a fair coin are ten of ten or so), and a printed figure has its last digit.
func TestSharesAndRoundedFigures(t *testing.T) {
	for _, c := range []struct {
		hits, cases int
		want        study.Verdict
	}{{5, 5, study.Differs}, {6, 6, study.Agrees}, {8, 10, study.Differs}, {10, 10, study.Agrees}, {0, 10, study.Differs}, {1, 1, study.Incomparable}} {
		if r := Share95(study.Row{Sentence: "s"}, c.hits, c.cases, 0.5); r.Verdict != c.want || *r.Low > *r.Measured || *r.High < *r.Measured {
			t.Errorf("%d of %d: %s, from %v to %v", c.hits, c.cases, r.Verdict, *r.Low, *r.High)
		}
	}
	for _, c := range []struct {
		value   float64
		printed string
		want    study.Verdict
	}{{9.94, "9.9", study.Agrees}, {9.86, "9.9", study.Agrees}, {9.96, "9.9", study.Differs}, {84.4, "84", study.Agrees}, {83.4, "84", study.Differs}} {
		if r, err := Rounded(study.Row{}, c.value, c.printed); err != nil || r.Verdict != c.want {
			t.Errorf("%v beside %s: %s, %v", c.value, c.printed, r.Verdict, err)
		}
	}
	if _, err := Rounded(study.Row{}, 1, "one"); err == nil {
		t.Error("a word is a figure")
	}
}
