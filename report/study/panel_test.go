package study

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/report/chart"
)

func tracesFor(c Chart) ([]trace, chart.Axis, chart.Axis) {
	traces := tracesOf(c, newLooks([]Chart{c}))
	ax, ay := axesOf(c, traces)
	return traces, ax, ay
}

func TestFiguresOfARow(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name string
		row  Row
		want rowFigures
	}{
		{"nothing", Row{}, rowFigures{"–", "–", ""}},
		{"dollars", Row{Measured: number(912.4), Low: number(873.2), High: number(951.1)}, rowFigures{"–", "912", "[873, 951]"}},
		{"narrow spread", Row{Paper: number(0.987), Measured: number(0.98712), Low: number(0.9868), High: number(0.9874)}, rowFigures{"0.987", "0.98712", "[0.98680, 0.98740]"}},
		{"equal decimals", Row{Measured: number(7.9), Low: number(6.6), High: number(9)}, rowFigures{"–", "7.9", "[6.6, 9.0]"}},
		{"across zero", Row{Measured: number(0.8), Low: number(-1.9), High: number(3.4)}, rowFigures{"–", "0.80", "[−1.90, 3.40]"}},
		{"no width", Row{Measured: number(2.4), Low: number(2.4), High: number(2.4)}, rowFigures{"–", "2.4", "[2.4, 2.4]"}},
		{"small against its spread", Row{Measured: number(0.0012), Low: number(0.0011), High: number(25)}, rowFigures{"–", "0.0012", "[0.0011, 25.0000]"}},
		{"infinite", Row{Paper: number(inf), Measured: number(-inf), Low: number(-inf), High: number(3)}, rowFigures{"∞", "−∞", "[−∞, 3]"}},
		{"half a spread", Row{Measured: number(1), High: number(3)}, rowFigures{"–", "1", "[–, 3]"}},
		{"parameters", Row{Paper: number(1206590), Measured: number(1206590)}, rowFigures{"1,206,590", "1,206,590", ""}},
		{"powers of ten", Row{Paper: number(1.5e-5), Measured: number(1.234e-5), Low: number(1e-5), High: number(2e-5)}, rowFigures{"1.5×10⁻⁵", "1.23×10⁻⁵", "[1×10⁻⁵, 2×10⁻⁵]"}},
		{"differs in the fourth digit", Row{Paper: number(0.987), Measured: number(0.98712), Verdict: Differs}, rowFigures{"0.987", "0.9871", ""}},
		{"agrees in three", Row{Paper: number(0.987), Measured: number(0.98712), Verdict: Agrees}, rowFigures{"0.987", "0.987", ""}},
		{"differs from nothing", Row{Verdict: Differs}, rowFigures{"–", "–", ""}},
		{"no negative zero", Row{Measured: number(-0.001), Low: number(-3), High: number(3)}, rowFigures{"–", "−0.0010", "[−3.0000, 3.0000]"}},
	} {
		if got := figuresOf(c.row); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Bars of one metric share a scale; what is larger lies farther to the right.
func TestRangeBarsShareAScale(t *testing.T) {
	rows := []Row{
		{Metric: "a", Measured: number(10), Low: number(8), High: number(12), Paper: number(20)},
		{Metric: "a", Measured: number(15)},
		{Metric: "b", Measured: number(1), Low: number(0), High: number(9)},
		{Metric: "c", Measured: number(1), Paper: number(1000)},
		{Metric: "d", Measured: number(math.Inf(1)), Paper: number(3)},
	}
	scales := barScales(rows)
	a := scales[scaleOf(rows[0])]
	if a.Domain != (chart.Domain{Lo: 8, Hi: 20}) || a.Kind != chart.Real || !(a.At(10) < a.At(15)) || a.At(20) != rangeWidth-rangeMargin {
		t.Errorf("scale of a: %+v", a)
	}
	if _, ok := scales[scaleOf(rows[2])]; ok {
		t.Error("a figure alone has a scale")
	}
	if scales[scaleOf(rows[3])].Kind != chart.Log {
		t.Error("a thousandfold range is not logarithmic")
	}
	if rangeBar(rows[4], scales[scaleOf(rows[4])]) != "" {
		t.Error("an infinite figure has a bar")
	}
	if bar := string(rangeBar(rows[0], a)); !strings.Contains(bar, "hollow") || !strings.Contains(bar, `class="spread"`) {
		t.Errorf("paper or spread is missing: %s", bar)
	}
	if bar := string(rangeBar(rows[1], a)); strings.Contains(bar, "hollow") || strings.Contains(bar, `class="spread"`) {
		t.Errorf("paper or spread is invented: %s", bar)
	}
	if note := barNote(rows[:2], barScales(rows[:2])); !strings.Contains(note, "from 8 to 20") {
		t.Errorf("the note hides the scale: %q", note)
	}
}

// On log axes zero has a place of its own, outside the scale, and no line leads to it.
func TestZeroStandsApartOnLogAxes(t *testing.T) {
	c := Chart{LogX: true, LogY: true, Series: []Series{{Name: "s", Points: []Point{{X: 10, Y: 100}, {X: 0, Y: 5}, {X: 0.1, Y: 0}, {X: 1, Y: 10}}}}}
	traces, ax, ay := tracesFor(c)
	if !ax.HasZero || !ay.HasZero {
		t.Fatal("zero has no place")
	}
	if zero := ax.At(0); !(zero > chart.PlotLeft && zero < ax.From && ax.From < ax.At(0.1)) {
		t.Errorf("x: zero at %v, log axis from %v, 0.1 at %v", zero, ax.From, ax.At(0.1))
	}
	if zero := ay.At(0); !(zero < chart.PlotBottom && zero > ay.From && ay.From > ay.At(5)) {
		t.Errorf("y: zero at %v, log axis from %v, 5 at %v", zero, ay.From, ay.At(5))
	}
	if math.Abs((ax.At(1)-ax.At(0.1))-(ax.At(10)-ax.At(1))) > 1e-9 {
		t.Error("decades differ in width")
	}
	if ax.Labels[0] != "0" || ay.Labels[0] != "0" {
		t.Errorf("zero is not labelled: %v, %v", ax.Labels, ay.Labels)
	}
	want := chart.Polyline([]chart.Point{{X: 1, Y: 10}, {X: 10, Y: 100}}, ax, ay)
	if got := linePath(traces[0], ax, ay, 0); got != want {
		t.Errorf("line %s, want only from 1 to 10: %s", got, want)
	}
	c.Series[0].Points = []Point{{X: 1, Y: 1}, {X: 10, Y: 10}}
	if _, ax, ay := tracesFor(c); ax.HasZero || ay.HasZero {
		t.Error("there is a place for a zero that does not occur")
	}
}

func TestLabelsDoNotTouch(t *testing.T) {
	for _, xs := range [][]float64{
		{0, 0.1, 1, 2, 3, 5}, {0, 0.001, 0.01, 0.1, 1, 3, 5, 10, 15}, {1, 3, 5, 7}, {0.001, 0.002, 0.9}, {1e-250, 1e200}, {5.2, 5.3},
		{100000, 200000, 200001}, {1, 1.0000001}, {0, 0.002, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5},
	} {
		for _, log := range []bool{false, true} {
			c := Chart{LogX: log, Series: []Series{{}}}
			for _, x := range xs {
				c.Series[0].Points = append(c.Series[0].Points, Point{X: x, Y: 1})
			}
			_, ax, _ := tracesFor(c)
			if len(crowded(ax)) > 0 || len(ax.Ticks) < 2 || len(ax.Ticks) != len(ax.Labels) {
				t.Errorf("%v, log %v: labels %v", xs, log, ax.Labels)
			}
		}
	}
	c := Chart{LogX: true, Series: []Series{{Points: []Point{{X: 0, Y: 1}, {X: 0.1, Y: 1}, {X: 1, Y: 1}, {X: 3, Y: 1}}}}}
	if _, ax, _ := tracesFor(c); fmt.Sprint(ax.Labels) != "[0 0.1 1 3]" {
		t.Errorf("labels %v, want the values themselves", ax.Labels)
	}
}

// Ours and the paper's differ without colour, and one name has one colour.
func TestThePapersSeriesIsDrawnApart(t *testing.T) {
	points := []Point{{X: 1, Y: 1}, {X: 2, Y: 2}}
	c := Chart{Series: []Series{{Name: "k = 1", Points: points}, {Name: "k = 1", Paper: true, Points: points}, {Name: "k = 2", Points: points}}}
	view := newPanel("id", c, newLooks([]Chart{c}))
	svg := string(view.Chart)
	for _, want := range []string{`class="curve s0"`, `class="curve s0 theirs"`, `class="mark s0"`, `class="hollow s0"`, `class="curve s1"`} {
		if strings.Count(svg, want) != 1 {
			t.Errorf("%s occurs %d times", want, strings.Count(svg, want))
		}
	}
	if len(view.Legend) != 3 || view.Legend[1].Text != "k = 1 (paper)" {
		t.Errorf("legend %v", view.Legend)
	}
	other := Chart{Series: []Series{{Name: "new", Points: points}, {Name: "k = 2", Points: points}}}
	l := newLooks([]Chart{c, other})
	if got := tracesOf(other, l); got[1].look != 1 || got[0].look != 2 {
		t.Errorf("colours %d and %d: a name changes its colour from chart to chart", got[0].look, got[1].look)
	}
}

func TestWhiskersAreMovedApartAndInside(t *testing.T) {
	c := Chart{LogX: true}
	for i := range 4 {
		s := Series{Name: fmt.Sprint(i)}
		for _, x := range []float64{0, 0.1, 1, 2, 3, 5} {
			s.Points = append(s.Points, Point{x, 10, 8, 12})
		}
		c.Series = append(c.Series, s)
	}
	traces, ax, ay := tracesFor(c)
	shifts := dodged(traces, ax)
	if sum := shifts[0] + shifts[1] + shifts[2] + shifts[3]; math.Abs(sum) > 1e-9 || !slices.IsSorted(shifts) || shifts[1]-shifts[0] < 1.2 {
		t.Errorf("shifts %v", shifts)
	}
	if left := ax.At(0) + shifts[0]; left < chart.PlotLeft {
		t.Errorf("a mark at %v lies left of the axis", left)
	}
	for i := range c.Series {
		for j := range c.Series[i].Points {
			c.Series[i].Points[j].Low, c.Series[i].Points[j].High = 10, 10
		}
	}
	if traces, ax, _ := tracesFor(c); slices.Max(dodged(traces, ax)) != 0 {
		t.Error("marks without intervals are moved from their place")
	}
	low, high, ok := interval(Point{1, 10, 0, math.Inf(1)}, ay)
	if !ok || low > chart.PlotBottom+1e-9 || high < chart.PlotTop-1e-9 {
		t.Errorf("an endless interval reaches from %v to %v", low, high)
	}
	endless := trace{Series: Series{Points: []Point{{1, 10, 9, math.Inf(1)}}}}
	if got := strings.Count(whiskers(endless, ax, ay, 0), "h"); got != 1 {
		t.Errorf("%d caps, want one: the other end is not where the line stops", got)
	}
}

var rectangle = regexp.MustCompile(`<rect [^>]*x="([^"]*)" y="([^"]*)" width="([^"]*)" height="([^"]*)"`)

func parsed(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestColumnsStandOnZeroSideBySide(t *testing.T) {
	c := Chart{Bars: true, Series: []Series{
		{Name: "a", Points: []Point{{X: 1, Y: 3}, {X: 2, Y: -2}}}, {Name: "b", Points: []Point{{X: 1, Y: 1}, {X: 2, Y: 4}}},
	}}
	traces, ax, ay := tracesFor(c)
	var out chart.Canvas
	drawColumns(&out, traces, ax, ay)
	var x, y, w, h []float64
	for _, m := range rectangle.FindAllStringSubmatch(out.Elements(), -1) {
		x, y, w, h = append(x, parsed(t, m[1])), append(y, parsed(t, m[2])), append(w, parsed(t, m[3])), append(h, parsed(t, m[4]))
	}
	if len(x) != 4 {
		t.Fatalf("%d bars, want 4", len(x))
	}
	base := ay.At(0)
	if math.Abs(y[0]+h[0]-base) > 0.2 || math.Abs(y[1]-base) > 0.2 {
		t.Errorf("bars stand at %v and hang from %v, want %v", y[0]+h[0], y[1], base)
	}
	if x[0]+w[0] > x[2] || x[2]+w[2] > x[1] {
		t.Errorf("bars overlap: %v wide %v", x, w)
	}
	if math.Abs(h[0]/h[2]-3) > 0.05 {
		t.Errorf("heights %v and %v, want 3 to 1", h[0], h[2])
	}
}

// Whatever the numbers are, the page is whole or refused, and never spoilt.
func TestDamagedStudies(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64,
		1e300, -1e300, 1e-300, 1e-290, 0, math.Copysign(0, -1), -1, 1e-9, 1e6}
	pick := func() float64 {
		if random.IntN(3) == 0 {
			return odd[random.IntN(len(odd))]
		}
		return 10 * random.NormFloat64()
	}
	shown, refused := 0, 0
	for range 150 {
		s := Study{Title: "damaged"}
		c := Chart{LogX: random.IntN(4) == 0, LogY: random.IntN(4) == 0, Bars: random.IntN(2) == 0}
		for i := range random.IntN(4) {
			series := Series{Name: fmt.Sprint(i % 2), Paper: random.IntN(2) == 0}
			for range random.IntN(5) {
				p := Point{pick(), pick(), pick(), pick()}
				if p.Low > p.High {
					p.Low, p.High = p.High, p.Low
				}
				if c.LogX || c.LogY {
					p.X, p.Y, p.Low, p.High = math.Abs(p.X), math.Abs(p.Y), 0, math.Abs(p.High)
				}
				series.Points = append(series.Points, p)
			}
			c.Series = append(c.Series, series)
			s.Rows = append(s.Rows, Row{Paper: number(pick()), Measured: number(pick()), Low: number(pick()), High: number(pick()), Verdict: Differs})
		}
		s.Charts = []Chart{c}
		if check(s) != nil {
			refused++
			s.Rows = nil
		}
		page, err := newPage(s)
		if err != nil {
			t.Fatal(err)
		}
		shown++
		drawn := fmt.Sprint(page.Sections, page.Charts) // the page without its long style
		for _, f := range pageFaults(drawn) {
			t.Errorf("%s in %+v", f, s)
		}
	}
	if shown == 0 || refused == 0 {
		t.Errorf("%d shown, %d refused: the test tries too little", shown, refused)
	}
}

// TestChartsBesideOneAnother: axes reach where they are told to, a series that is another in
// another way has its colour, and what has no place is refused.
func TestChartsBesideOneAnother(t *testing.T) {
	c := Chart{Title: "c", Series: []Series{
		{Name: "drawn", Points: []Point{{X: 1, Y: 1}, {X: 2, Y: 2}}}, {Name: "other", Points: []Point{{X: 1, Y: 2}}},
		{Name: "closed form", Paper: true, Of: "drawn", Points: []Point{{X: 1, Y: 1}}},
	}}
	traces := tracesOf(c, newLooks([]Chart{c}))
	if traces[2].colour() != traces[0].colour() || traces[1].colour() == traces[0].colour() {
		t.Errorf("colours %s, %s, %s", traces[0].colour(), traces[1].colour(), traces[2].colour())
	}
	near, _ := axesOf(c, traces)
	c.Reach = []Point{{X: -40, Y: 0}, {X: 60, Y: 0}}
	far, _ := axesOf(c, traces)
	if near.Hi > 3 || far.Lo > -40 || far.Hi < 60 {
		t.Errorf("the axis runs to %v, and from %v to %v where it should reach -40 and 60", near.Hi, far.Lo, far.Hi)
	}
	c.LogX = true
	if _, err := Panels([]Chart{c}); err == nil || !strings.Contains(err.Error(), "cannot reach (-40, 0)") {
		t.Errorf("a log axis that reaches -40: %v", err)
	}
}
