package account

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/event"
)

// flatten lists what an event costs on the given terms, times over. It is where
// sampling, relation, unit and claim must fit together (DESIGN, errata 10-15).
func flatten(e event.Event, t Terms, times float64) ([]counted, error) {
	switch e := e.(type) {
	case event.Gaussian:
		return one(gaussian{e.Noise / t.factor()}, times), nil
	case event.Laplace:
		return one(laplace{t.factor() / e.Scale}, times), nil
	case event.DiscreteGaussian:
		if e.Bound > math.MaxInt64/2 {
			return nil, fmt.Errorf("%w: bound = %d lattice steps is too large", ErrParameter, e.Bound)
		}
		return one(discreteGaussian{e.Sigma, e.Bound * int64(t.factor())}, times), nil
	case event.Selection:
		return one(newSelection(e), times), nil
	case event.Unprotected:
		return one(unprotected{}, times), nil
	case event.MetricLaplace:
		return nil, fmt.Errorf("%w: noise at a radius protects distances; use the metric account", ErrRelation)
	case event.NodeGaussian:
		return flattenNode(e, t, times)
	case event.NodeSum:
		return flattenNodeSum(e, t, times)
	case event.NodeThinned:
		return flattenThinned(e, t, times)
	case event.Sampled:
		return flattenSampled(e, t, times)
	case event.Repeated:
		return flatten(e.Of, t, times*float64(e.Times))
	case event.Composed:
		var all []counted
		for _, part := range e.Parts {
			costs, err := flatten(part, t, times)
			if err != nil {
				return nil, err
			}
			for _, c := range costs {
				all = addCost(all, c)
			}
		}
		return all, nil
	case event.Tuning:
		return flattenTuning(e, t, times)
	}
	return nil, fmt.Errorf("%w: %s", ErrUnsupported, event.Describe(e))
}

func one(m mechanism, times float64) []counted {
	if times == 0 {
		return nil
	}
	return []counted{{m, times}}
}

// newSelection: epsilon^2/8-zCDP is the exponential mechanism's alone, by its
// bounded range (Rogers and Steinke 2021); the others have what pure epsilon
// gives, epsilon^2/2 (DESIGN, erratum 15).
func newSelection(e event.Selection) selection {
	share := 0.5
	if e.Mechanism == event.Exponential {
		share = 0.125
	}
	return selection{atLeastSmallest(share * e.Epsilon * e.Epsilon), e.Epsilon}
}

func flattenSampled(e event.Sampled, t Terms, times float64) ([]counted, error) {
	switch e.Sampling {
	case event.FullBatch, event.Shuffle:
		// An epoch's batches are disjoint, so it is one release without
		// amplification (DESIGN, erratum 10).
		return flatten(e.Of, t, times)
	case event.Poisson:
		if t.Relation != event.AddRemove {
			return nil, fmt.Errorf("%w: poisson sampling is accounted under %q, not %q", ErrSampling, event.AddRemove, t.Relation)
		}
		noise, err := jointNoise(e.Of, t)
		if err != nil {
			return nil, err
		}
		switch {
		case e.Rate == 0 || math.IsInf(noise, 1):
			return nil, nil
		case e.Rate == 1:
			return one(gaussian{noise}, times), nil
		}
		return one(poissonGaussian{e.Rate, noise}, times), nil
	case event.WithoutReplacement:
		if t.Relation != event.ReplaceOne {
			return nil, fmt.Errorf("%w: sampling without replacement is accounted under %q, not %q", ErrSampling, event.ReplaceOne, t.Relation)
		}
		noise, err := jointNoise(e.Of, t)
		if err != nil {
			return nil, err
		}
		switch {
		case math.IsInf(noise, 1):
			return nil, nil
		case e.Batch == e.Examples:
			return one(gaussian{noise}, times), nil
		}
		return one(withoutReplacement{float64(e.Batch) / float64(e.Examples), noise}, times), nil
	}
	return nil, fmt.Errorf("%w: %q", ErrSampling, e.Sampling)
}

// jointNoise is the noise of the one Gaussian mechanism that several on the same
// batch amount to: 1/noise^2 adds up (docs/proofs/joint-clipping.md). +Inf means
// that nothing is released.
func jointNoise(e event.Event, t Terms) (float64, error) {
	costs, err := flatten(e, t, 1)
	if err != nil {
		return 0, err
	}
	precision := 0.0
	for _, c := range costs {
		g, ok := c.of.(gaussian)
		if !ok {
			return 0, fmt.Errorf("%w: only Gaussian noise on a sample has a proved amplification here", ErrUnsupported)
		}
		precision += c.times * 2 * g.rho()
	}
	if len(costs) == 1 && costs[0].times == 1 {
		return costs[0].of.(gaussian).noise, nil
	}
	return 1 / math.Sqrt(precision), nil
}

func flattenNode(e event.NodeGaussian, t Terms, times float64) ([]counted, error) {
	if t.Unit != event.UnitNode {
		return nil, fmt.Errorf("%w: noise for nodes protects %q, the account %q", ErrUnit, event.UnitNode, t.Unit)
	}
	if e.Formula == event.AuthorsCode && t.Claim != event.ClaimHeuristic {
		return nil, fmt.Errorf("%w: the formula of the authors' code is %q only", ErrClaim, event.ClaimHeuristic)
	}
	if min(e.Occurrences, e.Batch) > maxSeries {
		return nil, fmt.Errorf("%w: occurrences and batch are both above %d", ErrUnsupported, maxSeries)
	}
	return one(nodeGaussian{e}, times), nil
}

// flattenNodeSum: where S examples change, the node's own goes and each other moves by two
// clips at most, so that the sum moves by 2S-1 of them; if another node comes in its place
// by twice that (docs/proofs/node-relations.md).
func flattenNodeSum(e event.NodeSum, t Terms, times float64) ([]counted, error) {
	if t.Unit != event.UnitNode {
		return nil, fmt.Errorf("%w: noise for nodes protects %q, the account %q", ErrUnit, event.UnitNode, t.Unit)
	}
	moves := float64(2*e.Examples - 1)
	switch t.Relation {
	case event.OwnRecord, event.Removal:
	case event.ReplaceOne:
		moves *= 2
	default:
		return nil, fmt.Errorf("%w: a sum over nodes is accounted under %q, %q and %q, not %q", ErrRelation, event.OwnRecord, event.Removal, event.ReplaceOne, t.Relation)
	}
	return one(gaussian{e.Noise / moves}, times), nil
}
