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

// exponentBits is the number of fraction bits of a fixed-point exponent, which
// therefore ends at 128.
const exponentBits = 57

// expSlack bounds |2^40*exp(-z) - expFixed(z)| for every true exponent within
// 2^-50 of z: the series leaves out less than 2^-45, z adds 2^-50, the roundings
// about 2^-59, and dropping to 40 bits one unit.
const expSlack = 2

// expFixed approximates 2^40 * exp(-z), z having exponentBits fraction bits. It
// is integer arithmetic only: the same on every machine.
func expFixed(z uint64) uint64 {
	whole := z >> exponentBits
	if whole >= uint64(len(expWhole)) {
		return 0
	}
	r := z << (64 - exponentBits + 6) >> 6 // below 1/64, with 64 fraction bits
	const one = 1 << 63
	// exp(-r) to the fifth order.
	p := one - r/10
	p = one - mulHigh(r, p)/4
	p = one - mulHigh(r, p)/3
	p = one - mulHigh(r, p)/2
	p = one - mulHigh(r, p)
	p = mulHigh(p, expPart[z>>(exponentBits-6)&63]) << 1
	return mulHigh(p, expWhole[whole]) >> 22
}

func mulHigh(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi
}

// expWhole[i] is floor(2^63 * exp(-i)); from exp(-44) on it is zero.
var expWhole = [44]uint64{
	0x8000000000000000, 0x2f16ac6c59de6f8d, 0x1152aaa3bf81cb9f, 0x065f6c3333ac2bb2,
	0x02582ab704279e8e, 0x00dcc9ff006a9bb0, 0x00513947c44f5357, 0x001de16b9c24a98e,
	0x000afe10820813d6, 0x00040b3c89499516, 0x00017cd79b5647c9, 0x00008c1aa11c7b3b,
	0x0000338a98768779, 0x000012f6053b981d, 0x000006f9b1bf6c05, 0x00000290eb9444fd,
	0x000000f1aaddd774, 0x00000058e78c5d69, 0x00000020b4c518d3, 0x0000000c082b7f96,
	0x000000046d21957c, 0x00000001a0db0d0d, 0x00000000995a45f8, 0x00000000386a4fc8,
	0x0000000014c1078f, 0x0000000007a28de9, 0x0000000002cf0a54, 0x0000000001088529,
	0x0000000000614fc0, 0x000000000023cc85, 0x00000000000d2b70, 0x000000000004d848,
	0x000000000001c846, 0x000000000000a7da, 0x0000000000003dc0, 0x00000000000016b7,
	0x000000000000085b, 0x0000000000000313, 0x0000000000000121, 0x000000000000006a,
	0x0000000000000027, 0x000000000000000e, 0x0000000000000005, 0x0000000000000001,
}

// expPart[i] is floor(2^63 * exp(-i/64)).
var expPart = [64]uint64{
	0x8000000000000000, 0x7e03faaffbbe9249, 0x7c0fd5aa22d75e45, 0x7a2371abfb3efec7,
	0x783eafef1c0a8f39, 0x7661722741068c61, 0x748b9a8065f00acd, 0x72bd0b9ce931f64a,
	0x70f5a893b608861e, 0x6f3554ee75ed8805, 0x6d7bf4a7c930989e, 0x6bc96c29869ed298,
	0x6a1da04b021def01, 0x6878764f5a1f403c, 0x66d9d3e3cbcf5eae, 0x65419f1e0de7c9f4,
	0x63afbe7ab2082ba1, 0x622418db8c7d50ec, 0x609e9586225c57a5, 0x5f1f1c221dd8eff7,
	0x5da594b7c8bdf84d, 0x5c31e7ae8cf01aa7, 0x5ac3fdcb7ae27389, 0x595bc02fd5e5a993,
	0x57f91857a63a3aa9, 0x569bf01850cf1fa2, 0x5544319f34964255, 0x53f1c7704d589b2c,
	0x52a49c64dbf42358, 0x515c9baa13ee1f7a, 0x5019b0bfce449bb9, 0x4edbc777416a4646,
	0x4da2cbf1be5827f9, 0x4c6eaa9f72a10bfe, 0x4b3f503e2f72b7aa, 0x4a14a9d835716281,
	0x48eea4c3055a2bff, 0x47cd2e9e3559992e, 0x46b035524b036f6e, 0x4597a70f99d98bb3,
	0x4483724d264f9eac, 0x437385c78d39fdec, 0x4267d07fef9600df, 0x416041bae29aa613,
	0x405cc8ff640081b0, 0x3f5d5615d2703996, 0x3e61d906ea0715f0, 0x3d6a421ac4e16e6a,
	0x3c7681d7df9afca5, 0x3b86890221b55bd3, 0x3a9a4899e9d53bca, 0x39b1b1db1dc70b58,
	0x38ccb63c3e3c1a08, 0x37eb476d7e316d16, 0x370d5757ddf1bdec, 0x3632d81c49a4523c,
	0x355bbc12bb5a9680, 0x3487f5c9608e9bc2, 0x33b77803c304d066, 0x32ea35b9f5038214,
	0x32202217c0d2ec1c, 0x3159307bdb78ca49, 0x309554771aa29bd0, 0x2fd481cbadb1f4dd,
}
