package report

import (
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/data/contacts"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/sim"
)

func within(value, low, high float64) *metrics.Figure {
	return &metrics.Figure{Value: *number(value), Low: number(low), High: number(high)}
}

// ofPeople is central training on people, beside two scores.
func ofPeople(difference *metrics.Figure, verdict string) sim.Result {
	r := centrally("fixed")
	r.Dataset, r.Metrics.Error = "pandemic", number(0.003)
	r.Metrics.Accuracy, r.Metrics.LogLoss = &metrics.Figure{Value: 0.997}, &metrics.Figure{Value: 0.0172}
	r.Untrained = &sim.Untrained{Persons: 20_000, Positives: 50, AveragePrecision: within(0.05, 0.04, 0.06), AUC: within(0.85, 0.8, 0.9),
		Rivals: []sim.Rival{
			{Name: contacts.Prevalence, AveragePrecision: within(0.0025, 0.002, 0.003), AUC: &metrics.Figure{Value: 0.5}, Difference: within(0.0475, 0.04, 0.055)},
			{Name: "time with the infected", AveragePrecision: within(0.04, 0.03, 0.05), AUC: within(0.8, 0.7, 0.9), Difference: difference},
		}, Best: "time with the infected", Verdict: verdict}
	r.Population = &contacts.Figures{Persons: 20_000, Households: 8000, Contacts: 500_000, Regions: []contacts.RegionCount{{Region: 0, Persons: 20_000, Ever: 600}},
		Curve: []contacts.DayCount{{Day: 0, Infected: 3, New: 3}, {Day: 1, Infected: 5, New: 2}}}
	return r
}

// TestWhoWins: the terminal and the page say who wins, and nothing of answers that are
// right; a gain that no score could have is asked about.
func TestWhoWins(t *testing.T) {
	for name, c := range map[string]struct {
		difference *metrics.Figure
		verdict    string
		says       []string
	}{
		"better":  {within(0.01, 0.002, 0.018), sim.VerdictBetter, []string{"the model is better (difference 0.01, 95 % interval 0.002 to 0.018)."}},
		"worse":   {within(-0.01, -0.018, -0.002), sim.VerdictWorse, []string{"the model is worse", "training did not pay"}},
		"unclear": {within(0.001, -0.002, 0.004), sim.VerdictUnclear, []string{"neither is told to be better", "not seen to pay"}},
		"leak":    {within(0.03, 0.011, 0.04), sim.VerdictBetter, []string{"the model is better", "look for a leak"}},
	} {
		r := ofPeople(c.difference, c.verdict)
		var b strings.Builder
		for _, print := range []func() error{
			func() error { return Table(&b, []sim.Summary{r.Summary}) }, func() error { return Untrained(&b, r.Summary) }, func() error { return Course(&b, r) },
		} {
			if err := print(); err != nil {
				t.Fatal(err)
			}
		}
		page := render(t, name, r)
		for where, text := range map[string]string{"terminal": b.String(), "page": page} {
			for _, says := range append(c.says, "20 times the prevalence (50 of 20,000 persons fall ill)", "time with the infected", "over households", "0.04 to 0.06") {
				if !strings.Contains(text, says) {
					t.Errorf("%s: the %s does not say %q", name, where, says)
				}
			}
			for _, idle := range []string{"99.7", "ccuracy", "est error", "share of right answers"} {
				if strings.Contains(text, idle) {
					t.Errorf("%s: the %s has %q", name, where, idle)
				}
			}
			if leak := strings.Contains(text, "a leak"); leak != (name == "leak") {
				t.Errorf("%s: the %s asks about a leak: %v", name, where, leak)
			}
		}
		for _, part := range []string{`id="untrained"`, `id="untrained-1-less-t"`, "Epidemic curve", "Residences", "for whoever holds them"} {
			if !strings.Contains(page, part) {
				t.Errorf("%s: the page has no %s", name, part)
			}
		}
	}
}

// TestNobodyFallsIll: without a target, and where risks are no numbers, nothing is judged,
// and that is said; other runs have no such part.
func TestNobodyFallsIll(t *testing.T) {
	for positives, says := range map[int]string{0: "Nobody is known to fall ill", 7: "Risks are no numbers"} {
		r := ofPeople(nil, "")
		r.Untrained = &sim.Untrained{Persons: 100, Positives: positives, Rivals: []sim.Rival{{Name: contacts.Prevalence}}}
		var b strings.Builder
		if err := Untrained(&b, r.Summary); err != nil || !strings.Contains(b.String(), says) || strings.Contains(b.String(), "score ") {
			t.Errorf("%d fall ill: %q, %v", positives, b.String(), err)
		}
		if page := render(t, "none", r); !strings.Contains(page, says) || strings.Contains(page, "untrained-1-less") {
			t.Errorf("%d fall ill: the page does not say %q", positives, says)
		}
	}
	other := centrally("fixed")
	var b strings.Builder
	if err := Untrained(&b, other.Summary); err != nil || b.Len() > 0 || strings.Contains(render(t, "other", other), `id="untrained"`) {
		t.Errorf("a run on others: %q, %v", b.String(), err)
	}
}

// TestSilosOfPeople: every silo's line has its own figure, and how far it is from its best
// rival; dots are drawn of it.
func TestSilosOfPeople(t *testing.T) {
	r := ofPeople(within(0.001, -0.002, 0.004), sim.VerdictUnclear)
	r.Algorithm, r.Clients, r.Judge = "fedavg", 2, "test"
	line := r.Participants[0]
	own := *r.Untrained
	line.Name, line.Untrained = "region-0", &own
	second := line
	second.Name, second.Examples = "region-1", line.Examples/2
	r.Participants = []sim.Line{line, second}
	var b strings.Builder
	if err := Lines(&b, r.Summary); err != nil || !strings.Contains(b.String(), "less best untrained") || !strings.Contains(b.String(), "0.001") {
		t.Errorf("%s, %v", b.String(), err)
	}
	page := render(t, "silos", r)
	for _, says := range []string{"Less the best untrained score", "Average precision of every client", "of all together it is 0.05"} {
		if !strings.Contains(page, says) {
			t.Errorf("the page does not say %q", says)
		}
	}
}
