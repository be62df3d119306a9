package account

import (
	"math"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

func pldBounds(t testing.TB, terms Terms, e event.Event, delta float64) (low, high float64) {
	t.Helper()
	a, err := NewPLD(terms)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Compose(releaseOn(terms, e)); err != nil {
		t.Fatal(err)
	}
	low, high, err = a.Bounds(delta)
	if err != nil {
		t.Fatal(err)
	}
	return low, high
}

func TestGoldenPLDPoisson(t *testing.T) {
	var file googleFile
	golden(t, "google_dp_accounting.json", &file)
	worst := 0.0
	for _, row := range file.B.Rows {
		for delta, want := range map[float64]float64{1e-5: float64(row.Eps1e5), 1e-6: float64(row.Eps1e6)} {
			if want == 0 {
				continue // left out there: above epsilon 150
			}
			low, high := pldBounds(t, exampleTerms, dpsgd(float64(row.NM), float64(row.Q), row.Steps), delta)
			if math.Abs(high-want) > math.Max(1e-3*want, 1e-4) {
				t.Errorf("noise %v rate %v steps %v delta %v: %v, want %v", row.NM, row.Q, row.Steps, delta, high, want)
			}
			if low > high || low > want {
				t.Errorf("noise %v rate %v steps %v delta %v: optimistic %v, pessimistic %v, want %v", row.NM, row.Q, row.Steps, delta, low, high, want)
			}
			if want > 0.01 {
				worst = math.Max(worst, apart(high, want))
			}
		}
	}
	t.Logf("largest relative difference: %.1e", worst)
}
