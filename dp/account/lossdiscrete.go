package account

import "math"

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
