package kernel

import (
	"math"
	"math/big"
)

// The functions' definitions in 240-bit arithmetic.

const referenceBits = 240

func bigFloat(x float64) *big.Float { return new(big.Float).SetPrec(referenceBits).SetFloat64(x) }

var bigLn2 = func() *big.Float { // 80 digits of ln 2
	v, _, err := big.ParseFloat("0.69314718055994530941723212145817656807550013436025525412068000949339362196969472", 10, referenceBits, big.ToNearestEven)
	if err != nil {
		panic(err)
	}
	return v
}()

// bigExp sums the Taylor series at (x - n*ln2)/256, squares eight times and
// shifts by n. Arguments stay far below the range of big exponents.
func bigExp(x *big.Float) *big.Float {
	if x.Cmp(bigFloat(-5000)) < 0 {
		return bigFloat(0)
	}
	v, _ := x.Float64()
	n := math.Round(v / math.Ln2)
	r := bigFloat(n)
	r.Mul(r, bigLn2)
	r.Sub(x, r)
	r.SetMantExp(r, -8)
	sum, term := bigFloat(1), bigFloat(1)
	for k := 1; k < 26; k++ {
		term.Mul(term, r)
		term.Quo(term, bigFloat(float64(k)))
		sum.Add(sum, term)
	}
	for range 8 {
		sum.Mul(sum, sum)
	}
	return sum.SetMantExp(sum, int(n))
}

// bigSigmoid is 1/(1+exp(-v)).
func bigSigmoid(v *big.Float) *big.Float {
	if v.Cmp(bigFloat(5000)) > 0 {
		return bigFloat(1)
	}
	e := bigExp(new(big.Float).SetPrec(referenceBits).Neg(v))
	if v.Cmp(bigFloat(-5000)) < 0 {
		return bigFloat(0)
	}
	return new(big.Float).SetPrec(referenceBits).Quo(bigFloat(1), e.Add(e, bigFloat(1)))
}

// bigTanh is (1 - e)/(1 + e) with e = exp(-2|x|), and x where it is tiny.
func bigTanh(x *big.Float) *big.Float {
	v, _ := x.Float64()
	if math.Abs(v) < 1e-30 {
		return x
	}
	a := new(big.Float).SetPrec(referenceBits).Abs(x)
	e := bigExp(a.Mul(a, bigFloat(-2)))
	up, down := new(big.Float).Sub(bigFloat(1), e), new(big.Float).Add(bigFloat(1), e)
	up.Quo(up, down)
	if v < 0 {
		up.Neg(up)
	}
	return up
}

// ulps is the distance of got from the exact value in units of the spacing of
// F's numbers at the exact value. Beyond the largest number only +-Inf is right.
func ulps[F Float](got F, exact *big.Float) float64 {
	w, _ := exact.Float64()
	bits, lowest, highest := 52, -1074, 1023
	if isSingle[F]() {
		bits, lowest, highest = 23, -149, 127
	}
	e := lowest
	if exact.Sign() != 0 {
		e = max(lowest, exact.MantExp(nil)-1-bits)
	}
	if math.IsInf(float64(got), 0) || e+bits > highest {
		limit := math.Ldexp(1, highest) * (2 - math.Ldexp(1, -bits-2))
		switch {
		case math.IsInf(float64(got), 0) && math.Abs(w) >= limit && (w > 0) == (got > 0):
			return 0
		default:
			return math.Inf(1)
		}
	}
	d := bigFloat(float64(got))
	d.Sub(d, exact)
	d.SetMantExp(d, -e)
	f, _ := d.Float64()
	return math.Abs(f)
}
