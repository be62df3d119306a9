package account

import (
	"fmt"

	"github.com/coterie-fl/coterie/dp/event"
)

// Federation is what a federation of silos promises to any one unit: the largest
// epsilon and the largest delta, since a unit's data lies in one silo only
// (docs/proofs/silo-composition.md). All must stand on the same terms.
func Federation(silos ...Guarantee) (Guarantee, error) {
	if len(silos) == 0 {
		return Guarantee{}, parameter("silos", 0, "at least one")
	}
	all := silos[0]
	for _, s := range silos[1:] {
		switch {
		case s.Unit != all.Unit:
			return Guarantee{}, fmt.Errorf("%w: silos protect %q and %q", ErrUnit, all.Unit, s.Unit)
		case s.Relation != all.Relation:
			return Guarantee{}, fmt.Errorf("%w: silos hold under %q and %q", ErrRelation, all.Relation, s.Relation)
		case s.Claim != all.Claim:
			return Guarantee{}, fmt.Errorf("%w: silos claim %q and %q", ErrClaim, all.Claim, s.Claim)
		}
		if s.Epsilon > all.Epsilon {
			all.Epsilon, all.Order = s.Epsilon, s.Order
		}
		all.Delta = max(all.Delta, s.Delta)
		if trustRank(s.Trust) > trustRank(all.Trust) {
			all.Trust = s.Trust
		}
	}
	all.NotCovered = append(append([]string{}, all.NotCovered...), "units whose data lies in more than one silo")
	return all, nil
}

// SiloPlan is one silo's wish: train so many epochs and keep (epsilon, delta).
type SiloPlan struct {
	Name                    string
	Examples, Batch, Epochs int64
	Epsilon, Delta          float64
}

// SiloCost is what a silo must do, and what it then spends.
type SiloCost struct {
	Plan     SiloPlan
	Training Training
	Cost     Guarantee
}

// PlanSilos finds every silo's noise, Poisson sampling under add-remove, and the
// federation's line. The sizes decide rates and noise, so they must be public.
func PlanSilos(m Method, plans ...SiloPlan) ([]SiloCost, Guarantee, error) {
	costs := make([]SiloCost, 0, len(plans))
	lines := make([]Guarantee, 0, len(plans))
	for _, plan := range plans {
		steps, err := Epochs(plan.Epochs, plan.Batch, plan.Examples)
		if err != nil {
			return nil, Guarantee{}, fmt.Errorf("silo %q: %w", plan.Name, err)
		}
		training := Training{
			Terms: Terms{event.UnitExample, event.AddRemove, event.ClaimProved}, Trust: event.TrustLocal,
			Sampling: event.Poisson, Rate: float64(plan.Batch) / float64(plan.Examples), Steps: steps,
		}
		training, cost, err := training.WithNoiseFor(m, plan.Epsilon, plan.Delta)
		if err != nil {
			return nil, Guarantee{}, fmt.Errorf("silo %q: %w", plan.Name, err)
		}
		cost.NotCovered = append(cost.NotCovered, SizeNotCovered)
		costs = append(costs, SiloCost{plan, training, cost})
		lines = append(lines, cost)
	}
	all, err := Federation(lines...)
	return costs, all, err
}

// SizeNotCovered is what a number says when rate or steps came from the number of
// examples under add-remove (DESIGN, erratum 14).
const SizeNotCovered = "the number of examples: it must be public, or a declared lower bound"
