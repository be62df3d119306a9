package account

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// What a line says holds is never below the bound, and what does not never above.
func TestExplainedBoundsHold(t *testing.T) {
	for _, noise := range []float64{0.3, 0.7, 1.1, 3.3, 17} {
		for _, delta := range []float64{1e-3, 1e-5, 1e-9} {
			r := releaseOn(exampleTerms, dpsgd(noise, 1, 3))
			lines, err := Explain(r, delta, nil)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(lines, "\n")
			z, err := zcdpEpsilon(r, delta)
			if err != nil {
				t.Fatal(err)
			}
			for start, bound := range map[string]float64{
				"rdp: ": spent(t, r, MethodRDP, delta).Epsilon, "pld: ": spent(t, r, MethodPLD, delta).Epsilon, "zcdp: ": z,
			} {
				if told := number(t, text, start+`[^\n]*?epsilon ([0-9.]+)`); told < bound*(1-1e-12) {
					t.Errorf("noise %v delta %v: %vepsilon %v, the bound is %v", noise, delta, start, told, bound)
				}
			}
			if told, bound := number(t, text, `holds, ([0-9.]+) does not`), spent(t, r, MethodPLD, delta).Optimistic; told > bound*(1+1e-12) {
				t.Errorf("noise %v delta %v: %v does not hold, by a bound of %v", noise, delta, told, bound)
			}
		}
	}
}

// No lower bound is told where what is charged may be more than the mechanism loses.
func TestLowerBoundsOfWhatIsAttained(t *testing.T) {
	choices := event.Repeated{Times: 400, Of: event.Selection{Mechanism: event.PermuteAndFlip, Epsilon: 0.05}}
	shuffled := event.Repeated{Times: 3, Of: event.Sampled{Sampling: event.Shuffle, Batch: 5, Examples: 50, Of: event.Gaussian{Noise: 1}}}
	for name, c := range map[string]struct {
		e        event.Event
		attained bool
	}{
		"choices":             {choices, false},
		"choices beside more": {event.Composed{Parts: []event.Event{choices, dpsgd(1, 0.1, 10)}}, false},
		"shuffled batches":    {shuffled, false},
		"sampled batches":     {dpsgd(1, 0.1, 10), true},
		"laplace":             {event.Repeated{Times: 3, Of: event.Laplace{Scale: 2}}, true},
	} {
		for _, delta := range []float64{0, 1e-7} {
			g := spent(t, releaseOn(exampleTerms, c.e), MethodBest, delta)
			if (g.Optimistic > 0) != c.attained {
				t.Errorf("%s, delta %v: optimistic %v, epsilon %v", name, delta, g.Optimistic, g.Epsilon)
			}
		}
		lines, err := Explain(releaseOn(exampleTerms, c.e), 1e-7, nil)
		if text := fmt.Sprint(lines); err != nil || strings.Contains(text, "does not") != c.attained {
			t.Errorf("%s: %v, %s", name, err, text)
		}
	}
}

func spent(t *testing.T, r event.Release, m Method, delta float64) Guarantee {
	t.Helper()
	g, err := Spend(r, m, delta)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// number is the first group of a pattern in a text.
func number(t *testing.T, text, pattern string) float64 {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no %s in:\n%s", pattern, text)
	}
	v, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
