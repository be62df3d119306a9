package mech

import (
	"errors"
	"math"
	"testing"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// split is a rule's, with so many times the noise on its first sum.
func split(t *testing.T, noise, share float64) Split {
	t.Helper()
	s, err := ClipRule{Signal: SignalCount, GradientNoise: share}.Split(Gaussian{noise})
	if err != nil {
		t.Fatalf("noise %v, share %v: %v", noise, share, err)
	}
	return s
}

// TestSplitCostsNoMoreThanTheWhole: by the accountants' own formula, for every split.
func TestSplitCostsNoMoreThanTheWhole(t *testing.T) {
	for _, nu := range []float64{1e-3, 0.3, 1, 7.7, 1e6} {
		for _, share := range []float64{1 + 1e-9, 1.01, math.Sqrt2, 30, 1000} {
			s := split(t, nu, share)
			joint, err := account.JointNoise(s.First.Multiplier, s.Second.Multiplier)
			if err != nil || joint < nu || joint > nu*(1+1e-12) {
				t.Errorf("noise %v, share %v: the parts amount to %v, %v", nu, share, joint, err)
			}
		}
	}
	if s := split(t, 2, 1.01); math.Abs(s.Second.Multiplier/2-7.124) > 0.001 { // paper 001, section 3.4
		t.Errorf("1 %% more noise on gradients leaves %v times the noise", s.Second.Multiplier/2)
	}
}

func TestSplitsThatCannotBe(t *testing.T) {
	for _, r := range []ClipRule{
		{Signal: SignalCount, GradientNoise: 1}, {Signal: SignalCount}, {GradientNoise: 1.1},
		{Signal: SignalCount, GradientNoise: math.NaN()}, {Signal: SignalCount, GradientNoise: math.Inf(1)},
	} {
		if s, err := r.Split(Gaussian{1}); err == nil {
			t.Errorf("%+v gives %+v", r, s)
		}
	}
	if _, err := (ClipRule{Signal: SignalCount, GradientNoise: 2}).Split(Gaussian{0}); err == nil {
		t.Error("a whole without noise was split")
	}
}

// TestSplitDrawsWhatWasPaid: one draw of the whole, then one of each part, and no part
// with less noise.
func TestSplitDrawsWhatWasPaid(t *testing.T) {
	paid, err := NewPaid(event.Release{
		Unit: event.UnitClient, Relation: event.AddRemove, Claim: event.ClaimProved, Trust: event.TrustServer, What: event.Gaussian{Noise: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := split(t, 2, 1.5)
	if _, err := paid.Split(Split{Gaussian{2}, Gaussian{2}, Gaussian{3}}); err == nil {
		t.Error("parts with too little noise were opened")
	}
	if _, err := paid.Split(split(t, 1.9, 1.5)); !errors.Is(err, ErrUnpaid) {
		t.Errorf("a split of another whole: %v", err)
	}
	parts, err := paid.Split(s)
	if err != nil {
		t.Fatal(err)
	}
	if paid.Left() != 0 || parts.Left() != 2 {
		t.Errorf("%d draws are left of the whole, %d of the parts", paid.Left(), parts.Left())
	}
	if _, err := paid.Split(s); !errors.Is(err, ErrUnpaid) {
		t.Errorf("split twice: %v", err)
	}
	if err := parts.draw(s.Second.Event()); err != nil {
		t.Error(err)
	}
	if err := parts.draw(s.Second.Event()); !errors.Is(err, ErrUnpaid) {
		t.Errorf("the second part was drawn twice: %v", err)
	}
	if err := parts.draw(s.Whole.Event()); !errors.Is(err, ErrUnpaid) {
		t.Errorf("the whole was drawn beside its parts: %v", err)
	}
}
