package account

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/event"
)

// flattenThinned: the proof counts what changes when a node goes with all its contacts, and
// nothing else (docs/proofs/thinned-steps.md).
func flattenThinned(e event.NodeThinned, t Terms, times float64) ([]counted, error) {
	switch {
	case t.Unit != event.UnitNode:
		return nil, fmt.Errorf("%w: noise for nodes protects %q, the account %q", ErrUnit, event.UnitNode, t.Unit)
	case t.Relation != event.Removal:
		return nil, fmt.Errorf("%w: thinned contacts are accounted under %q, not %q", ErrRelation, event.Removal, t.Relation)
	case e.Degree > maxSeries:
		return nil, fmt.Errorf("%w: a promise of %d contacts; up to %d can be added up", ErrUnsupported, e.Degree, maxSeries)
	}
	return one(nodeThinned{e}, times), nil
}

// nodeThinned is one step on all examples, of which a binomial number beside its own hold a
// node: the mixture, over that number x, of Gaussian mechanisms on sums that move by 2x+1
// clips.
type nodeThinned struct{ event.NodeThinned }

func (nodeThinned) comparableMechanism() {}

// curve: exp((a-1) D_a) is jointly convex, so that the mixture's is at most the mean of the
// Gaussians', exp(a(a-1) (2x+1)^2/(2 noise^2)): the form of a step on a batch, with the
// binomial's counts.
func (m nodeThinned) curve([]float64) Curve {
	return &nodeCurve{rate: atLeastSmallest(0.5 / m.Noise / m.Noise), counts: clipsMoved(m.Degree, m.Keep)}
}

// clipsMoved lists the chances that a sum moves by 2x+1 clips, x of Binomial(degree, keep),
// by the ratios of neighbouring terms, rounded up.
func clipsMoved(degree int64, keep float64) []probableCount {
	d := float64(degree)
	if keep == 1 {
		return []probableCount{{2*d + 1, 0}}
	}
	counts := make([]probableCount, 0, degree+1)
	var total logSum
	odds := math.Log(keep) - math.Log1p(-keep)
	log, largest := 0.0, 1.0
	for x := 0.0; x <= d; x++ {
		counts = append(counts, probableCount{2*x + 1, log})
		total.add(log)
		largest = math.Max(largest, math.Abs(log))
		log += odds + math.Log(d-x) - math.Log(x+1)
	}
	lost := 4e-16 * (d + 1) * largest // what so many sums can have lost
	for i := range counts {
		counts[i].logProbability += lost - total.log()
	}
	return counts
}
