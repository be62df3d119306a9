package groupprivacy

import (
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
)

// madeUp is figure 4 with errors of one's own making, in dollars.
func madeUp(of func(nu float64, k, seed int) float64) hospitalFigure {
	f := hospitalFigure{hospitalModels, hospitalNoise, map[hospitalKey][]cell{}}
	for _, nu := range f.noise {
		for _, k := range f.models {
			for seed := range 10 {
				f.cells[hospitalKey{nu, k}] = append(f.cells[hospitalKey{nu, k}], cell{
					Validation: event.Number(of(nu, k, seed) / data.HospitalDollars), Budgets: []budget{{0, 2}, {event.Number(11 / max(nu, 0.01)), 3}},
				})
			}
		}
	}
	return f
}

func rowsOfFigure(f hospitalFigure) map[string]study.Verdict {
	out := map[string]study.Verdict{}
	rows := append(f.order(0), f.choices()...)
	for _, r := range append(append(rows, f.noiseRows()...), f.sizes(&data.Federation{})...) {
		out[r.Label] = r.Verdict
	}
	return out
}

// TestHospitalClaimsCanFail: every sentence on figure 4 can agree, and can not.
func TestHospitalClaimsCanFail(t *testing.T) {
	level := map[int]float64{1: 1500, 3: 900, 5: 800, 7: 750}
	wobble := func(seed int) float64 { return []float64{-1, 1, -0.5, 0.5, 0.2, -0.2, 0.7, -0.7, 0.1, -0.1}[seed] }
	as := rowsOfFigure(madeUp(func(nu float64, k, seed int) float64 {
		if nu == 3 && k == 3 && seed == 0 {
			return level[1] // all clients in one cluster
		}
		spread := 1 + 2*nu
		if k < 5 {
			spread *= 4
		}
		return level[k] + 50*nu/float64(k+4) + wobble(seed)*spread
	}))
	for label, v := range as {
		if want := study.Agrees; v != want && !strings.HasPrefix(label, "clients") {
			t.Errorf("as the texts have it, %s: %s", label, v)
		}
	}
	other := rowsOfFigure(madeUp(func(nu float64, k, seed int) float64 {
		return 700 + 10*float64(k) - 5*nu*float64(10-k) + (1+0.5*float64(k))*wobble(seed)
	}))
	// These cannot be false together with the others.
	apart := func(label string) bool {
		return strings.Contains(label, "leakage of one release") || strings.HasSuffix(label, "over nu 0, less 1") || strings.HasPrefix(label, "1 model without noise") || strings.Contains(label, "within a tenth")
	}
	for label, v := range other {
		want := study.Differs
		if strings.HasPrefix(label, "clients") {
			want = study.Incomparable
		}
		if v != want && !apart(label) {
			t.Errorf("otherwise, %s: %s", label, v)
		}
	}
	f := madeUp(func(nu float64, k, seed int) float64 { return level[k] + 200*nu + wobble(seed) })
	f.cells[hospitalKey{5, 7}][0].Budgets = []budget{{1, 1}}
	for label, v := range rowsOfFigure(f) {
		if apart(label) && v != study.Differs {
			t.Errorf("much noise, %s: %s", label, v)
		}
	}
}

// TestNearOne: what is within a tenth of one model's error, or above it.
func TestNearOne(t *testing.T) {
	if n := nearOne([]float64{100, 91, 89, 150}, []float64{100, 100, 100, 100}); n != 3 {
		t.Errorf("%d of 4", n)
	}
	f := madeUp(func(nu float64, k, seed int) float64 { return 100 * float64(k) })
	rows := f.kept(f.cells)
	if len(rows) != 2 || *rows[0].Measured != 1 || rows[0].Verdict != study.NoNumber {
		t.Errorf("%+v", rows)
	}
}
