package account

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
)

// PLD adds up releases by their privacy loss distributions: the tightest of the
// accountants, for schedules that are fixed in advance (DESIGN, erratum 20). It
// is exact for Gaussian noise without sampling and for a single release.
type PLD struct {
	account
	interval float64
	maxGrid  int
	excess   float64
	lattice  *Lattice // nil: continuous noise
}

// DefaultExcess is how far the upper bound on epsilon may lie above the lower one
// before the grid of losses is made finer, as far as the work allows: 1 %.
const DefaultExcess = 0.01

// PLDOption changes how finely a PLD accountant computes.
type PLDOption func(*PLD)

// WithInterval sets the smallest step between losses, for comparisons with
// implementations that have a fixed one (1e-4 in dp_accounting). Without it the grid is
// as fine as accuracy asks, and the Rényi bound serves where that is better still.
func WithInterval(interval float64) PLDOption {
	return func(p *PLD) { p.interval, p.excess = interval, 0 }
}

// WithLattice accounts for exact noise: the continuous normal's losses, and the term by
// which exact noise may differ. It refuses a delta that the term uses up.
func WithLattice(l Lattice) PLDOption { return func(p *PLD) { p.lattice = &l } }

// quick leaves the lower bound as it comes, for searches that ask for the upper one.
func quick(p *PLD) { p.excess = 0 }

// defaultGrid is the largest grid of losses; more steps than it suits cost
// tightness, never soundness.
const defaultGrid = 1 << 20

// maxTimes bounds the number of compositions, which the FFT must count exactly.
const maxTimes = 1e15

// NewPLD starts an empty account on these terms.
func NewPLD(t Terms, options ...PLDOption) (*PLD, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	p := &PLD{account: account{terms: t}, maxGrid: defaultGrid, excess: DefaultExcess}
	for _, o := range options {
		o(p)
	}
	if !(p.interval >= 0) || math.IsInf(p.interval, 1) {
		return nil, parameter("interval", p.interval, "a finite number >= 0")
	}
	return p, nil
}

// Compose adds a release, or refuses it and changes nothing.
func (p *PLD) Compose(r event.Release) error {
	costs, err := p.weigh(r)
	if err != nil {
		return err
	}
	for _, c := range costs {
		if err := hasLoss(c); err != nil {
			return err
		}
	}
	p.record(r, costs)
	return nil
}

// hasLoss refuses what has no privacy loss distribution here.
func hasLoss(c counted) error {
	if c.times > maxTimes {
		return fmt.Errorf("%w: %g releases, the PLD accountant takes up to %g", ErrUnsupported, c.times, maxTimes)
	}
	switch m := c.of.(type) {
	case gaussian, poissonGaussian, laplace, selection, unprotected:
		return nil
	case discreteGaussian:
		if m.sigma <= maxLatticeSigma {
			return nil
		}
		return fmt.Errorf("%w: a discrete Gaussian of sigma %v has too many losses; use the RDP accountant", ErrUnsupported, m.sigma)
	}
	return fmt.Errorf("%w: sampling without replacement, node-level and tuned releases have no privacy loss distribution here; use the RDP accountant", ErrUnsupported)
}

// Guarantee is epsilon at delta, rounded up (pessimistic).
func (p *PLD) Guarantee(delta float64) (Guarantee, error) {
	low, high, err := p.Bounds(delta)
	if err != nil {
		return Guarantee{}, err
	}
	g := p.guarantee(high, delta, 0, string(MethodPLD))
	if p.attained() {
		g.Optimistic = low
	}
	return g, nil
}

// attained says whether what is charged is what some mechanism of its kind really loses,
// so that a lower bound is the mechanism's own. A choice may lose far less than
// randomised response with its epsilon, and shuffled batches less than batches that are
// known: what is charged for these is a bound only (docs/proofs/pld.md).
func (p *PLD) attained() bool {
	return !slices.Contains(p.sampling, event.Shuffle) &&
		!slices.ContainsFunc(p.costs, func(c counted) bool { _, choice := c.of.(selection); return choice })
}

// Bounds are those of the losses that are charged: an epsilon that certainly does not
// hold for them (or 0) and one that certainly does, the optimistic and the pessimistic
// reading of the discretised losses.
func (p *PLD) Bounds(delta float64) (low, high float64, err error) {
	if p.lattice == nil {
		return p.continuous(delta)
	}
	return p.lattice.bounds(drawn(p.costs), delta, p.continuous)
}

// continuous are the bounds for continuous noise.
func (p *PLD) continuous(delta float64) (low, high float64, err error) {
	if err := checkDelta(delta); err != nil {
		return 0, 0, err
	}
	if len(p.costs) == 0 {
		return 0, 0, nil
	}
	if delta == 0 {
		pure := p.curve().RDP(math.Inf(1))
		return pure, pure, nil
	}
	if delta < 1e-200 {
		return 0, 0, parameter("delta", delta, "0, or at least 1e-200, for the PLD accountant")
	}
	if exact, ok := p.exact(delta); ok {
		return exact * (1 - 1e-9), exact, nil
	}
	low, high = p.onGrid(delta)
	if p.interval > 0 && !math.IsInf(high, 1) {
		return math.Min(low, high), high, nil
	}
	// Where the grid cannot follow, at extreme numbers of steps or tails, the Rényi
	// bound is the better one; both hold.
	renyi, _, err := CurveEpsilon(p.curve(), delta, Improved)
	high = math.Min(high, renyi)
	return math.Min(low, high), high, err
}

// onGrid bounds epsilon by compositions on a grid of losses: the worse direction
// counts, and only one that may be the worse is worth a finer grid.
func (p *PLD) onGrid(delta float64) (low, high float64) {
	directions := p.directions()
	found := make([]bounds, len(directions))
	for i, remove := range directions {
		found[i] = p.composition(remove).epsilon(delta)
		low = math.Max(low, found[i].low)
	}
	for i, remove := range directions {
		if p.excess > 0 {
			found[i] = p.composition(remove).refine(found[i], delta, low, p.excess)
		}
		low, high = math.Max(low, found[i].low), math.Max(high, found[i].high)
	}
	return low, high
}

func (p *PLD) curve() Curve {
	curve := make(sum, len(p.costs))
	for i, c := range p.costs {
		curve[i] = scaled{c.of.curve(nil), c.times}
	}
	return curve
}

// directions: only sampling tells adding from removing.
func (p *PLD) directions() []bool {
	for _, c := range p.costs {
		if _, ok := c.of.(poissonGaussian); ok {
			return []bool{true, false}
		}
	}
	return []bool{true}
}

// exact answers where a closed form exists.
func (p *PLD) exact(delta float64) (float64, bool) {
	mu2, rest := 0.0, []counted{}
	for _, c := range p.costs {
		switch m := c.of.(type) {
		case gaussian:
			mu2 += c.times * 2 * m.rho()
		case unprotected:
			return math.Inf(1), true
		default:
			rest = append(rest, c)
		}
	}
	if len(rest) == 0 {
		return gaussianEpsilon(math.Sqrt(mu2)*(1+1e-14), delta), true
	}
	if mu2 > 0 || len(rest) != 1 || rest[0].times != 1 {
		return 0, false
	}
	switch m := rest[0].of.(type) {
	case poissonGaussian:
		return solveEpsilon(delta, m.delta), true
	case laplace:
		return solveEpsilon(delta, m.delta), true
	}
	return 0, false
}

// composition lists the loss sources in one direction; all Gaussians are one.
func (p *PLD) composition(remove bool) composition {
	c := composition{least: p.interval, maxGrid: p.maxGrid}
	mu2 := 0.0
	add := func(s lossSource, times float64) {
		c.sources, c.times = append(c.sources, s), append(c.times, times)
	}
	for _, cost := range p.costs {
		switch m := cost.of.(type) {
		case gaussian:
			mu2 += cost.times * 2 * m.rho()
		case poissonGaussian:
			add(poissonLoss{m, remove}, cost.times)
		case laplace:
			add(laplaceLoss(m), cost.times)
		case selection:
			add(pureLoss{m.epsilon}, cost.times)
		case discreteGaussian:
			add(discreteGaussianLoss{m}, cost.times)
		}
	}
	if mu2 > 0 {
		add(gaussianLoss{math.Sqrt(mu2)}, 1)
	}
	return c
}

// delta is exact for one release: with e^eps = 1-q+q*e^x the mixture's delta is
// q*delta_Gauss(x), and likewise for the reverse direction.
func (m poissonGaussian) delta(epsilon float64) float64 {
	mu := 1 / m.noise
	removed := m.rate * gaussianDelta(mu, math.Log1p(math.Expm1(epsilon)/m.rate))
	if math.IsInf(math.Expm1(epsilon)/m.rate, 1) {
		removed = m.rate * gaussianDelta(mu, epsilon-math.Log(m.rate))
	}
	share := 1 - math.Exp(epsilon)*(1-m.rate)
	if !(share > 0) {
		return removed
	}
	return math.Max(removed, share*gaussianDelta(mu, math.Max(0, epsilon+math.Log(m.rate/share))))
}

// delta is exact for one release of scalar Laplace noise.
func (l laplace) delta(epsilon float64) float64 {
	return math.Max(0, -math.Expm1((epsilon-l.epsilon)/2))
}

// solveEpsilon is the least epsilon with delta(epsilon) <= delta, from above.
func solveEpsilon(delta float64, at func(float64) float64) float64 {
	if at(0) <= delta {
		return 0
	}
	low, high := 0.0, 1e-300
	for at(high) > delta {
		low, high = high, math.Max(2*high, 1e-12)
		if math.IsInf(high, 1) {
			return high
		}
	}
	for range 200 {
		middle := low + (high-low)/2
		if middle == low || middle == high {
			break
		}
		if at(middle) <= delta {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
