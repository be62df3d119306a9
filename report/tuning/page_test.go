package tuning

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/report/layout/layouttest"
	"github.com/coterie-fl/coterie/sweep"
)

func statement(epsilon float64) event.Statement {
	return event.Statement{
		Claim: event.ClaimProved, Unit: event.UnitExample, Relation: event.ReplaceOne, Trust: event.TrustLocal,
		Epsilon: event.Number(epsilon), Delta: 1e-5, Sampling: "without-replacement", NotCovered: []string{"timing <b>"},
	}
}

func number(v float64) *event.Number { n := event.Number(v); return &n }

// made is a charged grid of two axes, one of them in words.
func made() sweep.Result {
	r := sweep.Result{
		Name: "clinics <script>", Tuning: "grid charged", Metric: "error", Runs: 12, Seeds: 2, Best: 1, Shared: 6,
		Chosen:  &sweep.Chosen{Points: []int{1, 3}, Mean: 0.1, SD: 0.02},
		Privacy: fl.Privacy{Statement: statement(6)},
		Says:    []string{"tuning: grid charged: all runs keep the target", "the seeds repeat the whole sweep"},
		Prices: []sweep.Price{
			{Way: sweep.WayOne, Runs: 1, Privacy: statement(2.08412), Noise: number(1.826)},
			{Way: sweep.WayGrid, Runs: 6, Privacy: statement(5.99999998), Noise: number(4.126)},
			{Way: sweep.WayRandom, Runs: 6, Pivot: true, Privacy: statement(4.9081), Noise: number(3.44)},
		},
		Growth: []sweep.Growth{{Runs: 1, Grid: 2}, {Runs: 6, Grid: 6, Random: number(4.9)}},
	}
	for i, step := range []string{"0.01", "0.1", "1"} {
		for k, kind := range []string{"local", "mr-mtl"} {
			at := event.Number(0.3 - 0.1*float64(i) + 0.05*float64(k))
			r.Points = append(r.Points, sweep.PointResult{
				Settings: map[string]string{"algorithm.local.step": step, "algorithm.kind": kind},
				Mean:     at, SD: 0.01, Values: []event.Number{at - 0.01, at + 0.01},
			})
		}
	}
	return r
}

func shown(t *testing.T, r sweep.Result) string {
	t.Helper()
	var out bytes.Buffer
	if err := HTML(&out, r, Made{Command: "coterie sweep grid.yaml", Version: "v1", Kernel: "go"}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestPageShowsBothPrices: every way with its epsilon, rounded up, and its terms, and the
// noise that it asks for.
func TestPageShowsBothPrices(t *testing.T) {
	page := shown(t, made())
	if faults := layouttest.Faults(page); len(faults) > 0 {
		t.Error(faults)
	}
	for _, want := range []string{
		"<td class=\"n strong\">2.085<small>unit example, relation replace-one", "<td class=\"n strong\">6<small>", "<td class=\"n strong\">4.909<small>",
		"beside one run that is sent", ">1.83</td>", ">4.13</td>", ">3.44</td>", "All 6 runs of a seed together", "Tuning: grid charged.", "All runs keep the target.",
		"The seeds repeat the whole sweep.", "clinics &lt;script&gt;", "timing &lt;b&gt;", "Test error by step", "Epsilon by the number of",
		"Found by a grid of 6 runs it costs epsilon 6 (proved, unit example, relation replace-one",
		"coterie sweep grid.yaml",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "Test error by kind") {
		t.Error("an axis of words is drawn as one of numbers")
	}
	// The best is marked once, and seeds that chose otherwise are counted where they did.
	if n := strings.Count(page, "the best</small>"); n != 1 {
		t.Errorf("%d settings are marked as the best", n)
	}
	rows := regexp.MustCompile(`(?s)<tr><th scope="row">(?:local|mr-mtl)</th>.*?</tr>`).FindAllString(page, -1)
	if len(rows) != 6 || !strings.Contains(rows[1], "the best") || !strings.HasSuffix(rows[3], `<td class="n">1</td></tr>`) || !strings.HasSuffix(rows[0], `<td class="n">0</td></tr>`) {
		t.Errorf("%q", rows)
	}
}

// TestPageWithoutPrices says why there are none.
func TestPageWithoutPrices(t *testing.T) {
	r := made()
	r.Tuning, r.Shared, r.Chosen, r.Prices, r.Growth, r.Seeds = "not charged", 0, nil, nil, nil, 1
	r.Says = []string{"tuning: not charged: choosing tells", "prices: the runs have no common price"}
	for i := range r.Points {
		r.Points[i].Values = r.Points[i].Values[:1]
	}
	page := shown(t, r)
	if faults := layouttest.Faults(page); len(faults) > 0 {
		t.Error(faults)
	}
	for want, times := range map[string]int{
		"The runs have no common price.": 1, "One run of the best setting": 1, "Tuning: not charged.": 1, "Noise for the target": 0, "Deviation": 0, "Chosen by seeds": 0,
	} {
		if n := strings.Count(page, want); n != times {
			t.Errorf("%q stands %d times, want %d", want, n, times)
		}
	}
}
