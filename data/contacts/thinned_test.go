package contacts

import (
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/data"
)

// holds says how many contacts somebody's example has.
func holds(p data.People) (contacts int) {
	kept := p.(trainees).kept
	return len(kept.Other)
}

// TestRedrawn: trainees under thinning hold no contact until a secret is drawn, then those
// that the rule keeps by it, and others by another.
func TestRedrawn(t *testing.T) {
	g := village(1000, 20, 4)
	rule := data.NodeRule{Relation: ThinnedRemoval, Keep: 0.2, Degree: hubContacts + 150}
	under, most, proved, err := g.Trainees().Under(rule)
	if err != nil || most != rule.Degree+1 || !proved {
		t.Fatalf("at most %d examples, proved %v: %v", most, proved, err)
	}
	waiting, ok := under.(data.Redrawn)
	if !ok || holds(waiting.(thinnable).trainees) != 0 {
		t.Fatalf("%T is not to be redrawn, or holds contacts before", under)
	}
	bare, alone := make([]float32, Pooled), make([]float32, Pooled)
	hub := g.Persons() / 2
	waiting.Input(bare, hub, 0)
	g.Fill(alone, &Kept{Offsets: make([]int64, g.Persons()+1)}, hub, g.TrainingEnds()[0])
	if !slices.Equal(bare, alone) {
		t.Error("an example has something of contacts before a secret is drawn")
	}
	drawn, err := waiting.Redraw([16]byte{3}, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	asRule := Rule(rule)
	asRule.Secret = [16]byte{3}
	want := built(t, asRule, g)
	if got := drawn.(trainees).kept; !slices.Equal(got.Other, want.Other) || len(want.Other) == 0 {
		t.Errorf("%d contacts are kept, the rule keeps %d", len(got.Other), len(want.Other))
	}
	other, err := waiting.Redraw([16]byte{4}, 0.2)
	if err != nil || slices.Equal(drawn.(trainees).kept.Other, other.(trainees).kept.Other) {
		t.Errorf("two secrets keep the same: %v", err)
	}
	for keep, want := range map[float64]string{0.3: "prepared for 0.2", 0.1: "prepared for 0.2"} {
		if _, err := waiting.Redraw([16]byte{3}, keep); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a share of %v: %v", keep, err)
		}
	}
	if _, err := waiting.Redraw([16]byte{}, 0.2); err == nil {
		t.Error("a secret of nothing is taken")
	}
	rule.Degree = 20
	if _, _, _, err := g.Trainees().Under(rule); err == nil || !strings.Contains(err.Error(), "nobody has more than 20 contacts") {
		t.Errorf("a broken promise: %v", err)
	}
	rule.Degree, rule.Keep = 20, 2
	if _, _, _, err := g.Trainees().Under(rule); err == nil || !strings.Contains(err.Error(), "a share of 2") {
		t.Errorf("a share of 2: %v", err)
	}
}
