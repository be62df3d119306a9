package account

import (
	"errors"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/event"
)

// Explain tells in lines how a release's epsilon came about, and what the accountants
// and conversions say; l is where exact noise is drawn, nil for continuous noise.
func Explain(r event.Release, delta float64, l *Lattice, orders ...float64) ([]string, error) {
	if err := event.Validate(r.What); err != nil {
		return nil, err
	}
	options := []Option{WithOrders(orders...)}
	noise := "continuous, as other accountants assume"
	if l != nil {
		options = append(options, WithExactNoise())
		noise = fmt.Sprintf("exact, on %d coordinates: sampled releases at whole Rényi orders, and a term in delta for pld", l.Coordinates)
	}
	rdp, err := NewRDP(TermsOf(r), options...)
	if err != nil {
		return nil, err
	}
	if err := rdp.Compose(r); err != nil {
		return nil, err
	}
	epsilon, order, err := rdp.Epsilon(delta)
	if err != nil {
		return nil, err
	}
	terms := fmt.Sprintf("%s, delta %.6g", TermsOf(r), delta)
	lines := []string{
		"released: " + event.Describe(r.What),
		"noise: " + noise,
		fmt.Sprintf("relation: %s, so the sensitivity is %v times the clip bound", r.Relation, rdp.terms.factor()),
		fmt.Sprintf("rdp: Rényi divergence %s at order %.6g, which gives epsilon %s (%s; Canonne, Kamath and Steinke 2020, proposition 12)",
			Upward(rdp.Curve().RDP(order)), order, Upward(epsilon), terms),
	}
	if classical, at, err := CurveEpsilon(rdp.Curve(), delta, Classical, orders...); err == nil && delta > 0 {
		lines = append(lines, fmt.Sprintf("rdp, classical conversion: epsilon %s at order %.6g (%s; Mironov 2017, proposition 3)", Upward(classical), at, terms))
	}
	switch loss, err := spend(r, MethodPLD, delta, l, nil); {
	case err == nil:
		lines = append(lines, loss.bothBounds(terms))
	case errors.Is(err, ErrUnsupported), errors.Is(err, ErrParameter):
		lines = append(lines, fmt.Sprintf("pld: none: %v", err))
	default:
		return nil, err
	}
	switch epsilon, err := zcdpEpsilon(r, delta); {
	case err == nil:
		lines = append(lines, fmt.Sprintf("zcdp: epsilon %s (%s)", Upward(epsilon), terms))
	case !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrParameter):
		return nil, err
	}
	return lines, nil
}

// bothBounds tells what holds, and what does not where that is known.
func (g Guarantee) bothBounds(terms string) string {
	if g.Optimistic == 0 {
		return fmt.Sprintf("pld: epsilon %s holds (%s; pessimistic bound)", Upward(g.Epsilon), terms)
	}
	return fmt.Sprintf("pld: epsilon %s holds, %s does not (%s; pessimistic and optimistic bound)", Upward(g.Epsilon), Downward(g.Optimistic), terms)
}

func zcdpEpsilon(r event.Release, delta float64) (float64, error) {
	z, err := NewZCDP(TermsOf(r), Improved)
	if err != nil {
		return 0, err
	}
	if err := z.Compose(r); err != nil {
		return 0, err
	}
	if delta == 0 {
		return math.Inf(1), nil
	}
	g, err := z.Guarantee(delta)
	return g.Epsilon, err
}
