package mech

import (
	"errors"
	"math"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// TestNodeBatches: batches of persons are drawn by what the theorem was paid for alone, from
// as many places as were accounted, whoever is in them; shuffled ones are never proved. How
// many of 60 drawn from 200 places are among the 150 that are taken is hypergeometric with
// mean 45: the mean of 400 draws is off by 6 deviations once in a billion.
func TestNodeBatches(t *testing.T) {
	rule := StepRule{Clip: 2, Noise: 30, Sampling: event.WithoutReplacement, Batch: 60, Examples: 200, Nodes: 6}
	node := event.NodeGaussian{Nodes: 200, Occurrences: 6, Batch: 60, Noise: 30, Formula: event.Theorem}
	pay := func(claim event.Claim, change func(*event.NodeGaussian)) *Paid {
		what := node
		change(&what)
		p, err := NewPaid(event.Release{Unit: event.UnitNode, Relation: event.OwnRecord, Claim: claim, Trust: event.TrustHolder, What: event.Repeated{Times: 400, Of: what}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	same := func(*event.NodeGaussian) {}
	for name, change := range map[string]func(*event.NodeGaussian){
		"fewer examples": func(e *event.NodeGaussian) { e.Occurrences = 5 },
		"smaller batch":  func(e *event.NodeGaussian) { e.Batch = 59 },
		"more persons":   func(e *event.NodeGaussian) { e.Nodes = 201 },
		"more noise":     func(e *event.NodeGaussian) { e.Noise = 31 },
		"their formula":  func(e *event.NodeGaussian) { e.Formula = event.AuthorsCode },
	} {
		if err := new(Steps).Open(pay(event.ClaimHeuristic, change), rule, SystemEntropy(), randomness()); !errors.Is(err, ErrUnpaid) {
			t.Errorf("paid for %s: %v", name, err)
		}
	}
	shuffled := rule
	shuffled.Sampling = event.Shuffle
	if err := new(Steps).Open(pay(event.ClaimProved, same), shuffled, SystemEntropy(), randomness()); err == nil {
		t.Error("shuffled batches are drawn as proved")
	}
	if err := new(Steps).Open(pay(event.ClaimHeuristic, same), shuffled, SystemEntropy(), randomness()); err != nil {
		t.Errorf("shuffled batches as the thesis has them: %v", err)
	}
	replaced, err := NewPaid(event.Release{Unit: event.UnitNode, Relation: event.ReplaceOne, Claim: event.ClaimProved, Trust: event.TrustHolder, What: node})
	if err != nil {
		t.Fatal(err)
	}
	if err := new(Steps).Open(replaced, rule, SystemEntropy(), randomness()); err == nil {
		t.Error("a person in another's place is priced as one that goes: it changes up to 2S-1 examples")
	}
	var s Steps
	if err := s.Open(pay(event.ClaimProved, same), rule, SystemEntropy(), randomness()); err != nil {
		t.Fatal(err)
	}
	total := 0
	for range 399 {
		batch, err := s.Batch(150)
		if err != nil || len(batch) > 60 {
			t.Fatal(len(batch), err)
		}
		seen := map[int]bool{}
		for _, i := range batch {
			if i < 0 || i >= 150 || seen[i] {
				t.Fatalf("person %d of 150, or twice", i)
			}
			seen[i] = true
		}
		total += len(batch)
	}
	deviation := math.Sqrt(60*0.75*0.25*140/199) / math.Sqrt(399)
	if mean := float64(total) / 399; math.Abs(mean-45) > 6*deviation {
		t.Errorf("%v of a batch are there, want 45", mean)
	}
	if _, err := s.Batch(201); err == nil {
		t.Error("more persons than places are drawn from")
	}
	if _, err := s.Batch(150); !errors.Is(err, ErrUnpaid) {
		t.Errorf("a step more: %v", err)
	}
}
