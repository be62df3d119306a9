// Package whatif answers what privacy costs and what keeps a budget: the same answers for the command line and for the page.
package whatif

import (
	"fmt"
	"maps"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// Answer is a privacy number with what it was asked with and what else is worth telling.
type Answer struct {
	Cost    account.Guarantee
	Own     map[string]any // the question's own keys, beside those of the guarantee
	Lines   []string       // what is said beneath the sentence
	Release event.Release  // what Cost is the price of; empty where account.Explain knows none
}

// Fields are the keys and values that programs are told.
func (a Answer) Fields() map[string]any {
	fields := a.Cost.Fields()
	maps.Copy(fields, a.Own)
	return fields
}

// AccountantInWords names who found a number, and how far it may be from the truth.
func AccountantInWords(g account.Guarantee) string {
	if g.Accountant != string(account.MethodPLD) {
		return g.Accountant
	}
	words := "pld, for schedules that are fixed in advance"
	if g.Optimistic == 0 {
		return words
	}
	return fmt.Sprintf("%s; what is less than epsilon %s does not hold (%s)", words, account.Downward(g.Optimistic), account.InTerms(g.Statement()))
}

// By is how a number is found: at which delta, by which accountant, for which noise.
type By struct {
	Delta   float64
	Method  account.Method
	Orders  []float64        // fixes the Rényi orders
	Lattice *account.Lattice // of exact noise; nil: continuous noise
}

// Spend is what one release costs.
func (b By) Spend(r event.Release) (account.Guarantee, error) {
	if b.Lattice != nil {
		return account.SpendExact(r, b.Method, b.Delta, *b.Lattice, b.Orders...)
	}
	return account.Spend(r, b.Method, b.Delta, b.Orders...)
}

// Steps are noised gradient steps on Poisson samples. Noise is S = sigma/C.
type Steps struct {
	Noise, Rate float64
	Times       int64
}

// Event is what they release.
func (s Steps) Event() event.Event {
	return event.Repeated{Times: s.Times, Of: event.Sampled{Sampling: event.Poisson, Rate: s.Rate, Of: event.Gaussian{Noise: s.Noise}}}
}

// Tuning asks for the cost of the best of a random number of equal runs.
type Tuning struct {
	By
	Terms  account.Terms
	Run    Steps
	Trials event.Tuning // but for what it is a tuning of
}

// Answer prices the tuning, and one run alone.
func (q Tuning) Answer() (Answer, error) {
	e := q.Trials
	e.Of = q.Run.Event()
	r := event.Release{Unit: q.Terms.Unit, Relation: q.Terms.Relation, Claim: q.Terms.Claim, Trust: event.TrustLocal, What: e}
	g, err := q.Spend(r)
	if err != nil {
		return Answer{}, err
	}
	base := r
	base.What = e.Of
	one, err := q.Spend(base)
	if err != nil {
		return Answer{}, err
	}
	return Answer{
		Cost: g, Release: r, Lines: []string{"one run alone: " + one.Told()},
		Own: map[string]any{"noise": q.Run.Noise, "distribution": e.Distribution, "base_epsilon": event.Number(one.Epsilon)},
	}, nil
}

// Metric says what d-private releases lose: at their radius, and at a distance if one is given.
func Metric(plan account.MetricPlan) (Answer, error) {
	cost, err := plan.Cost()
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Cost: cost.Guarantee, Own: map[string]any{
		"noise_multiplier": plan.NoiseMultiplier, "releases": plan.Releases, "dimension": plan.Dimension,
		"epsilon_per_release": event.Number(cost.PerRelease), "distance": nil, "epsilon_at_distance": nil,
	}}
	if plan.Distance > 0 {
		a.Own["distance"], a.Own["epsilon_at_distance"] = plan.Distance, event.Number(cost.AtDistance)
		a.Lines = append(a.Lines, fmt.Sprintf("between two points %.6g apart all releases together lose epsilon %s (%s)",
			plan.Distance, account.Upward(cost.AtDistance), account.InTerms(cost.Statement())))
	}
	return a, nil
}

// Silos finds every silo's noise, and what the federation as a whole promises.
func Silos(m account.Method, plans ...account.SiloPlan) (Answer, []account.SiloCost, error) {
	silos, all, err := account.PlanSilos(m, plans...)
	if err != nil {
		return Answer{}, nil, err
	}
	list := make([]map[string]any, len(silos))
	for i, s := range silos {
		list[i] = s.Cost.Fields()
		list[i]["silo"], list[i]["noise"] = s.Plan.Name, s.Training.Noise
		list[i]["rate"], list[i]["steps"] = s.Training.Rate, s.Training.Steps
	}
	return Answer{Cost: all, Own: map[string]any{"silos": list}}, silos, nil
}
