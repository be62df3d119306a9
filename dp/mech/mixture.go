package mech

import (
	"fmt"
	"math"
	"math/big"
)

// maxFineEpsilon is the largest epsilon per lattice step: the bounds of
// docs/proofs/laplace-mixture.md are written for it.
const maxFineEpsilon = 1.0 / 64

// LatticeLaplace fills dst with exact noise of the n-dimensional Laplace
// mechanism in lattice steps: one integer s with P(s) ~ s^n exp(-(epsilon*g*s)^2/2),
// which is sqrt(V)/g on the lattice, then discrete Gaussians of that sigma. What
// this costs two points at distance d is LatticeLaplaceLoss. An error leaves dst
// unspecified, and nothing of it may be used.
func (e *Entropy) LatticeLaplace(dst []int64, epsilon float64, l Lattice) error {
	plan, err := planMixture(len(dst), epsilon, l)
	if err != nil {
		return err
	}
	if len(dst) == 0 {
		return nil
	}
	sigma, err := e.mixingSigma(&plan)
	if err != nil {
		return fmt.Errorf("lattice laplace: %w", err)
	}
	return e.DiscreteGaussian(dst, sigma)
}

// LatticeLaplaceLoss bounds the privacy loss of LatticeLaplace between two
// vectors of n coordinates, distance apart before truncation: epsilon*distance,
// and what the lattice adds (docs/proofs/laplace-mixture.md, theorem 2).
func LatticeLaplaceLoss(n int, epsilon float64, l Lattice, distance float64) (float64, error) {
	if _, err := planMixture(n, epsilon, l); err != nil {
		return 0, err
	}
	if !(distance >= 0) {
		return 0, fmt.Errorf("lattice laplace: distance %v must not be negative", distance)
	}
	fine := epsilon * l.Step
	steps := distance/l.Step + math.Sqrt(float64(n))
	return fine * (steps*(1+4*fine*fine) + 2) * (1 + 0x1p-50), nil
}

// mixturePlan holds the proposal for s: mode plus a discrete Gaussian.
type mixturePlan struct {
	n        int
	fine     float64 // epsilon per lattice step
	mode     uint64  // about sqrt(n)/fine, where s^n exp(-(fine*s)^2/2) peaks
	proposal gaussianPlan
}

func planMixture(n int, epsilon float64, l Lattice) (mixturePlan, error) {
	if err := l.check(); err != nil {
		return mixturePlan{}, err
	}
	fine := epsilon * l.Step
	if !(epsilon > 0) || math.IsInf(epsilon, 0) || !(fine >= 0x1p-54) || fine > maxFineEpsilon {
		return mixturePlan{}, fmt.Errorf("lattice laplace: epsilon %v times the step %v must be between 2^-54 and 1/64; choose another lattice", epsilon, l.Step)
	}
	mode := math.Round(math.Sqrt(float64(n)) / fine)
	spread := math.Ceil(math.Nextafter(1/fine, math.Inf(1))) // rounded up: the proposal must be the wider one
	if mode+256*spread > MaxSigma {
		return mixturePlan{}, fmt.Errorf("lattice laplace: the noise is about 2^%d steps of %v wide, beyond 2^55; take a coarser lattice", int(math.Log2(mode+256*spread)), l.Step)
	}
	proposal, err := planGaussian(uint64(spread))
	return mixturePlan{n: n, fine: fine, mode: uint64(mode), proposal: proposal}, err
}

// mixingSigma draws s. A proposal mode+k is accepted with probability
// (256/257)*exp(L), L = n*ln(1+k/mode) - fine^2*(mode*k + k^2/2) + k^2/(2*spread^2).
func (e *Entropy) mixingSigma(p *mixturePlan) (uint64, error) {
	for range maxTries {
		k, err := e.gaussian(&p.proposal)
		if err != nil {
			return 0, err
		}
		if k <= -int64(p.mode) {
			continue
		}
		u, err := e.word()
		if err != nil {
			return 0, err
		}
		ok, err := e.acceptSigma(p, k, u)
		if err != nil {
			return 0, err
		}
		if ok {
			return uint64(int64(p.mode) + k), nil
		}
	}
	return 0, errBrokenSource
}

// acceptSigma settles most draws with floats whose error is bounded with a wide
// margin, and the rest exactly.
func (e *Entropy) acceptSigma(p *mixturePlan, k int64, u uint64) (bool, error) {
	n, mode, x, spread := float64(p.n), float64(p.mode), float64(k), float64(p.proposal.sigma)
	grow := n * math.Log1p(x/mode)
	if x < -mode/2 {
		grow = n * math.Log(float64(int64(p.mode)+k)/mode) // Log1p would magnify the quotient's error
	}
	shrink := p.fine * p.fine * (mode*x + x*x/2)
	widen := x * x / (2 * spread * spread)
	// Each term is good to a few ulps; 2^-46 of their sizes is sixty times that.
	margin := (1 + math.Abs(grow) + p.fine*p.fine*(mode*math.Abs(x)+x*x) + widen) * 0x1p-46
	log := grow - shrink + widen
	uniform := float64(u>>11) * (257.0 / 256 * 0x1p-53)
	if margin < 0x1p-10 {
		if (uniform+0x1p-52)*(1+0x1p-50) <= math.Exp(log-margin) {
			return true, nil
		}
		if uniform*(1-0x1p-50) > math.Exp(log+margin) {
			return false, nil
		}
	}
	return e.below(u, 64, func(prec uint) (lo, hi *big.Int) { return p.acceptance(k, prec) })
}

// acceptance bounds 2^prec*(256/257)*exp(L) as ((1+k/mode)*exp(-x))^n, where
// n*x = fine^2*(mode*k + k^2/2) - k^2/(2*spread^2) is a rational number.
func (p *mixturePlan) acceptance(k int64, prec uint) (lo, hi *big.Int) {
	mode := new(big.Int).SetUint64(p.mode)
	step := big.NewInt(k)
	square := new(big.Rat).SetInt(new(big.Int).Mul(step, step))
	fine := new(big.Rat).SetFloat64(p.fine)
	spread := new(big.Int).SetUint64(p.proposal.sigma)

	x := new(big.Rat).SetInt(new(big.Int).Mul(mode, step))
	x.Add(x, new(big.Rat).Mul(square, big.NewRat(1, 2)))
	x.Mul(x, fine.Mul(fine, fine))
	x.Sub(x, square.Quo(square, new(big.Rat).SetInt(spread.Lsh(spread.Mul(spread, spread), 1))))
	x.Quo(x, new(big.Rat).SetInt64(int64(p.n)))

	work := prec + 128 // the n-th power costs at most 64 bits
	lo, hi = expInterval(new(big.Int).Abs(x.Num()), x.Denom(), work)
	if x.Sign() < 0 {
		unit := new(big.Int).Lsh(big.NewInt(1), 2*work)
		lo, hi = new(big.Int).Div(unit, hi), ceilDiv(unit, lo)
	}
	sum := new(big.Int).Add(mode, step)
	lo = new(big.Int).Div(new(big.Int).Mul(lo, sum), mode)
	hi = ceilDiv(new(big.Int).Mul(hi, sum), mode)
	lo, hi = powerInterval(lo, hi, p.n, work)
	lo.Div(lo.Lsh(lo, 8), big.NewInt(257))
	hi = ceilDiv(hi.Lsh(hi, 8), big.NewInt(257))
	return lo.Rsh(lo, work-prec), ceilShift(hi, work-prec)
}

// powerInterval raises a fixed-point interval of `work` fraction bits to n >= 1.
func powerInterval(lo, hi *big.Int, n int, work uint) (powLo, powHi *big.Int) {
	powLo = new(big.Int).Lsh(big.NewInt(1), work)
	powHi = new(big.Int).Set(powLo)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			powLo.Rsh(powLo.Mul(powLo, lo), work)
			powHi = ceilShift(powHi.Mul(powHi, hi), work)
		}
		lo = new(big.Int).Rsh(new(big.Int).Mul(lo, lo), work)
		hi = ceilShift(new(big.Int).Mul(hi, hi), work)
	}
	return powLo, powHi
}
