package fairness

import (
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/report/study"
)

// TestFairnessClaimsCanFail: every sentence on a metric can agree, and can not.
func TestFairnessClaimsCanFail(t *testing.T) {
	verdicts := func(of func(k int, nu float64, seed int) float64) map[string]study.Verdict {
		out := map[string]study.Verdict{}
		for _, r := range differences[0].claimRows("A", "a reason", []float64{0, 4}, func(k int, nu float64) (cells []cell) {
			for seed := range 4 {
				v := of(k, nu, seed) + 0.001*float64(seed%2)*float64(k)
				cells = append(cells, cell{Opportunity: &v})
			}
			return cells
		}) {
			out[r.Label] = r.Verdict
		}
		return out
	}
	as := verdicts(func(k int, nu float64, seed int) float64 { return 0.6/float64(k) + 0.01*nu + 0.001*float64(seed)*nu })
	other := verdicts(func(k int, nu float64, seed int) float64 { return 0.1*float64(k) - 0.001*nu*float64(seed) })
	if len(as) != 5 {
		t.Errorf("%d claims", len(as))
	}
	for label := range as {
		if as[label] != study.Agrees || other[label] != study.Differs {
			t.Errorf("%s: %s as the papers have it, %s otherwise", label, as[label], other[label])
		}
	}
	traded := verdicts(func(k int, nu float64, seed int) float64 { return 0.6/float64(k) + 0.05*nu*float64(k-1) })
	for label, v := range traded {
		if strings.Contains(label, "half of what") && v != study.Differs {
			t.Errorf("noise takes two thirds: %s", v)
		}
	}
}

// TestMinorityClaimsCanFail: what the papers say of the minority can agree, and can not.
func TestMinorityClaimsCanFail(t *testing.T) {
	verdicts := func(one, two, noise float64) (out []study.Verdict) {
		for _, r := range minorityRows("A", "most", "few", []float64{0, 4}, func(k int, nu float64) (by [][]float64) {
			for seed := range 4 {
				m := []float64{one, two}[k-1] + noise*nu + 0.001*float64(seed*k)*nu
				by = append(by, []float64{0.1, m})
			}
			return by
		}) {
			out = append(out, r.Verdict)
		}
		return out
	}
	if got := verdicts(0.5, 0.2, 0.01); !slices.Equal(got, []study.Verdict{study.Agrees, study.Agrees, study.Agrees}) {
		t.Errorf("as the papers have it: %v", got)
	}
	if got := verdicts(0.05, 0.1, -0.01); !slices.Equal(got, []study.Verdict{study.Differs, study.Differs, study.Differs}) {
		t.Errorf("otherwise: %v", got)
	}
	if rows := minorityRows("A", "most", "few", []float64{0, 4}, func(int, float64) [][]float64 { return nil }); rows != nil {
		t.Errorf("without a minority: %+v", rows)
	}
}

func TestMissed(t *testing.T) {
	if m := missed([]int{1, 0, 1, 1}, []int{0, 0, 1, 1}); !slices.Equal(m, []float64{0.5, 1}) {
		t.Errorf("%v", m)
	}
	if m := missed([]int{1, 0}, []int{0, 0}); m != nil {
		t.Errorf("nobody of the second group: %v", m)
	}
	groups := [][]int{{0, 1}, {0, 0}}
	if by := missedBy([]cell{{Wrong: []int{0, 1}}, {Wrong: []int{0, 1}}}, groups); len(by) != 1 || by[0][1] != 1 {
		t.Errorf("%v", by)
	}
}

// TestNotableClaimCanFail: noise that moves synthetic data more, and less.
func TestNotableClaimCanFail(t *testing.T) {
	synthetic := map[string][]float64{"A": {0.3, 0.31, 0.32}, "B": {0.01, 0.02, 0.03}}
	rows := notableRows("letters", synthetic, []float64{0.1, 0.11, 0.1})
	if len(rows) != 2 || rows[0].Verdict != study.Agrees || rows[1].Verdict != study.Differs {
		t.Errorf("%+v", rows)
	}
	v := func(x float64) *float64 { return &x }
	rise := riseOf(func(k int, nu float64) []cell {
		return []cell{{Parity: v(nu), Opportunity: v(float64(k) * nu), Odds: v(0)}}
	}, 1)
	if len(rise) != 1 || rise[0] < 5./6-1e-9 || rise[0] > 5./6+1e-9 { // (1+1+0 + 1+2+0) / 6
		t.Errorf("%v", rise)
	}
}

// TestFigure6: each group, and both, on the same axes.
func TestFigure6(t *testing.T) {
	charts := loanData()
	if len(charts) != 6 {
		t.Fatalf("%d charts", len(charts))
	}
	for i, want := range []int{2, 2, 4, 2, 2, 4} {
		if len(charts[i].Series) != want || len(charts[i].Reach) != len(charts[i/3*3].Reach) {
			t.Errorf("%s has %d series", charts[i].Title, len(charts[i].Series))
		}
	}
}
