package account

import (
	"math"
	"reflect"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// TestRememberedNoise: a plan that was asked for before has the same noise to the last bit,
// and one that differs anywhere is searched for itself.
func TestRememberedNoise(t *testing.T) {
	plan := poissonTraining(0.0123456789, 321)
	first, cost, err := plan.WithNoiseFor(MethodRDP, 1.25, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	again, same, err := plan.WithNoiseFor(MethodRDP, 1.25, 1e-5)
	if err != nil || again.Noise != first.Noise || !reflect.DeepEqual(cost, same) {
		t.Errorf("noise %v and then %v, %v and then %v (%v)", first.Noise, again.Noise, cost, same, err)
	}
	other := func(change func(p *Training)) Training {
		p := plan
		change(&p)
		return p
	}
	for what, c := range map[string]struct {
		plan           Training
		epsilon, delta float64
	}{
		"epsilon": {plan, math.Nextafter(1.25, 2) + 1e-6, 1e-5},
		"delta":   {plan, 1.25, 1.1e-5},
		"rate":    {other(func(p *Training) { p.Rate *= 1.01 }), 1.25, 1e-5},
		"steps":   {other(func(p *Training) { p.Steps++ }), 1.25, 1e-5},
		"runs":    {other(func(p *Training) { p.Runs = 2 }), 1.25, 1e-5},
		"also":    {other(func(p *Training) { p.Also = []event.Event{event.Gaussian{Noise: 20}} }), 1.25, 1e-5},
	} {
		got, _, err := c.plan.WithNoiseFor(MethodRDP, c.epsilon, c.delta)
		if err != nil || got.Noise == first.Noise {
			t.Errorf("another %s has the same noise, %v (%v)", what, got.Noise, err)
		}
	}
	if tighter, _, err := plan.WithNoiseFor(MethodBest, 1.25, 1e-5); err != nil || tighter.Noise >= first.Noise {
		t.Errorf("by the tighter accountant the noise is %v, by RDP %v (%v)", tighter.Noise, first.Noise, err)
	}
}

// TestRememberedNoiseIsPriced: a noise that does not keep the target is refused, wherever it
// comes from.
func TestRememberedNoiseIsPriced(t *testing.T) {
	plan := poissonTraining(0.0223456789, 123)
	if _, err := plan.remember(MethodRDP, 1.5, 1e-5, nil, func() (float64, error) { return 0.5, nil }); err != nil {
		t.Fatal(err)
	}
	if got, cost, err := plan.WithNoiseFor(MethodRDP, 1.5, 1e-5); err == nil {
		t.Errorf("noise %v was taken, which costs %v", got.Noise, cost)
	}
}

// TestRememberedStaysSmall: it begins anew before it fills the memory.
func TestRememberedStaysSmall(t *testing.T) {
	for i := range 2*mostRemembered + 1 {
		p := poissonTraining(0.5, int64(i+1))
		if noise, err := p.remember(MethodRDP, 7, 1e-3, nil, func() (float64, error) { return 1e9, nil }); noise != 1e9 || err != nil {
			t.Fatal(noise, err)
		}
	}
	remembered.Lock()
	defer remembered.Unlock()
	if n := len(remembered.noise); n > mostRemembered {
		t.Errorf("%d are remembered", n)
	}
	remembered.noise = nil // of plans that others may ask for
}
