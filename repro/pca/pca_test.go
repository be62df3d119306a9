package pca

import (
	"math"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/repro/lab/labtest"
)

// TestBothEndsCost: where long rows point elsewhere than short ones, the study finds an
// interior best clip; and the thesis's formula keeps what it claims up to p = 1 only. Seeds
// are fixed: the figures repeat.
func TestBothEndsCost(t *testing.T) {
	o := labtest.Options(t, lab.Smoke)
	o.Seeds = 8
	l := labtest.New(t, dpPCA, o)
	s, err := run(l)
	if err != nil {
		t.Fatal(err)
	}
	claims := 0
	for _, r := range s.Rows {
		printed := strings.HasPrefix(r.Section, "As printed")
		bought := strings.HasPrefix(r.Section, drawnName) && !strings.Contains(r.Section, "epsilon 3") && strings.Contains(r.Label, "lost")
		want := study.Agrees
		if printed && r.Settings["p"].(float64) > 1 {
			want = study.Differs
		}
		if (printed || bought) && r.Verdict != want {
			t.Errorf("%s, %s: %v is said to %s", r.Section, r.Label, *r.Measured, r.Verdict)
		}
		if bought {
			claims++
		}
	}
	if claims != 6 || len(s.Charts) != 6 {
		t.Errorf("%d claims on drawn rows, %d charts", claims, len(s.Charts))
	}
}

// TestSumsAreThoseOfClippedRows: reading the rows once for all clips gives what clipping
// every row by itself does; and noise is the mechanism's.
func TestSumsAreThoseOfClippedRows(t *testing.T) {
	s := drawn()
	s.train[0] = s.train[0].Pick([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	m, err := s.sum()
	if err != nil {
		t.Fatal(err)
	}
	for i, clip := range m.clips {
		plain, want := mech.NewPlainMoments(s.features), make([]float64, len(m.plain))
		err := s.each(s.train, func(x []float64) error {
			row := append([]float64(nil), x...)
			if _, err := mech.Clip(row, clip); err != nil {
				return err
			}
			return plain.Add(row)
		})
		if err == nil {
			err = plain.Unprotected(want)
		}
		if err != nil {
			t.Fatal(err)
		}
		for j, v := range want {
			if math.Abs(m.clipped[i][j]-v) > 1e-12*clip*clip*10 {
				t.Fatalf("clip %v: value %d is %v, not %v", clip, j, m.clipped[i][j], v)
			}
		}
	}
	noise, err := account.AnalyticNoise(1, delta, 1, event.AddRemove)
	if err != nil {
		t.Fatal(err)
	}
	var square, n float64
	for seed := range 20 {
		out, err := m.noised(4, 1, math.Sqrt2, seed)
		if err != nil {
			t.Fatal(err)
		}
		for j, v := range out {
			square, n = square+(v-m.clipped[4][j])*(v-m.clipped[4][j]), n+1
		}
	}
	// With the same noise everywhere; a right one fails with probability 1e-6.
	if got, want := math.Sqrt(square/n), noise*m.clips[4]*m.clips[4]; math.Abs(got/want-1) > 4.9/math.Sqrt(2*n) {
		t.Errorf("noise has a deviation of %v, want %v", got, want)
	}
}

// made is a result whose clips take so much of the sum, and capture so much at the smallest and
// the largest epsilon.
func made(biases [2]float64, strong, weak []float64) *result {
	r := &result{set: &set{name: "made"}, components: []int{1}, cells: map[at][]cell{}}
	for clip := range steps {
		bias := biases[0]
		if clip == len(steps)-1 {
			bias = biases[1]
		}
		r.cells[at{clip, math.Inf(1)}] = []cell{{Error: bias, Captured: []float64{1}}}
		for i, epsilon := range epsilons[:len(epsilons)-1] {
			captured := weak
			if i == 0 {
				captured = strong
			}
			for _, v := range captured {
				r.cells[at{clip, epsilon}] = append(r.cells[at{clip, epsilon}], cell{Captured: []float64{v}})
			}
		}
	}
	return r
}

// TestSentences: a clip that takes little at the smallest p, or much at the largest, differs
// from the text; and so does an epsilon that costs nothing.
func TestSentences(t *testing.T) {
	for _, c := range []struct {
		biases       [2]float64
		small, large study.Verdict
	}{{[2]float64{0.9, 0}, study.Agrees, study.Agrees}, {[2]float64{0.2, 0.1}, study.Differs, study.Differs}} {
		rows := made(c.biases, []float64{1, 1}, []float64{1, 1}).biasRows()
		if len(rows) != 2 || rows[0].Verdict != c.small || rows[1].Verdict != c.large {
			t.Errorf("%v: %+v", c.biases, rows)
		}
	}
	for want, weak := range map[study.Verdict][]float64{study.Agrees: {0.9, 0.91, 0.89}, study.Differs: {0.8, 0.3, 0.9}} {
		if r := made([2]float64{}, []float64{0.5, 0.5, 0.5}, weak).tradeRow(); r.Verdict != want {
			t.Errorf("%v: %+v", weak, r)
		}
	}
}
