package report

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestNiceTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		most   int
		want   string
	}{
		{0, 1, 5, "[0 0.2 0.4 0.6 0.8 1]"},
		{0, 85, 6, "[0 20 40 60 80]"},
		{-6.1, 10.4, 6, "[-5 0 5 10]"},
		{0, 2.544, 5, "[0 1 2]"},
		{0, 4096, 6, "[0 1000 2000 3000 4000]"},
		{1e-9, 6e-9, 5, "[1e-09 2e-09 3e-09 4e-09 5e-09 6e-09]"},
		{-1e6, 1e6, 4, "[-1e+06 -500000 0 500000 1e+06]"},
		{0.3, 0.3, 5, "[]"},
		{2, 1, 5, "[]"},
		{0, math.Inf(1), 5, "[]"},
		{math.NaN(), 1, 5, "[]"},
	} {
		ticks, _ := niceTicks(c.lo, c.hi, c.most)
		for i := range ticks { // compare what is shown, not the last bit
			ticks[i] = math.Round(ticks[i]*1e12) / 1e12
		}
		if got := fmt.Sprint(ticks); got != c.want {
			t.Errorf("niceTicks(%v, %v, %d) = %s, want %s", c.lo, c.hi, c.most, got, c.want)
		}
		if len(ticks) > c.most+1 {
			t.Errorf("niceTicks(%v, %v, %d): %d ticks", c.lo, c.hi, c.most, len(ticks))
		}
	}
	if ticks, _ := wholeTicks(0, 1.001, 6); fmt.Sprint(ticks) != "[0 1]" {
		t.Errorf("wholeTicks(0, 1.001) = %v, want [0 1]", ticks)
	}
}

func TestAxisLabels(t *testing.T) {
	for _, c := range []struct {
		d     domain
		kind  axisKind
		want  string
		title string
	}{
		{domain{0, 1}, realAxis, "[0.0 0.2 0.4 0.6 0.8 1.0]", "y"},
		{domain{-1, 1}, realAxis, "[−1.0 −0.5 0.0 0.5 1.0]", "y"},
		{domain{0, 12000}, wholeAxis, "[0 5000 10,000]", "y"},
		{domain{0, 2e6}, realAxis, "[0.0 0.5 1.0 1.5 2.0]", "y (×10⁶)"},
		{domain{1e-9, 4e-9}, realAxis, "[1 2 3 4]", "y (×10⁻⁹)"},
		{domain{7, 7}, realAxis, "[6.994 6.996 6.998 7.000 7.002 7.004 7.006]", "y"},
		{domain{0.5, 600}, logAxis, "[1 10 100]", "y"},
		{domain{3, 500}, logAxis, "[5 10 20 50 100 200 500]", "y"},
	} {
		a := newAxis(c.d, c.kind, 0, 100, 5)
		if c.d.lo == c.d.hi {
			a = newAxis(c.d, c.kind, 0, 100, 7)
		}
		if got := fmt.Sprint(a.labels); got != c.want {
			t.Errorf("%v: labels %s, want %s", c.d, got, c.want)
		}
		if got := a.titled("y"); got != c.title {
			t.Errorf("%v: title %q, want %q", c.d, got, c.title)
		}
		for _, tick := range a.ticks {
			if p := a.at(tick); !(p >= -1e-6 && p <= 100+1e-6) {
				t.Errorf("%v: tick %v stands at %v", c.d, tick, p)
			}
		}
	}
}

func TestSharedDomains(t *testing.T) {
	got, same := shared([]domain{{0, 1}, {1, 2}, noDomain()}, 2.5)
	if !same || got[0] != (domain{0, 2}) || got[2] != (domain{0, 2}) {
		t.Errorf("shared = %v, %v", got, same)
	}
	if got, same := shared([]domain{{0, 1}, {0, 9}}, 2.5); same || got[0] != (domain{0, 1}) {
		t.Errorf("shared keeps a domain that is squeezed: %v, %v", got, same)
	}
}

func TestThinLineKeepsExtremes(t *testing.T) {
	points := make([]point, 10000)
	for i := range points {
		points[i] = point{float64(i), math.Sin(float64(i))}
	}
	points[1234].y, points[8765].y = 50, -50
	got := thinLine(points, 100)
	if len(got) > 400 {
		t.Errorf("%d points left, want at most 400", len(got))
	}
	for _, want := range []point{points[0], points[1234], points[8765], points[9999]} {
		if !slices.Contains(got, want) {
			t.Errorf("%v is lost", want)
		}
	}
	if !slices.IsSortedFunc(got, func(a, b point) int { return int(a.x - b.x) }) {
		t.Error("points are out of order")
	}
}

func TestThinCloudKeepsTheOutermost(t *testing.T) {
	points := make([]point, 10000)
	for i := range points {
		points[i] = point{math.Cos(float64(i)), math.Sin(float64(i))}
	}
	points[77], points[78], points[79], points[81] = point{9, 0}, point{-9, 0}, point{0, 9}, point{0, -9}
	got := thinCloud(points, 500)
	if len(got) > 510 {
		t.Errorf("%d points left", len(got))
	}
	for _, want := range []int{77, 78, 79, 81} {
		if !slices.Contains(got, want) {
			t.Errorf("point %d is lost", want)
		}
	}
	if got := thinCloud(points[:20], 500); len(got) != 20 {
		t.Errorf("%d of 20 points left", len(got))
	}
}

// Sums of 0.4 differ in the last bit; bars must not.
func TestBinsHoldNumbersOfReleases(t *testing.T) {
	var values []float64
	total := 0.0
	for range 7 {
		values = append(values, total, total)
		total += 0.4
	}
	b := binned(values, 0.4)
	if got := fmt.Sprint(b.counts); got != "[2 2 2 2 2 2 2]" {
		t.Errorf("counts %s", got)
	}
	values = nil
	for i := range 10000 {
		values = append(values, 0.4*float64(i/10))
	}
	b = binned(values, 0.4)
	sum := 0
	for _, n := range b.counts {
		sum += n
	}
	if sum != 10000 || len(b.counts) > mostBins {
		t.Errorf("%d clients in %d bins", sum, len(b.counts))
	}
}

func TestNumbersForPeople(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{rounded(0.59712), "0.597"}, {rounded(3.0561), "3.06"}, {rounded(1466.2), "1466"}, {rounded(12345678), "1.23×10⁷"},
		{rounded(1234567), "1,234,567"}, {rounded(0.000012), "1.2×10⁻⁵"}, {rounded(-2.5), "−2.5"}, {rounded(0), "0"},
		{rounded(9.9996), "10"}, {rounded(math.NaN()), "unknown"}, {rounded(math.Inf(1)), "unlimited"},
		{cost(0.4 + 0.4 + 0.4 + 0.4 + 0.4 + 0.4), "2.4"}, {cost(2.40001), "2.401"}, {cost(math.Inf(1)), "unlimited"},
		{cost(0), "0"}, {cost(120659), "120,700"}, {cost(1e-310), "1×10⁻³¹⁰"}, {count(10000), "10,000"}, {count(4096), "4096"}, {count(-3), "−3"},
		{counted(1, "client", "clients"), "1 client"}, {counted(0, "client", "clients"), "0 clients"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
