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

// bigLog refines math.Log by Halley's step, which triples the digits.
func bigLog(x *big.Float) *big.Float {
	m := new(big.Float)
	e := x.MantExp(m)
	f, _ := m.Float64()
	y := bigFloat(math.Log(f))
	for range 2 {
		ey := bigExp(y)
		up, down := new(big.Float).Sub(m, ey), new(big.Float).Add(m, ey)
		up.Quo(up, down)
		up.Mul(up, bigFloat(2))
		y.Add(y, up)
	}
	shift := bigFloat(float64(e))
	return y.Add(y, shift.Mul(shift, bigLn2))
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

// bigGeluArgument is 2*sqrt(2/pi)*(x + 0.044715*x^3).
func bigGeluArgument(x *big.Float) *big.Float {
	scale := new(big.Float).SetPrec(referenceBits).Quo(bigFloat(2), bigPi)
	scale.Sqrt(scale)
	cubic, _, err := big.ParseFloat("0.044715", 10, referenceBits, big.ToNearestEven)
	if err != nil {
		panic(err)
	}
	v := new(big.Float).SetPrec(referenceBits).Mul(x, x)
	v.Mul(v, cubic)
	v.Add(v, bigFloat(1))
	v.Mul(v, x)
	v.Mul(v, scale)
	return v.Mul(v, bigFloat(2))
}

var bigPi = func() *big.Float { // 80 digits of pi
	v, _, err := big.ParseFloat("3.1415926535897932384626433832795028841971693993751058209749445923078164062862090", 10, referenceBits, big.ToNearestEven)
	if err != nil {
		panic(err)
	}
	return v
}()

func bigGelu(x *big.Float) *big.Float {
	s := bigSigmoid(bigGeluArgument(x))
	return s.Mul(s, x)
}

// bigGeluGrad is s + x*s*(1-s)*d(2u)/dx.
func bigGeluGrad(x *big.Float) *big.Float {
	s := bigSigmoid(bigGeluArgument(x))
	scale := new(big.Float).SetPrec(referenceBits).Quo(bigFloat(2), bigPi)
	scale.Sqrt(scale)
	scale.Mul(scale, bigFloat(2))
	cubic, _, err := big.ParseFloat("0.134145", 10, referenceBits, big.ToNearestEven)
	if err != nil {
		panic(err)
	}
	slope := new(big.Float).SetPrec(referenceBits).Mul(x, x)
	slope.Mul(slope, cubic)
	slope.Add(slope, bigFloat(1))
	slope.Mul(slope, scale)
	rest := new(big.Float).SetPrec(referenceBits).Sub(bigFloat(1), s)
	rest.Mul(rest, s)
	rest.Mul(rest, slope)
	rest.Mul(rest, x)
	return rest.Add(rest, s)
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
