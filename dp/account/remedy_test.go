package account

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// budgetFilter is what both filters have.
type budgetFilter interface {
	Check(event.Release) error
	Spend(event.Release) error
	Epsilon() float64
	Used() float64
	Meter() Meter
}

// filters are both kinds, with a budget.
func filters(t *testing.T, epsilon, delta float64, orders ...float64) map[string]budgetFilter {
	t.Helper()
	renyi, err := NewRenyiFilter(exampleTerms, epsilon, delta, orders...)
	if err != nil {
		t.Fatal(err)
	}
	rho, err := NewZCDPFilter(exampleTerms, epsilon, delta)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]budgetFilter{"Rényi": renyi, "zCDP": rho}
}

// TestRefusalsNameNumbersThatDo: the ceiling, the noise and the number of steps that a
// refusal names are let pass, and one step more or a little less is not.
func TestRefusalsNameNumbersThatDo(t *testing.T) {
	orders := []float64{8, 5.2}
	for _, spent := range []int64{0, 5, 20} {
		for name, what := range map[string]event.Event{
			"steps":             event.Repeated{Times: 400, Of: event.Gaussian{Noise: 9}},
			"steps and more":    event.Composed{Parts: []event.Event{event.Repeated{Times: 300, Of: event.Gaussian{Noise: 9}}, event.Repeated{Times: 3, Of: event.Selection{Mechanism: event.Exponential, Epsilon: 0.05}}, event.Gaussian{Noise: 30}}},
			"one":               event.Gaussian{Noise: 0.3},
			"counts":            event.DiscreteGaussian{Sigma: 2, Bound: 7},
			"choices":           event.Repeated{Times: 90, Of: event.Selection{Mechanism: event.Exponential, Epsilon: 0.5}},
			"without any noise": event.Unprotected{},
		} {
			for kind, f := range filters(t, 3, 1e-5, orders...) {
				if spent > 0 {
					if err := f.Spend(releaseOn(exampleTerms, event.Repeated{Times: spent, Of: event.Gaussian{Noise: 12}})); err != nil {
						t.Fatal(err)
					}
				}
				before := f.Used()
				err := f.Check(releaseOn(exampleTerms, what))
				var refused *BudgetError
				if !errors.As(err, &refused) || !errors.Is(err, ErrBudget) {
					if kind == "zCDP" && name == "without any noise" {
						continue // which no rho bounds
					}
					t.Fatalf("%s, %s, %d spent: %v", kind, name, spent, err)
				}
				if f.Used() != before {
					t.Errorf("%s, %s: asking has changed what is used", kind, name)
				}
				t.Run(fmt.Sprintf("%s, %s, %d spent", kind, name, spent), func(t *testing.T) { tryRemedy(t, f.Check, releaseOn(exampleTerms, what), *refused) })
				tryCeiling(t, kind, spent, orders, releaseOn(exampleTerms, what), err.Error())
			}
		}
	}
}

func tryRemedy(t *testing.T, check func(event.Release) error, r event.Release, refused BudgetError) {
	t.Helper()
	do := refused.Remedy
	if do.Noise > 0 {
		factor := do.Noise
		if do.Now > 0 {
			factor /= do.Now
		}
		if err := check(withNoise(r, factor*(1+1e-12))); err != nil {
			t.Errorf("the noise that would do does not: %v", err)
		}
		if err := check(withNoise(r, factor*0.998)); !errors.Is(err, ErrBudget) {
			t.Errorf("less than the noise that would do does: %v", err)
		}
	} else if len(noisesOf(r.What, nil)) > 0 {
		t.Errorf("no noise would do: %v", refused.Error())
	}
	if cut := firstSteps(r); cut.Of > 1 {
		if do.Of != cut.Of || do.Fit >= do.Of {
			t.Errorf("%d of %d", do.Fit, do.Of)
		}
		if err := check(cut.To(do.Fit)); do.Fit > 0 && err != nil {
			t.Errorf("the steps that would fit do not: %v", err)
		}
		if err := check(cut.To(do.Fit + 1)); !errors.Is(err, ErrBudget) {
			t.Errorf("one more step fits: %v", err)
		}
	} else if do.Of != 0 {
		t.Errorf("nothing is repeated, and %d of %d would fit", do.Fit, do.Of)
	}
}

var wouldBe = regexp.MustCompile(`epsilon (\S+) would be needed`)

// tryCeiling makes the same releases under the ceiling that the refusal names, and under
// one a little lower.
func tryCeiling(t *testing.T, kind string, spent int64, orders []float64, r event.Release, text string) {
	t.Helper()
	needed, err := strconv.ParseFloat(wouldBe.FindStringSubmatch(text)[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	if math.IsInf(needed, 1) {
		if _, bare := r.What.(event.Unprotected); !bare {
			t.Errorf("%s: %s", kind, text)
		}
		return
	}
	for _, try := range []struct {
		epsilon float64
		fits    bool
	}{{needed, true}, {needed * (1 - 1e-4), false}} {
		f := filters(t, try.epsilon, 1e-5, orders...)[kind]
		if spent > 0 {
			if err := f.Spend(releaseOn(exampleTerms, event.Repeated{Times: spent, Of: event.Gaussian{Noise: 12}})); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Check(r); (err == nil) != try.fits {
			t.Errorf("%s, ceiling %v where %v is needed: %v", kind, try.epsilon, needed, err)
		}
	}
}

// TestRefusalText is what a refusal reads like.
func TestRefusalText(t *testing.T) {
	f := filters(t, 2.1, 1e-5, 10)["Rényi"]
	if err := f.Spend(releaseOn(exampleTerms, event.Repeated{Times: 10, Of: event.Gaussian{Noise: 12}})); err != nil {
		t.Fatal(err)
	}
	step := event.Sampled{Sampling: event.Poisson, Rate: 0.1, Of: event.Gaussian{Noise: 2}}
	for want, what := range map[string]event.Event{
		"budget would be exceeded: epsilon 3.12766 would be needed at delta 1e-05, and the ceiling is 2.1; by the Rényi filter 1.26524 are spent; noise 2.693 instead of 2 would do; 44 of the 100 steps would fit":   event.Composed{Parts: []event.Event{event.Repeated{Times: 100, Of: step}}},
		"budget would be exceeded: epsilon 3.13322 would be needed at delta 1e-05, and the ceiling is 2.1; by the Rényi filter 1.26524 are spent; noise 1.349 times as large would do; 44 of the 100 steps would fit": event.Composed{Parts: []event.Event{event.Repeated{Times: 100, Of: step}, event.Gaussian{Noise: 30}}},
		"budget would be exceeded: epsilon 6.26524 would be needed at delta 1e-05, and the ceiling is 2.1; by the Rényi filter 1.26524 are spent; noise 2.448 instead of 1 would do":                                  event.Gaussian{Noise: 1},
		"budget would be exceeded: epsilon 6.26524 would be needed at delta 1e-05, and the ceiling is 2.1; by the Rényi filter 1.26524 are spent":                                                                     event.Selection{Mechanism: event.Exponential, Epsilon: 5},
	} {
		if err := f.Check(releaseOn(exampleTerms, what)); err == nil || err.Error() != want {
			t.Errorf("%v\n want %s", err, want)
		}
	}
	spent := f.Spend(releaseOn(exampleTerms, event.Gaussian{Noise: 1}))
	if want := "budget would be exceeded: epsilon 6.26524 would be needed at delta 1e-05, and the ceiling is 2.1; by the Rényi filter 1.26524 are spent"; spent == nil || spent.Error() != want {
		t.Errorf("%v\n want %s", spent, want)
	}
}

// TestCutKeepsTheRest: fewer steps are charged with all that is charged beside them.
func TestCutKeepsTheRest(t *testing.T) {
	steps, beside := event.Repeated{Times: 300, Of: event.Gaussian{Noise: 9}}, event.Gaussian{Noise: 30}
	cut := firstSteps(releaseOn(exampleTerms, event.Composed{Parts: []event.Event{steps, beside}}))
	steps.Times = 7
	if got, want := cut.To(7).What, (event.Composed{Parts: []event.Event{steps, beside}}); cut.Of != 300 || !reflect.DeepEqual(got, want) {
		t.Errorf("of %d, cut to %s", cut.Of, event.Describe(got))
	}
}

// TestRefusalsLeaveNothingBehind: whoever is refused again and again does not fill the
// filter's memory with what would have done.
func TestRefusalsLeaveNothingBehind(t *testing.T) {
	f, err := NewRenyiFilter(exampleTerms, 3, 1e-5, 8)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := f.Check(releaseOn(exampleTerms, event.Gaussian{Noise: 0.1})); !errors.Is(err, ErrBudget) {
			t.Fatal(err)
		}
	}
	if len(f.curves) != 1 {
		t.Errorf("%d curves are kept of one mechanism", len(f.curves))
	}
}

// TestUnreachableTargetsSayWhy names what stands in the way, with its number.
func TestUnreachableTargetsSayWhy(t *testing.T) {
	dear := Training{
		Terms: exampleTerms, Trust: event.TrustLocal, Sampling: event.Poisson, Rate: 0.1, Steps: 100,
		Also: []event.Event{event.Repeated{Times: 6, Of: event.Selection{Mechanism: event.Exponential, Epsilon: 4}}},
	}
	constant := func(float64) (float64, error) { return 7, nil }
	_, _, plan := dear.WithNoiseFor(MethodRDP, 4, 1e-5)
	_, noise := LeastNoise(4, constant)
	_, rate := MostRate(4, constant)
	_, steps := MostSteps(8, func(int64) (float64, error) { return 7, nil })
	for want, err := range map[string]error{
		"epsilon 4 cannot be had by any noise: what is released beside the noised steps (choices, moments, scores) costs 24 by itself, and must cost less than epsilon": plan,
		"epsilon 4 cannot be had by any noise: what is released beside the noised steps (choices, moments, scores) costs 7 by itself, and must cost less than epsilon":  noise,
		"epsilon 4 cannot be had by any rate: at rate 1e-15 it is still 7; add noise":                                                                                   rate,
		"epsilon stays below 8 for 1125899906842624 steps and more":                                                                                                     steps,
	} {
		if !errors.Is(err, ErrUnreachable) || err.Error() != "target cannot be reached: "+want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// TestMeter: what is used is the share that the meter shows, equal releases move it by
// equal amounts, and the filter's epsilon is never below an accountant's.
func TestMeter(t *testing.T) {
	for kind, f := range filters(t, 3, 1e-5, 8, 5.2) {
		r := releaseOn(exampleTerms, event.Gaussian{Noise: 12})
		exact, err := NewRDP(exampleTerms, WithExactNoise())
		if err != nil {
			t.Fatal(err)
		}
		if f.Epsilon() != 0 || f.Used() != 0 {
			t.Errorf("%s: epsilon %v of nothing", kind, f.Epsilon())
		}
		var first float64
		for i := 1; i <= 20; i++ {
			if err := errors.Join(f.Spend(r), exact.Compose(r)); err != nil {
				t.Fatal(err)
			}
			m := f.Meter()
			if i == 1 {
				first = m.Spent
			}
			if math.Abs(m.Spent-float64(i)*first) > 1e-9*m.Spent || m.Spent/m.Budget != f.Used() {
				t.Errorf("%s, %d releases: %+v, used %v", kind, i, m, f.Used())
			}
			epsilon, _, err := exact.Epsilon(1e-5)
			if err != nil || f.Epsilon() < epsilon*(1-1e-9) || f.Epsilon() > 3 {
				t.Errorf("%s, %d releases: epsilon %v, an accountant has %v, %v", kind, i, f.Epsilon(), epsilon, err)
			}
		}
	}
}
