package ledger

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// Policy is what a dataset may release in all. Terms that no ceiling names are
// refused: heuristic claims and unprotected releases must be named to be allowed.
type Policy struct {
	Ceilings []Ceiling `json:"ceilings"`
}

// Ceiling bounds all releases on one set of terms, in every run and federation
// together. It is fixed before the first release under it.
type Ceiling struct {
	Unit     event.Unit     `json:"unit"`
	Relation event.Relation `json:"relation"`
	Claim    event.Claim    `json:"claim"`
	// Trust says who adds the noise; empty: the participant. Ledgers of before have
	// ceilings that do not say it and held for everybody's noise: see setCeiling.
	Trust event.Trust `json:"trust,omitempty"`
	// Epsilon is the most that may be lost. Under the relation "metric" it bounds
	// the sum of the losses at each release's radius. The claim "none" wants
	// infinity: without noise there is no bound.
	Epsilon event.Number `json:"epsilon"`
	// Delta is 0 under the relation "metric" and for the claim "none".
	Delta event.Number `json:"delta"`
	// Distance, under the relation "metric", holds the loss between two points that
	// far apart to Epsilon as well: otherwise a plan with a tiny radius would buy
	// little privacy at the price of much. 0: not bounded.
	Distance event.Number `json:"distance,omitempty"`
	// EpsilonSwitch, required of the claim "metric" and of no other, bounds the sum of
	// the losses between any two data sets: see event.MetricLaplace.Switch. Epsilon and
	// Distance do not hold a server that chooses radius and hypotheses; this does.
	EpsilonSwitch event.Number `json:"epsilon_switch,omitempty"`
	// AssumedSpread is for releases that were recorded without their spread: the owner
	// states how far apart the hypotheses were at most. nil: they count as unbounded.
	AssumedSpread *event.Number `json:"assumed_spread,omitempty"`
	// Filter is FilterRenyi (the default) or FilterZCDP.
	Filter string `json:"filter,omitempty"`
	// Orders are the Rényi filter's, delta being shared out among them. Without them
	// it takes two: see defaultOrders.
	Orders []float64 `json:"orders,omitempty"`
}

// The filters that keep an (epsilon, delta) ceiling under adaptive releases.
const (
	FilterRenyi = "renyi"
	FilterZCDP  = "zcdp" // knows no sampling
)

// Terms are what the ceiling's releases share.
func (c Ceiling) Terms() Terms {
	t := Terms{account.Terms{Unit: c.Unit, Relation: c.Relation, Claim: c.Claim}, c.Trust}
	switch {
	case c.Claim == event.ClaimNone:
		t.Trust = event.TrustNobody
	case c.Trust == "":
		t.Trust = event.TrustLocal
	}
	return t
}

// Validate lists everything that is wrong with the policy.
func (p Policy) Validate() error {
	var faults []error
	seen := map[Terms]bool{}
	for i, c := range p.Ceilings {
		if err := c.Validate(); err != nil {
			faults = append(faults, fmt.Errorf("ceilings[%d]: %w", i, err))
		}
		if seen[c.Terms()] {
			faults = append(faults, fmt.Errorf("ceilings[%d]: a second ceiling for %s", i, describe(c.Terms())))
		}
		seen[c.Terms()] = true
	}
	return errors.Join(faults...)
}

// Validate says what is wrong with the ceiling, if anything.
func (c Ceiling) Validate() error {
	if err := c.wellFormed(); err != nil {
		return err
	}
	switch change := float64(c.EpsilonSwitch); {
	case c.Claim == event.ClaimMetric && change == 0:
		return fmt.Errorf("epsilon_switch is missing: it bounds what any two data sets may lose, epsilon*(2*radius + spread) summed over all releases, and epsilon alone does not hold a server that chooses radius and hypotheses")
	case c.Claim == event.ClaimHeuristic && c.Distance > 0:
		return fmt.Errorf("the distance is %v, but the claim %q has a private radius: a refusal for the distance's sake would tell it; leave the distance out", c.Distance, c.Claim)
	}
	return nil
}

// wellFormed is Validate for ceilings of any age.
func (c Ceiling) wellFormed() error {
	blank := event.Release{Unit: c.Unit, Relation: c.Relation, Claim: c.Claim, Trust: c.Terms().Trust, What: event.Unprotected{}}
	if err := blank.Validate(); err != nil {
		return err
	}
	epsilon, delta, distance := float64(c.Epsilon), float64(c.Delta), float64(c.Distance)
	metric := c.Relation == event.Metric
	if metric != (c.Unit == event.UnitNeighbourhood) {
		return fmt.Errorf("the unit %q does not go with the relation %q", c.Unit, c.Relation)
	}
	if c.Claim != event.ClaimNone && c.Claim != event.ClaimHeuristic && metric != (c.Claim == event.ClaimMetric) {
		return fmt.Errorf("the claim %q does not go with the relation %q", c.Claim, c.Relation)
	}
	if none := c.Claim == event.ClaimNone; c.Trust != "" && none != (c.Trust == event.TrustNobody) {
		return fmt.Errorf("the trust %q does not go with the claim %q", c.Trust, c.Claim)
	}
	if err := c.checkSwitch(); err != nil {
		return err
	}
	if (metric || c.Claim == event.ClaimNone) && (c.Filter != "" || len(c.Orders) > 0) {
		return fmt.Errorf("a filter has no meaning for %s", describe(c.Terms()))
	}
	if !(distance >= 0) || math.IsInf(distance, 1) || (distance > 0 && (!metric || c.Claim == event.ClaimNone)) {
		return fmt.Errorf("the distance is %v; want a finite number > 0 under the relation %q, and none elsewhere", distance, event.Metric)
	}
	switch {
	case c.Claim == event.ClaimNone:
		if !math.IsInf(epsilon, 1) || delta != 0 {
			return fmt.Errorf("epsilon is %v, but releases of the claim %q are unbounded; want inf, and delta 0", epsilon, c.Claim)
		}
		return nil
	case metric:
		if !(epsilon > 0) || math.IsInf(epsilon, 1) || delta != 0 {
			return fmt.Errorf("epsilon is %v and delta %v; want a finite epsilon > 0, and delta 0", epsilon, delta)
		}
		return nil
	}
	_, err := newFilter(c)
	return err
}

// checkSwitch looks at what bounds the loss between any two data sets.
func (c Ceiling) checkSwitch() error {
	change := float64(c.EpsilonSwitch)
	switch {
	case !(change >= 0) || math.IsInf(change, 1):
		return fmt.Errorf("epsilon_switch is %v; want a finite number > 0", change)
	case change > 0 && c.Claim != event.ClaimMetric:
		return fmt.Errorf("epsilon_switch has no meaning for the claim %q: no public radius bounds its releases", c.Claim)
	case c.AssumedSpread == nil:
		return nil
	case change == 0:
		return fmt.Errorf("an assumed spread has no meaning without epsilon_switch")
	case !(*c.AssumedSpread >= 0) || math.IsInf(float64(*c.AssumedSpread), 1):
		return fmt.Errorf("the assumed spread is %v; want a finite number, at least 0", *c.AssumedSpread)
	}
	return nil
}

// resolve fills in what the ceiling leaves open, so that it is fixed for ever.
func (c Ceiling) resolve() (Ceiling, error) {
	c.Trust = c.Terms().Trust
	if c.Relation == event.Metric || c.Claim == event.ClaimNone {
		return c, nil
	}
	if c.Filter == "" {
		c.Filter = FilterRenyi
	}
	if c.Filter == FilterRenyi && len(c.Orders) == 0 {
		var err error
		c.Orders, err = defaultOrders(float64(c.Epsilon), float64(c.Delta))
		return c, err
	}
	return c, nil
}

// defaultOrders are the order that serves Gaussian noise best, and a lower one: the
// curve of small batches with little noise rises steeply from some order on, and
// would use up the first one at once. The second costs about 6 % of the releases
// where it is not needed.
func defaultOrders(epsilon, delta float64) ([]float64, error) {
	best, err := account.FilterOrder(gaussianShape{}, epsilon, delta)
	if err != nil {
		return nil, err
	}
	return []float64{best, 1 + 0.6*(best-1)}, nil
}

// gaussianShape is the Rényi curve of Gaussian noise, up to a factor.
type gaussianShape struct{}

// RDP grows with the order.
func (gaussianShape) RDP(order float64) float64 { return order }

// sameAs compares a ceiling with a resolved one; what it leaves open fits anything.
func (c Ceiling) sameAs(recorded Ceiling) bool {
	return c.Terms() == recorded.Terms() && c.Epsilon == recorded.Epsilon && c.Delta == recorded.Delta &&
		c.Distance == recorded.Distance && c.EpsilonSwitch == recorded.EpsilonSwitch &&
		(c.AssumedSpread == nil || recorded.AssumedSpread != nil && *c.AssumedSpread == *recorded.AssumedSpread) &&
		(c.Filter == "" || c.Filter == recorded.Filter) &&
		(len(c.Orders) == 0 || slices.Equal(c.Orders, recorded.Orders))
}

// String says the ceiling's numbers.
func (c Ceiling) String() string {
	text := fmt.Sprintf("epsilon %v, delta %v", c.Epsilon, c.Delta)
	if c.Distance > 0 {
		text += fmt.Sprintf(", distance %v", c.Distance)
	}
	if c.EpsilonSwitch > 0 {
		text += fmt.Sprintf(", epsilon_switch %v", c.EpsilonSwitch)
	}
	if c.AssumedSpread != nil {
		text += fmt.Sprintf(", assumed spread %v", *c.AssumedSpread)
	}
	return text
}
