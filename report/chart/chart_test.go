package chart

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
		ticks, _ := NiceTicks(c.lo, c.hi, c.most)
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
		d     Domain
		kind  Kind
		want  string
		title string
	}{
		{Domain{0, 1}, Real, "[0.0 0.2 0.4 0.6 0.8 1.0]", "y"},
		{Domain{-1, 1}, Real, "[−1.0 −0.5 0.0 0.5 1.0]", "y"},
		{Domain{0, 12000}, Whole, "[0 5000 10,000]", "y"},
		{Domain{0, 2e6}, Real, "[0.0 0.5 1.0 1.5 2.0]", "y (×10⁶)"},
		{Domain{1e-9, 4e-9}, Real, "[1 2 3 4]", "y (×10⁻⁹)"},
		{Domain{7, 7}, Real, "[6.994 6.996 6.998 7.000 7.002 7.004 7.006]", "y"},
		{Domain{0.5, 600}, Log, "[1 10 100]", "y"},
		{Domain{3, 500}, Log, "[5 10 20 50 100 200 500]", "y"},
		{Domain{1e-9, 2}, Log, "[10⁻⁹ 10⁻⁷ 10⁻⁵ 0.001 0.1]", "y"},
		{Domain{0.07, 0.11}, Log, "[0.07 0.08 0.09 0.1 0.11]", "y"},
		{Domain{0.0062, 0.011}, Log, "[0.007 0.008 0.009 0.01 0.011]", "y"},
	} {
		a := NewAxis(c.d, c.kind, 0, 100, 5)
		if c.d.Lo == c.d.Hi {
			a = NewAxis(c.d, c.kind, 0, 100, 7)
		}
		if got := fmt.Sprint(a.Labels); got != c.want {
			t.Errorf("%v: labels %s, want %s", c.d, got, c.want)
		}
		if got := a.titled("y"); got != c.title {
			t.Errorf("%v: title %q, want %q", c.d, got, c.title)
		}
		for _, tick := range a.Ticks {
			if p := a.At(tick); !(p >= -1e-6 && p <= 100+1e-6) {
				t.Errorf("%v: tick %v stands at %v", c.d, tick, p)
			}
		}
	}
}

func TestSharedDomains(t *testing.T) {
	got, same := SharedDomains([]Domain{{0, 1}, {1, 2}, NoDomain()}, 2.5)
	if !same || got[0] != (Domain{0, 2}) || got[2] != (Domain{0, 2}) {
		t.Errorf("shared = %v, %v", got, same)
	}
	if got, same := SharedDomains([]Domain{{0, 1}, {0, 9}}, 2.5); same || got[0] != (Domain{0, 1}) {
		t.Errorf("shared keeps a domain that is squeezed: %v, %v", got, same)
	}
}

func TestThinLineKeepsExtremes(t *testing.T) {
	points := make([]Point, 10000)
	for i := range points {
		points[i] = Point{float64(i), math.Sin(float64(i))}
	}
	points[1234].Y, points[8765].Y = 50, -50
	got := ThinLine(points, 100)
	if len(got) > 400 {
		t.Errorf("%d points left, want at most 400", len(got))
	}
	for _, want := range []Point{points[0], points[1234], points[8765], points[9999]} {
		if !slices.Contains(got, want) {
			t.Errorf("%v is lost", want)
		}
	}
	if !slices.IsSortedFunc(got, func(a, b Point) int { return int(a.X - b.X) }) {
		t.Error("points are out of order")
	}
}

func TestThinCloudKeepsTheOutermost(t *testing.T) {
	points := make([]Point, 10000)
	for i := range points {
		points[i] = Point{math.Cos(float64(i)), math.Sin(float64(i))}
	}
	points[77], points[78], points[79], points[81] = Point{9, 0}, Point{-9, 0}, Point{0, 9}, Point{0, -9}
	got := ThinCloud(points, 500)
	if len(got) > 510 {
		t.Errorf("%d points left", len(got))
	}
	for _, want := range []int{77, 78, 79, 81} {
		if !slices.Contains(got, want) {
			t.Errorf("point %d is lost", want)
		}
	}
	if got := ThinCloud(points[:20], 500); len(got) != 20 {
		t.Errorf("%d of 20 points left", len(got))
	}
}

// Axis titles are whole, however long, and no line is wider than the frame.
func TestAxisTitlesAreNotCut(t *testing.T) {
	text := regexp.MustCompile(`<text class="title"[^>]* y="([0-9.]+)"( textLength="[0-9]+")?[^>]*>([^<]*)</text>`)
	for _, title := range []string{"round", "target epsilon of every silo (heuristic, add-remove) (log scale)", strings.Repeat("word ", 30) + "end", strings.Repeat("x", 80)} {
		var c Canvas
		axis := NewAxis(Domain{0, 1e7}, Real, PlotLeft, PlotRight, 5)
		c.Frame(axis, NewAxis(Domain{0, 1}, Real, PlotBottom, PlotTop, 5), title, title)
		var whole []string
		for _, m := range text.FindAllStringSubmatch(c.Elements(), -1) {
			whole = append(whole, m[3])
			if wide := letterWidth * float64(len(m[3])); wide > PlotRight && m[2] == "" {
				t.Errorf("%q is %.0f wide", m[3], wide)
			}
			at, err := strconv.ParseFloat(m[1], 64)
			if err != nil || at > PlotTop-8 && at < PlotBottom+28 || at > Height-2 || at < 9 {
				t.Errorf("%q stands at %s", m[3], m[1])
			}
		}
		if got := strings.Join(whole, " "); !strings.HasPrefix(got, title+" "+title) {
			t.Errorf("%q is drawn as %q", title, got)
		}
	}
}
