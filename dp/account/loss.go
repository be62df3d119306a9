package account

import "math"

// A privacy loss distribution is the law of log(P/Q) under P, where P and Q are
// the outputs on two neighbours. lossSource is that of one mechanism in one
// direction.
type lossSource interface {
	// spread puts the loss on the multiples of step, pessimistically: what the
	// grid's distribution says about delta is never below the truth. At most tail
	// of the mass becomes an infinite loss.
	spread(step, tail float64) gridLoss
	// sketch is a rough list of atoms, good enough to choose windows and tilts.
	sketch(tail float64) []lossAtom
	// span is the width of the losses that spread keeps.
	span(tail float64) float64
}

type lossAtom struct{ loss, mass float64 }

// gridLoss is mass[i] at loss (first+i)*step.
type gridLoss struct {
	step     float64
	first    int
	mass     []float64
	infinite float64
	// lifted[k] is the mass of bins of which rounding errors moved a share of at most
	// 2^-k, and more than 2^-(k+1), to the upper end.
	lifted [64]float64
}

func newGridLoss(low, high, step float64) gridLoss {
	first := int(math.Floor(low/step)) - 1
	last := int(math.Ceil(high/step)) + 1
	return gridLoss{step: step, first: first, mass: make([]float64, last-first+1)}
}

// bin adds the mass of the losses between grid points k and k+1: p under P, q
// under Q, each with the relative error given. It is split between the two points
// so that both masses are kept, which replaces delta's convex curve by its chord
// ("connect the dots", Doroshenko et al. 2022; docs/proofs/pld.md).
func (g *gridLoss) bin(k int, p, q, relativeError float64) {
	if p <= 0 {
		return
	}
	upper := (-math.Expm1(float64(k)*g.step+math.Log(q/p)) + relativeError) / -math.Expm1(-g.step)
	upper = math.Min(1, math.Max(0, upper)) // NaN cannot be: p > 0, and q = 0 gives 1
	_, size := math.Frexp(math.Min(1, 2*relativeError/-math.Expm1(-g.step)))
	g.lifted[min(len(g.lifted)-1, max(0, -size))] += p
	g.mass[k-g.first] += p * (1 - upper)
	g.mass[k+1-g.first] += p * upper
}

// lift is a share of its mass that no bin lost to its upper end by rounding errors, but
// for bins that together have at most the mass spare.
func (g *gridLoss) lift(spare float64) float64 {
	for k, mass := range g.lifted {
		if spare -= mass; spare < 0 {
			return math.Exp2(-float64(k))
		}
	}
	return 0
}

// atom adds one loss.
func (g *gridLoss) atom(loss, p float64) {
	k := int(math.Floor(loss / g.step))
	g.bin(k, p, p*math.Exp(-loss), 4e-16*(1+math.Abs(loss)))
}

// normalInterval is the standard normal mass of (a, b) and its relative error.
func normalInterval(a, b float64) (mass, relativeError float64) {
	if a > b {
		return 0, 0
	}
	if a+b < 0 {
		a, b = -b, -a
	}
	// Now the interval leans to the right, where erfc keeps its digits.
	high := math.Erfc(a / math.Sqrt2)
	mass = (high - math.Erfc(b/math.Sqrt2)) / 2
	if mass <= 0 {
		return 0, 0
	}
	return mass, 4e-16 * high / mass
}

// tailReach is a z with standard normal tail at most tail.
func tailReach(tail float64) float64 { return math.Sqrt(-2 * math.Log(tail)) }

// lowReach is where sources stop on the side of negative losses: the mass beyond
// is moved up to the last point, which costs nothing worth having.
const lowReach = 9

// lowMass is above the normal mass beyond lowReach.
const lowMass = 1.2e-19

// gaussianLoss is the loss N(mu^2/2, mu^2), the same in both directions.
type gaussianLoss struct{ mu float64 }

func (s gaussianLoss) bounds(tail float64) (low, high float64) {
	return s.mu*s.mu/2 - lowReach*s.mu, s.mu*s.mu/2 + tailReach(tail)*s.mu
}

func (s gaussianLoss) span(tail float64) float64 {
	low, high := s.bounds(tail)
	return high - low
}

func (s gaussianLoss) spread(step, tail float64) gridLoss {
	low, high := s.bounds(tail)
	g := newGridLoss(low, high, step)
	at := func(k int) float64 { return float64(k) * step / s.mu }
	last := g.first + len(g.mass) - 1
	for k := g.first; k < last; k++ {
		p, e1 := normalInterval(at(k)-s.mu/2, at(k+1)-s.mu/2)
		q, e2 := normalInterval(at(k)+s.mu/2, at(k+1)+s.mu/2)
		g.bin(k, p, q, e1+e2)
	}
	below, _ := normalInterval(math.Inf(-1), at(g.first)-s.mu/2)
	g.mass[0] += below
	g.infinite, _ = normalInterval(at(last)-s.mu/2, math.Inf(1))
	return g
}

func (s gaussianLoss) sketch(tail float64) []lossAtom {
	return sketchNormal(-lowReach, tailReach(tail), func(z, mass float64) lossAtom {
		return lossAtom{s.mu*s.mu/2 + s.mu*z, mass}
	})
}

// sketchNormal cuts a standard normal between low and high into atoms.
func sketchNormal(low, high float64, atom func(z, mass float64) lossAtom) []lossAtom {
	const cells = 600
	width := (high - low) / cells
	atoms := make([]lossAtom, cells)
	for i := range atoms {
		z := low + (float64(i)+0.5)*width
		atoms[i] = atom(z, normalDensity(z)*width)
	}
	return atoms
}

// poissonLoss is the loss of a Gaussian on a Poisson sample. With remove, P is the
// mixture of N(0,s^2) and N(1,s^2) and Q is N(0,s^2); without, the reverse.
type poissonLoss struct {
	poissonGaussian
	remove bool
}

// at is log of mixture over N(0,s^2) at x.
func (s poissonLoss) at(x float64) float64 {
	w := (x - 0.5) / s.noise / s.noise
	if w > 700 {
		return log1pExp(w + math.Log(s.rate))
	}
	return math.Log1p(s.rate * math.Expm1(w))
}

// where is the inverse of at.
func (s poissonLoss) where(loss float64) float64 {
	ratio := math.Expm1(loss) / s.rate // e^w - 1
	switch {
	case !(ratio > -1):
		return math.Inf(-1)
	case math.IsInf(ratio, 1):
		return 0.5 + s.noise*s.noise*(loss-math.Log(s.rate))
	}
	return 0.5 + s.noise*s.noise*math.Log1p(ratio)
}

// bounds are of x: P's mass outside is negligible on the side of low losses and at
// most tail on the other.
func (s poissonLoss) bounds(tail float64) (left, right float64) {
	if s.remove {
		return -lowReach * s.noise, 1 + tailReach(tail)*s.noise
	}
	return -tailReach(tail) * s.noise, lowReach * s.noise
}

func (s poissonLoss) span(tail float64) float64 {
	left, right := s.bounds(tail)
	return s.at(right) - s.at(left)
}

func (s poissonLoss) spread(step, tail float64) gridLoss {
	left, right := s.bounds(tail)
	low, high := s.at(left), s.at(right)
	if !s.remove {
		low, high = -high, -low
	}
	g := newGridLoss(low, high, step)
	last := g.first + len(g.mass) - 1
	edge := func(k int) float64 {
		if s.remove {
			return s.where(float64(k) * step)
		}
		return s.where(-float64(k) * step)
	}
	before := edge(g.first)
	g.mass[0] += s.beyond(before, true)
	for k := g.first; k < last; k++ {
		after := edge(k + 1)
		a, b := math.Min(before, after), math.Max(before, after)
		plain, shifted, e0, e1 := s.strip(a, b)
		mixture := (1-s.rate)*plain + s.rate*shifted
		if s.remove {
			g.bin(k, mixture, plain, e0+e1)
		} else {
			g.bin(k, plain, mixture, e0+e1)
		}
		before = after
	}
	g.infinite = s.beyond(before, false)
	return g
}

// strip is the mass of (a, b) under both normals, and their relative errors. Where it
// is narrow, Gauss and Legendre's rule with three nodes and one width for both leaves
// no more than the errors of exp; differences of erfc would cancel.
func (s poissonLoss) strip(a, b float64) (plain, shifted, e0, e1 float64) {
	width, middle := (b-a)/s.noise, (a+b)/2/s.noise
	if far := math.Abs(middle) + 1/s.noise; !(width*(1+far) < 5e-3 && far < 30) {
		plain, e0 = normalInterval(a/s.noise, b/s.noise)
		shifted, e1 = normalInterval((a-1)/s.noise, (b-1)/s.noise)
		return plain, shifted, e0, e1
	}
	rule := func(m float64) (mass, relativeError float64) {
		const node = 0.7745966692414834 / 2 // sqrt(3/5), of a strip of width 1
		mass = width * (5*normalDensity(m-node*width) + 8*normalDensity(m) + 5*normalDensity(m+node*width)) / 18
		return mass, 1e-15 * (1 + m*m)
	}
	plain, e0 = rule(middle)
	shifted, e1 = rule(middle - 1/s.noise)
	return plain, shifted, e0, e1
}

// beyond is P's mass past an edge, on the side of low or of high losses: towards
// low x the losses are low with remove and high without.
func (s poissonLoss) beyond(edge float64, lowLosses bool) float64 {
	a, b := edge, math.Inf(1)
	if lowLosses == s.remove {
		a, b = math.Inf(-1), edge
	}
	plain, _ := normalInterval(a/s.noise, b/s.noise)
	if !s.remove {
		return plain
	}
	shifted, _ := normalInterval((a-1)/s.noise, (b-1)/s.noise)
	return (1-s.rate)*plain + s.rate*shifted
}

func (s poissonLoss) sketch(tail float64) []lossAtom {
	plain := sketchNormal(-lowReach, tailReach(tail), func(z, mass float64) lossAtom {
		if s.remove {
			return lossAtom{s.at(z * s.noise), mass * (1 - s.rate)}
		}
		return lossAtom{-s.at(-z * s.noise), mass}
	})
	if !s.remove {
		return plain
	}
	return append(plain, sketchNormal(-lowReach, tailReach(tail), func(z, mass float64) lossAtom {
		return lossAtom{s.at(1 + z*s.noise), mass * s.rate}
	})...)
}

// laplaceLoss is the loss of scalar Laplace noise: linear between the neighbours'
// values, constant outside.
type laplaceLoss struct{ epsilon float64 }

func (s laplaceLoss) span(float64) float64 { return 2 * s.epsilon }

func (s laplaceLoss) spread(step, _ float64) gridLoss {
	g := newGridLoss(-s.epsilon, s.epsilon, step)
	e := s.epsilon
	// x runs from 0 to 1 between the two values, in units of their distance.
	for k := g.first; k < g.first+len(g.mass)-1; k++ {
		a := math.Max(0, (1-float64(k+1)*step/e)/2)
		b := math.Min(1, (1-float64(k)*step/e)/2)
		if a >= b {
			continue
		}
		p := -math.Exp(-e*a) * math.Expm1(-e*(b-a)) / 2
		q := -math.Exp(-e*(1-b)) * math.Expm1(-e*(b-a)) / 2
		g.bin(k, p, q, 1e-15*(1+e))
	}
	g.atom(e, 0.5)
	g.atom(-e, 0.5*math.Exp(-e))
	return g
}

func (s laplaceLoss) sketch(float64) []lossAtom {
	const cells = 400
	e := s.epsilon
	atoms := []lossAtom{{e, 0.5}, {-e, 0.5 * math.Exp(-e)}}
	for i := range cells {
		x := (float64(i) + 0.5) / cells
		atoms = append(atoms, lossAtom{e * (1 - 2*x), e / 2 * math.Exp(-e*x) / cells})
	}
	return atoms
}

// pureLoss is randomised response, which is at least as bad as any mechanism with
// this pure epsilon (Kairouz, Oh and Viswanath 2015).
type pureLoss struct{ epsilon float64 }

func (s pureLoss) span(float64) float64 { return 2 * s.epsilon }

func (s pureLoss) sketch(float64) []lossAtom {
	high := 1 / (1 + math.Exp(-s.epsilon))
	return []lossAtom{{s.epsilon, high}, {-s.epsilon, high * math.Exp(-s.epsilon)}}
}

func (s pureLoss) spread(step, _ float64) gridLoss {
	g := newGridLoss(-s.epsilon, s.epsilon, step)
	for _, a := range s.sketch(0) {
		g.atom(a.loss, a.mass)
	}
	return g
}

// discreteGaussianLoss is the loss of the scalar discrete Gaussian: at the integer
// x it is (shift^2 - 2*x*shift)/(2 sigma^2).
type discreteGaussianLoss struct{ discreteGaussian }

// maxLatticeSigma bounds the number of atoms.
const maxLatticeSigma = 1 << 17

func (s discreteGaussianLoss) sketch(tail float64) []lossAtom {
	reach := math.Ceil((tailReach(tail) + 1) * s.sigma)
	shift := float64(s.shift)
	var atoms []lossAtom
	total := 0.0
	for x := -reach; x <= reach; x++ {
		weight := math.Exp(-x / s.sigma * (x / s.sigma) / 2)
		total += weight
		atoms = append(atoms, lossAtom{shift / s.sigma * (shift - 2*x) / s.sigma / 2, weight})
	}
	for i := range atoms {
		atoms[i].mass /= total
	}
	return atoms
}

func (s discreteGaussianLoss) span(tail float64) float64 {
	atoms := s.sketch(tail)
	return atoms[0].loss - atoms[len(atoms)-1].loss
}

func (s discreteGaussianLoss) spread(step, tail float64) gridLoss {
	atoms := s.sketch(tail)
	g := newGridLoss(atoms[len(atoms)-1].loss, atoms[0].loss, step)
	for _, a := range atoms {
		g.atom(a.loss, a.mass)
	}
	// The two tails beyond reach, by the continuous Gaussian's: more than enough.
	g.infinite = tail
	return g
}
