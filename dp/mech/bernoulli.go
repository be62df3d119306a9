package mech

import (
	"math"
	"math/big"
	"math/bits"
)

// scaleWord maps a uniform word to [0, n), or says that it must be drawn again.
func scaleWord(w, n uint64) (uint64, bool) {
	hi, lo := bits.Mul64(w, n)
	if lo < n && lo < -n%n {
		return 0, false
	}
	return hi, true
}

// probability bounds a number p in [0, 1]: lo <= p*2^prec <= hi, as tightly as
// asked for.
type probability func(prec uint) (lo, hi *big.Int)

// below says whether a uniform number lies below p. The number's first `known`
// bits are prefix; more are drawn only while it is undecided, so the answer is
// exact. It is the rare, slow end of the fast comparisons in this package.
func (e *Entropy) below(prefix uint64, known uint, p probability) (bool, error) {
	const guard = 64 // bits by which p must be known better than the number
	u, one := new(big.Int).SetUint64(prefix), big.NewInt(1)
	low, high := new(big.Int), new(big.Int)
	for prec := uint(192); ; prec += 192 {
		lo, hi := p(prec)
		for known+guard <= prec {
			low.Lsh(u, prec-known)
			high.Lsh(high.Add(u, one), prec-known)
			if high.Cmp(lo) <= 0 {
				return true, nil
			}
			if low.Cmp(hi) >= 0 {
				return false, nil
			}
			w, err := e.word()
			if err != nil {
				return false, err
			}
			u.Or(u.Lsh(u, 64), low.SetUint64(w))
			known += 64
		}
	}
}

// expInterval returns lo <= 2^prec * exp(-num/den) <= hi, num >= 0 and den > 0,
// by the alternating series after halving the exponent below 1/2, every rounding
// directed outwards.
func expInterval(num, den *big.Int, prec uint) (lo, hi *big.Int) {
	if num.Sign() == 0 {
		return new(big.Int).Lsh(big.NewInt(1), prec), new(big.Int).Lsh(big.NewInt(1), prec)
	}
	halvings := uint(max(0, num.BitLen()-den.BitLen()+2))
	work := prec + halvings + 32
	scaled := new(big.Int).Lsh(den, halvings)
	top := new(big.Int).Lsh(num, work)
	xlo := new(big.Int).Div(top, scaled)
	xhi := ceilDiv(top, scaled)

	lo = new(big.Int).Lsh(big.NewInt(1), work)
	hi = new(big.Int).Set(lo)
	tlo, thi := new(big.Int).Set(lo), new(big.Int).Set(lo)
	for i := int64(1); thi.BitLen() > 1; i++ {
		step := new(big.Int).Lsh(big.NewInt(i), work)
		tlo.Div(tlo.Mul(tlo, xlo), step)
		thi = ceilDiv(thi.Mul(thi, xhi), step)
		if i%2 == 1 {
			lo.Sub(lo, thi)
			hi.Sub(hi, tlo)
		} else {
			lo.Add(lo, tlo)
			hi.Add(hi, thi)
		}
	}
	// The terms alternate and shrink: what is left out is at most the last one.
	lo.Sub(lo, thi)
	hi.Add(hi, thi)
	for range halvings {
		lo.Rsh(lo.Mul(lo, lo), work)
		hi = ceilShift(hi.Mul(hi, hi), work)
	}
	return lo.Rsh(lo, work-prec), ceilShift(hi, work-prec)
}

func ceilDiv(a, b *big.Int) *big.Int {
	q, r := new(big.Int).DivMod(a, b, new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

func ceilShift(a *big.Int, n uint) *big.Int {
	return ceilDiv(a, new(big.Int).Lsh(big.NewInt(1), n))
}

// exponent is a rational number >= 0, and the same in fixed point, rounded down.
type exponent struct {
	fixed    uint64
	num, den uint64   // the number, unless
	ratio    *big.Rat // it is larger than these
}

func newExponent(x *big.Rat) exponent {
	fixed := new(big.Int).Lsh(x.Num(), exponentBits)
	fixed.Div(fixed, x.Denom())
	e := exponent{ratio: x, fixed: math.MaxUint64}
	if fixed.IsUint64() {
		e.fixed = fixed.Uint64()
	}
	return e
}

// quotient is the exponent num/den, below 128.
func quotient(num, den uint64) exponent {
	fixed, _ := bits.Div64(num>>(64-exponentBits), num<<exponentBits, den)
	return exponent{num: num, den: den, fixed: fixed}
}

func (x exponent) interval(prec uint) (lo, hi *big.Int) {
	if x.ratio != nil {
		return expInterval(x.ratio.Num(), x.ratio.Denom(), prec)
	}
	return expInterval(new(big.Int).SetUint64(x.num), new(big.Int).SetUint64(x.den), prec)
}

// bernoulliExp is true with probability exp(-x), exactly.
func (e *Entropy) bernoulliExp(x exponent) (bool, error) {
	w, err := e.word()
	if err != nil {
		return false, err
	}
	approx := expFixed(x.fixed)
	if w>>24+1 <= max(approx, expSlack)-expSlack {
		return true, nil
	}
	if w>>24 >= approx+expSlack {
		return false, nil
	}
	return e.below(w, 64, x.interval)
}
