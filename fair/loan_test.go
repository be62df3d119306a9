package fair

import (
	"math"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/internal/rng"
)

func TestLoanLabel(t *testing.T) {
	tiny := math.SmallestNonzeroFloat64
	for _, c := range []struct {
		group int
		y     float64
		want  int
	}{
		{LoanPrivileged, 0, 1}, {LoanPrivileged, tiny, 1}, {LoanPrivileged, -tiny, 0}, {LoanPrivileged, 20, 1}, {LoanPrivileged, -900, 0},
		{LoanUnprivileged, 15, 1}, {LoanUnprivileged, math.Nextafter(15, 16), 0}, {LoanUnprivileged, 14, 1},
		{LoanUnprivileged, 20, 0}, {LoanUnprivileged, -900, 1},
	} {
		if got, err := LoanLabel(c.group, c.y); err != nil || got != c.want {
			t.Errorf("group %d, y = %v: label %d, %v, want %d", c.group, c.y, got, err, c.want)
		}
	}
	for _, y := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if _, err := LoanLabel(LoanPrivileged, y); err == nil || !strings.Contains(err.Error(), "must be finite") {
			t.Errorf("y = %v: error %v", y, err)
		}
	}
	for _, group := range []int{-1, 2} {
		if _, err := LoanLabel(group, 1); err == nil || !strings.Contains(err.Error(), "no group") {
			t.Errorf("group %d: error %v", group, err)
		}
	}
}

// TestLoanBaseRates: even a perfect predictor is not at parity in the loan study,
// because the groups' base rates differ: by E[Phi(u/s1)] - E[Phi(-u/s2)], where
// the values x·theta of a group have the standard deviation s. The paper leaves
// the distribution of x open; here it is N(0, 1), and N(0, 9).
func TestLoanBaseRates(t *testing.T) {
	const n = 400_000
	theta := [2][2]float64{{5, 6}, {4, -4.5}}
	for _, sd := range []float64{1, 3} {
		family := rng.NewFamily(9, "test loan")
		src := family.Stream(int(sd), 0)
		var rate, want [2]float64
		for group, th := range theta {
			shift := float64(LoanShift * group)
			for range n {
				y := sd*(th[0]*src.Normal()+th[1]*src.Normal()) + shift + src.Float64()
				label, err := LoanLabel(group, y)
				if err != nil {
					t.Fatal(err)
				}
				rate[group] += float64(label) / n
			}
			s := sd * math.Hypot(th[0], th[1])
			// The mean of Phi(u/s) over u in [0, 1) by the midpoint rule.
			for i := range 1000 {
				want[group] += 0.5 * math.Erfc(-(float64(i)+0.5)/1000/s/math.Sqrt2) / 1000
			}
		}
		want[1] = 1 - want[1]
		for group := range rate {
			if slack := 4.8916 * 0.5 / math.Sqrt(n); math.Abs(rate[group]-want[group]) > slack { // two-sided 1e-6
				t.Errorf("x with deviation %v, group %d: base rate %v, want %v", sd, group, rate[group], want[group])
			}
		}
		t.Logf("x with deviation %v: a perfect predictor has a parity difference of %.4f", sd, want[0]-want[1])
	}
}
