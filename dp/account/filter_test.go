package account

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"pgregory.net/rapid"
)

// anyFilter is what the filters have in common.
type anyFilter interface {
	Check(event.Release) error
	Spend(event.Release) error
	Guarantee() Guarantee
	Used() float64
}

func newFilters(t *testing.T, epsilon, delta float64) map[string]anyFilter {
	t.Helper()
	renyi, err1 := NewRenyiFilter(exampleTerms, epsilon, delta, 8)
	several, err2 := NewRenyiFilter(exampleTerms, epsilon, delta, 4, 8, 16, 32)
	zcdp, err3 := NewZCDPFilter(exampleTerms, epsilon, delta)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return map[string]anyFilter{"renyi": renyi, "several orders": several, "zcdp": zcdp}
}

// Whatever is spent, in whatever order, an accountant that reads the same releases
// never finds more than the budget; and the filter does not stop far below it.
func TestFilterKeepsTheBudget(t *testing.T) {
	const epsilon, delta = 4.0, 1e-6
	rapid.Check(t, func(rt *rapid.T) {
		for name, f := range newFilters(t, epsilon, delta) {
			a, err := NewRDP(exampleTerms)
			if err != nil {
				rt.Fatal(err)
			}
			refused := 0
			for refused < 3 {
				r := releaseOn(exampleTerms, event.Gaussian{Noise: rapid.Float64Range(3, 60).Draw(rt, "noise")})
				check := f.Check(r)
				used := f.Used()
				err := f.Spend(r)
				if (check == nil) != (err == nil) {
					rt.Fatalf("%s: check says %v, spend %v", name, check, err)
				}
				if err != nil {
					if !errors.Is(err, ErrBudget) || f.Used() != used {
						rt.Fatalf("%s: %v, used %v then %v", name, err, used, f.Used())
					}
					refused++
					continue
				}
				if err := a.Compose(r); err != nil {
					rt.Fatal(err)
				}
				if got, _, err := a.Epsilon(delta); err != nil || got > epsilon {
					rt.Fatalf("%s let %v pass, above %v (%v)", name, got, epsilon, err)
				}
			}
			if got, _, _ := a.Epsilon(delta); got < 0.55*epsilon {
				rt.Errorf("%s stopped at %v of %v", name, got, epsilon)
			}
		}
	})
}

// A fixed schedule at the order that FilterOrder finds runs as long as the
// accountant allows.
func TestFilterOrder(t *testing.T) {
	const epsilon, delta = 3.0, 1e-5
	step := releaseOn(exampleTerms, event.Sampled{Sampling: event.Poisson, Rate: 0.01, Of: event.Gaussian{Noise: 1}})
	plan := poissonTraining(0.01, 0)
	plan.Noise, plan.Lattice = 1, &Lattice{}
	plan, _, err := plan.WithStepsFor(MethodRDP, epsilon, delta)
	if err != nil {
		t.Fatal(err)
	}
	planned := poissonLattice{poissonGaussian{0.01, 1}}.curve(nil)
	order, err := FilterOrder(sum{{planned, float64(plan.Steps)}}, epsilon, delta)
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewRenyiFilter(exampleTerms, epsilon, delta, order)
	if err != nil {
		t.Fatal(err)
	}
	var steps int64
	for f.Spend(step) == nil {
		steps++
	}
	if steps > plan.Steps || steps < plan.Steps-2 {
		t.Errorf("the filter allowed %d steps, the accountant %d", steps, plan.Steps)
	}
}

func TestFilterRefusals(t *testing.T) {
	for name, f := range newFilters(t, 4, 1e-5) {
		before := reflect.ValueOf(f).Elem().Interface()
		for want, r := range map[error]event.Release{
			ErrUnit:        gaussianRelease(Terms{event.UnitClient, event.AddRemove, event.ClaimProved}),
			ErrRelation:    gaussianRelease(replaceTerms),
			ErrBudget:      releaseOn(exampleTerms, event.Unprotected{}),
			ErrParameter:   releaseOn(exampleTerms, event.Gaussian{}),
			ErrUnsupported: releaseOn(exampleTerms, event.Sampled{Sampling: event.Poisson, Rate: 0.5, Of: event.Laplace{Scale: 1}}),
		} {
			if err := f.Spend(r); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
		if f.Used() != 0 || f.Guarantee().Epsilon != 4 {
			t.Errorf("%s: refused releases changed %+v", name, before)
		}
	}
	for _, bad := range [][2]float64{{0, 1e-5}, {1, 0}, {1, 1}, {30, 1e-320}, {math.NaN(), 1e-5}, {math.Inf(1), 1e-5}} {
		if _, err := NewRenyiFilter(exampleTerms, bad[0], bad[1], 8); !errors.Is(err, ErrParameter) {
			t.Errorf("%v: %v", bad, err)
		}
		if _, err := NewZCDPFilter(exampleTerms, bad[0], bad[1]); !errors.Is(err, ErrParameter) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, err := NewRenyiFilter(exampleTerms, 0.1, 1e-9, 2); !errors.Is(err, ErrUnreachable) {
		t.Errorf("an order without budget: %v", err)
	}
}

// Budget is the rho that may be spent in all.
func (f *ZCDPFilter) Budget() float64 { return f.budget }
