package ledger

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// scope is what a tally covers. Without a run it is the whole federation, without a
// federation the whole ledger.
type scope struct {
	terms           Terms
	federation, run string
}

// scopes are those that a charge counts in.
func scopes(c *Charge) [3]scope {
	t := termsOf(c.Release)
	return [3]scope{{terms: t}, {t, c.Slot.Federation, ""}, {t, c.Slot.Federation, c.Slot.Run}}
}

// tally adds up releases on one set of terms, to say what they cost.
type tally struct {
	terms    Terms
	releases int
	bare     bool // the claim is none
	renyi    *account.RDP
	metric   metricSpend
	radius   float64 // of all d-private releases; 0 if they differ
}

func newTally(t Terms) (*tally, error) {
	one := &tally{terms: t, bare: t.Claim == event.ClaimNone}
	if one.bare || t.Relation == event.Metric {
		return one, nil
	}
	var err error
	one.renyi, err = account.NewRDP(t.Terms, account.WithExactNoise()) // what is in a ledger was released
	return one, err
}

func (t *tally) add(r event.Release) error {
	switch {
	case t.bare:
	case t.renyi != nil:
		if err := t.renyi.Compose(r); err != nil {
			return err
		}
	default:
		if err := t.metric.add(r.What, 1); err != nil {
			return err
		}
		radius := radiusOf(r.What)
		if t.releases > 0 && radius != t.radius {
			radius = 0
		}
		t.radius = radius
	}
	t.releases++
	return nil
}

// radiusOf is the one radius of a d-private event, 0 if there are several.
func radiusOf(e event.Event) float64 {
	switch e := e.(type) {
	case event.MetricLaplace:
		return e.Radius
	case event.Repeated:
		return radiusOf(e.Of)
	case event.Composed:
		radius := radiusOf(e.Parts[0]) // Validate wants one part at least
		for _, part := range e.Parts[1:] {
			if radiusOf(part) != radius {
				return 0
			}
		}
		return radius
	}
	return 0
}

// apart is not covered by any number of the ledger.
const apart = "releases on other terms, which are counted apart"

// publicSize is not covered where a row is replaced: batches, weights and steps tell it.
const publicSize = "the number of examples that are trained on: it is public, and a row that is replaced by one that is held out changes it"

// statement says what the releases cost, at the ceiling's delta.
func (t *tally) statement(c Ceiling) (event.Statement, error) {
	if t.renyi != nil {
		g, err := t.renyi.Guarantee(float64(c.Delta))
		if err != nil {
			return event.Statement{}, err
		}
		s := g.Statement()
		s.Trust = t.terms.Trust
		if s.Trust == event.TrustServer {
			s.NotCovered = append(s.NotCovered, "everything, against the server: it is sent the update itself and trusted to add the noise")
		}
		if t.terms.Unit == event.UnitExample && t.terms.Relation == event.ReplaceOne {
			s.NotCovered = append(s.NotCovered, publicSize)
		}
		s.NotCovered = append(s.NotCovered, apart)
		return s, nil
	}
	s := event.Statement{
		Claim: t.terms.Claim, Unit: t.terms.Unit, Relation: t.terms.Relation, Trust: t.terms.Trust, Sampling: string(event.FullBatch),
	}
	switch {
	case t.bare:
		s.NotCovered = []string{"everything: the releases are unprotected"}
		if t.releases > 0 {
			s.Epsilon = event.Number(math.Inf(1))
		}
	default:
		s.Epsilon = event.Number(t.metric.Epsilon())
		t.stateMetric(&s, c)
	}
	s.NotCovered = append(slices.Clip(s.NotCovered), "participation: the server sees who releases and when", apart)
	return s, nil
}

// stateMetric says what epsilon leaves open, and what bounds it.
func (t *tally) stateMetric(s *event.Statement, c Ceiling) {
	if t.terms.Claim == event.ClaimHeuristic {
		s.NotCovered = []string{"everything: the claim is heuristic, and nothing is promised against a server that chooses the plan and the hypotheses"}
		return
	}
	s.NotCovered = []string{
		"points further apart than the radius, which lose in proportion to their distance (epsilon_switch bounds it)",
		"group membership: the choice of hypothesis uses private data (epsilon_switch bounds it)",
	}
	if t.radius != 0 {
		radius := event.Number(t.radius)
		s.Radius = &radius
	}
	change := event.Number(t.metric.switchLoss(c.AssumedSpread))
	s.EpsilonSwitch = &change
	switch {
	case t.metric.open > 0 && c.AssumedSpread == nil:
		s.NotCovered = append(s.NotCovered, "early releases, which were recorded without the spread of their hypotheses: what they lose between any two data sets is not known")
	case t.metric.open > 0:
		s.NotCovered = append(s.NotCovered, fmt.Sprintf("hypotheses further apart than %v in early releases, whose spread was not recorded: epsilon_switch takes the owner's word for it", *c.AssumedSpread))
	}
}
