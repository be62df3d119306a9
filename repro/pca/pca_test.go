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
