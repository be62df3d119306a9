package membership

import (
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/audit/membership"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// attacked is a cell with one attack: its area, give or take, and its curve.
func attacked(name string, area, give float64, roc ...membership.Place) cell {
	low, high := event.Number(area-give), event.Number(area+give)
	a := membership.Attack{Attack: name}
	a.AUC, a.ROC = &metrics.Figure{Value: event.Number(area), Low: &low, High: &high}, roc
	return cell{Found: membership.Found{Members: 6000, NonMembers: 4000, Attacks: []membership.Attack{a}}}
}

// over has areas by sigma, all with the same interval.
func over(give float64, areas ...float64) *figures {
	f := &figures{size: size{epochs: 6, references: []int{1}, shadows: 10, neighbours: 10}, models: map[int]cell{1: attacked(membership.Shadows, 0.7, give)}}
	for i, area := range areas {
		f.size.sigmas = append(f.size.sigmas, float64(i+1))
		f.sigmas = append(f.sigmas, attacked(membership.Noisy, area, give))
	}
	return f
}

// holds is whether the sentence that has these words holds.
func holds(t *testing.T, f *figures, words string) bool {
	t.Helper()
	for _, s := range f.sentences() {
		if strings.Contains(s.sentence, words) {
			return s.holds
		}
	}
	t.Fatalf("no sentence on %q", words)
	return false
}

// TestPeak: one peak is prominent, single and found. A second one is seen, one at an end is not
// prominent, and wide intervals tell neither.
func TestPeak(t *testing.T) {
	for name, c := range map[string]struct {
		f                        *figures
		prominent, single, found bool
	}{
		"one":    {over(0.005, 0.6, 0.65, 0.7, 0.65, 0.6), true, true, true},
		"two":    {over(0.005, 0.6, 0.7, 0.62, 0.69, 0.6), true, false, true},
		"hidden": {over(0.005, 0.7, 0.6, 0.65, 0.66, 0.6), false, false, false}, // the best is at the end
		"lost":   {over(0.005, 0.6, 0.75, 0.62, 0.63, 0.69), true, false, false},
		"flat":   {over(0.005, 0.6, 0.6, 0.601, 0.6, 0.6), false, false, true},
		"rising": {over(0.005, 0.6, 0.62, 0.64, 0.66, 0.68), false, true, false}, // its best is an end
		"wide":   {over(0.1, 0.6, 0.65, 0.7, 0.65, 0.6), false, false, true},
	} {
		for words, want := range map[string]bool{"prominent": c.prominent, "single": c.single, "binary": c.found} {
			if got := holds(t, c.f, words); got != want {
				t.Errorf("%s: %s is %v", name, words, got)
			}
		}
	}
}

// TestPasses: shadows that are trained for no epoch cost no more than neighbours do.
func TestPasses(t *testing.T) {
	f := over(0.01, 0.6, 0.7, 0.6)
	if noisy, shadows := f.passes(); noisy != 10 || shadows != 10+3*0.6*6 {
		t.Errorf("%v and %v passes", noisy, shadows)
	}
	if !holds(t, f, "inference mode") {
		t.Error("six epochs of training cost nothing")
	}
	if f.size.epochs = 0; holds(t, f, "inference mode") {
		t.Error("as many passes are less")
	}
}

// TestEspeciallyBelow: attacks that are far apart where many others are taken for members, and
// near where few are, agree; the other way round they do not.
func TestEspeciallyBelow(t *testing.T) {
	place := func(wrong, right float64) membership.Place {
		return membership.Place{FalsePositive: event.Number(wrong), TruePositive: event.Number(right)}
	}
	near, far := []membership.Place{place(0.01, 0.2), place(0.1, 0.3)}, []membership.Place{place(0.01, 0.2), place(0.1, 0.9)}
	for want, shadows := range map[bool][]membership.Place{true: far, false: near} {
		f := over(0.01, 0.6, 0.7, 0.6)
		f.sigmas[len(f.sigmas)-1] = attacked(membership.Noisy, 0.6, 0.01, near...)
		f.models[1] = attacked(membership.Shadows, 0.7, 0.01, shadows...)
		if got := holds(t, f, "especially"); got != want {
			t.Errorf("%v: %v", shadows, got)
		}
	}
	if s := distance(lab.Spread{Middle: -2, Low: -3, High: -1}); s != (lab.Spread{Middle: 2, Low: 1, High: 3}) {
		t.Errorf("the distance of -2 is %v", s)
	}
}

// TestSentencesAreRows: every sentence is a row with a verdict, and a reason where it differs.
func TestSentencesAreRows(t *testing.T) {
	f := over(0.005, 0.6, 0.6, 0.6)
	found := 0
	for _, r := range f.rows(1) {
		if r.Sentence == "" {
			continue
		}
		found++
		if r.Verdict == study.Differs && r.Why == "" {
			t.Errorf("%s has no reason", r.Label)
		}
	}
	if found < 7 {
		t.Errorf("%d sentences", found)
	}
}
