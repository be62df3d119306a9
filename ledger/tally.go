package ledger

import (
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// scope is what a tally covers. Without a run it is the whole federation, without a
// federation the whole ledger.
type scope struct {
	terms           account.Terms
	federation, run string
}

// scopes are those that a charge counts in.
func scopes(c *Charge) [3]scope {
	t := account.TermsOf(c.Release)
	return [3]scope{{terms: t}, {t, c.Slot.Federation, ""}, {t, c.Slot.Federation, c.Slot.Run}}
}

// tally adds up releases on one set of terms, to say what they cost.
type tally struct {
	terms    account.Terms
	releases int
	bare     bool // the claim is none
	renyi    *account.RDP
	metric   account.Metric
	radius   float64 // of all d-private releases; 0 if they differ
	trust    event.Trust
}

func newTally(t account.Terms) (*tally, error) {
	one := &tally{terms: t, bare: t.Claim == event.ClaimNone}
	if one.bare || t.Relation == event.Metric {
		return one, nil
	}
	var err error
	one.renyi, err = account.NewRDP(t)
	return one, err
}

func (t *tally) add(r event.Release) error {
	switch {
	case t.bare:
		t.trust = r.Trust
	case t.renyi != nil:
		if err := t.renyi.Compose(r); err != nil {
			return err
		}
	default:
		if err := addMetric(&t.metric, r.What, 1); err != nil {
			return err
		}
		t.trust = r.Trust
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

// statement says what the releases cost at delta.
func (t *tally) statement(delta float64) (event.Statement, error) {
	if t.renyi != nil {
		g, err := t.renyi.Guarantee(delta)
		if err != nil {
			return event.Statement{}, err
		}
		s := g.Statement()
		s.NotCovered = append(s.NotCovered, apart)
		return s, nil
	}
	s := event.Statement{
		Claim: t.terms.Claim, Unit: t.terms.Unit, Relation: t.terms.Relation, Trust: t.trust, Sampling: string(event.FullBatch),
	}
	switch {
	case t.bare:
		s.NotCovered = []string{"everything: the releases are unprotected"}
		if t.releases > 0 {
			s.Epsilon = event.Number(math.Inf(1))
		}
	default:
		s.Epsilon = event.Number(t.metric.Epsilon())
		s.NotCovered = []string{
			"points further apart than the radius, which lose in proportion to their distance",
			"group membership: the choice of hypothesis uses private data",
		}
		if t.terms.Claim == event.ClaimHeuristic {
			s.NotCovered = []string{"everything: the claim is heuristic"}
		} else if t.radius != 0 {
			radius := event.Number(t.radius)
			s.Radius = &radius
		}
	}
	s.NotCovered = append(slices.Clip(s.NotCovered), "participation: the server sees who releases and when", apart)
	return s, nil
}
