package account

import (
	"errors"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/event"
)

// Explain tells in lines how a release's epsilon came about, and what the other
// accountants and conversions say.
func Explain(r event.Release, delta float64, orders ...float64) ([]string, error) {
	written, err := event.Marshal(r.What)
	if err != nil {
		return nil, err
	}
	rdp, err := NewRDP(TermsOf(r), WithOrders(orders...))
	if err != nil {
		return nil, err
	}
	if err := rdp.Compose(r); err != nil {
		return nil, err
	}
	lines := []string{
		"released: " + string(written),
		fmt.Sprintf("relation: %s, so the sensitivity is %v times the clip bound", r.Relation, rdp.terms.factor()),
	}
	epsilon, order, err := rdp.Epsilon(delta)
	if err != nil {
		return nil, err
	}
	lines = append(lines, fmt.Sprintf("rdp: Rényi divergence %.6g at order %.6g, which gives epsilon %.6g at delta %.6g (Canonne, Kamath and Steinke 2020, proposition 12)",
		rdp.Curve().RDP(order), order, epsilon, delta))
	if classical, at, err := CurveEpsilon(rdp.Curve(), delta, Classical, orders...); err == nil && delta > 0 {
		lines = append(lines, fmt.Sprintf("rdp, classical conversion: epsilon %.6g at order %.6g (Mironov 2017, proposition 3)", classical, at))
	}
	for _, other := range []struct {
		name string
		ask  func() (float64, error)
	}{
		{"pld, grid of 1e-4", func() (float64, error) { return pldEpsilon(r, delta) }},
		{"pld, grid as fine as needed", func() (float64, error) { return pldEpsilon(r, delta, WithInterval(0)) }},
		{"zcdp", func() (float64, error) { return zcdpEpsilon(r, delta) }},
	} {
		switch epsilon, err := other.ask(); {
		case err == nil:
			lines = append(lines, fmt.Sprintf("%s: epsilon %.6g", other.name, epsilon))
		case !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrParameter):
			return nil, err
		}
	}
	return lines, nil
}

func pldEpsilon(r event.Release, delta float64, options ...PLDOption) (float64, error) {
	p, err := NewPLD(TermsOf(r), options...)
	if err != nil {
		return 0, err
	}
	if err := p.Compose(r); err != nil {
		return 0, err
	}
	g, err := p.Guarantee(delta)
	return g.Epsilon, err
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
