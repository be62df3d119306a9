package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
)

// limits of a precision's functions.
type limits struct {
	expLow, expHigh float64 // beyond them exp is 0 and +Inf
	expTerms        int     // of the Taylor series on |r| <= ln2/2, the constant included
	logTerms        int     // of the series of atanh on s*s <= 0.0295
	tanhHigh        float64 // beyond it tanh is 1
	mantissa        int     // stored bits
	bias            float64 // of the exponent
	smallest        float64 // positive normal number
}

func (p precision) limits() limits {
	if p.single {
		return limits{-105, 89, 8, 5, 10, 23, 127, 0x1p-126}
	}
	return limits{-746, 710, 14, 11, 20, 52, 1023, 0x1p-1022}
}

// ln2 split in two, so that x - n*ln2 keeps its low bits.
func (p precision) ln2() (high, low float64) {
	high = math.Ln2
	if p.single {
		high = float64(float32(math.Ln2))
		return high, math.Ln2 - high
	}
	return high, 2.3190468138462996e-17 // ln2 - float64(ln2), from Cody and Waite's split
}

// horner evaluates a polynomial, highest coefficient first.
func (g *generator) horner(p precision, x vec, coefficients ...float64) vec {
	acc := g.load(p, g.constant(p, coefficients[0]))
	for _, c := range coefficients[1:] {
		g.fma213(p, g.constant(p, c), x, acc)
	}
	return acc
}

// clamp keeps x within bounds and lets NaN through.
func (g *generator) clampBelow(p precision, low float64, x vec) {
	g.max(p, x, g.load(p, g.constant(p, low)), x)
}

func (g *generator) clampAbove(p precision, high float64, x vec) {
	g.min(p, x, g.load(p, g.constant(p, high)), x)
}

// split writes x = n*ln2 + r with |r| <= ln2/2; x is used up.
func (g *generator) split(p precision, x vec) (n, r vec) {
	n = g.YMM()
	g.mul(p, g.constant(p, math.Log2E), x, n)
	g.round(p, roundNear, n, n)
	high, low := p.ln2()
	g.fnma231(p, g.constant(p, high), n, x)
	g.fnma231(p, g.constant(p, low), n, x)
	return n, x
}

// powerOfTwo turns the integer n of a float vector into 2^n: adding 1.5*2^m
// leaves n plus the bias in the lowest bits, from where it is shifted up.
func (g *generator) powerOfTwo(p precision, n vec) vec {
	lim := p.limits()
	v := g.YMM()
	g.add(p, g.constant(p, math.Ldexp(1.5, lim.mantissa)+lim.bias), n, v)
	g.shiftLeft(p, lim.mantissa, v, v)
	return v
}

// taylorExp are 1/k! from the highest term down to 1/last!.
func taylorExp(terms, last int) []float64 {
	var c []float64
	for k := terms - 1; k >= last; k-- {
		c = append(c, 1/math.Gamma(float64(k)+1))
	}
	return c
}

// exp replaces x by exp(x). 2^n is applied in two halves, so that results
// overflow and underflow gradually, as they should.
func (g *generator) exp(p precision, x vec) {
	lim := p.limits()
	g.clampBelow(p, lim.expLow, x)
	g.clampAbove(p, lim.expHigh, x)
	n, r := g.split(p, x)
	value := g.horner(p, r, taylorExp(lim.expTerms, 0)...)
	half := g.YMM()
	g.mul(p, g.constant(p, 0.5), n, half)
	g.round(p, roundFloor, half, half)
	g.sub(p, half, n, n)
	g.mul(p, g.powerOfTwo(p, half), value, value)
	g.mul(p, g.powerOfTwo(p, n), value, x)
}

// logPositive replaces a positive normal x by log(x):
// with x = 2^e*m, m in [sqrt(1/2), sqrt(2)], f = m-1, s = f/(2+f),
// log(m) = f - (f*f/2 - s*(f*f/2 + R)), R = 2*s^2/3 + 2*s^4/5 + ...
// (the form of FreeBSD's e_log.c).
func (g *generator) logPositive(p precision, x vec) {
	lim := p.limits()
	two := math.Ldexp(1, lim.mantissa)
	e := g.YMM()
	g.shiftRight(p, lim.mantissa, x, e)
	g.or(p, g.constant(p, two), e, e)
	g.sub(p, g.constant(p, two+lim.bias), e, e)
	m := x
	g.and(p, g.bits(p, uint64(1)<<lim.mantissa-1), x, m)
	g.or(p, g.constant(p, 1), m, m)
	above, half := g.YMM(), g.YMM()
	g.compare(p, greater, g.constant(p, math.Sqrt2), m, above)
	g.mul(p, g.constant(p, 0.5), m, half)
	g.and(p, above, half, half)
	g.sub(p, half, m, m)
	g.and(p, g.constant(p, 1), above, above)
	g.add(p, above, e, e)

	f := m
	g.sub(p, g.constant(p, 1), m, f)
	s, z, square := g.YMM(), g.YMM(), g.YMM()
	g.add(p, g.constant(p, 2), f, s)
	g.div(p, s, f, s)
	g.mul(p, s, s, z)
	g.mul(p, g.constant(p, 0.5), f, square)
	g.mul(p, f, square, square)
	var series []float64
	for k := lim.logTerms; k >= 1; k-- {
		series = append(series, 2/float64(2*k+1))
	}
	r := g.horner(p, z, series...)
	g.fma213(p, square, z, r) // z*r + f*f/2
	g.mul(p, s, r, r)
	high, low := p.ln2()
	g.fma231(p, g.constant(p, low), e, r)
	g.sub(p, r, square, square)
	g.sub(p, square, f, f)
	g.fma231(p, g.constant(p, high), e, f)
}

// tanh replaces x by tanh(x) = E/(E+2) with E = exp(2|x|)-1, which keeps its
// precision near 0: E = 2^n*expm1(r) + (2^n-1).
func (g *generator) tanh(p precision, x vec) {
	lim := p.limits()
	sign := g.YMM()
	g.and(p, g.signBit(p), x, sign)
	g.xor(p, sign, x, x)
	g.clampAbove(p, lim.tanhHigh, x)
	g.add(p, x, x, x)
	n, r := g.split(p, x)
	series := g.horner(p, r, taylorExp(lim.expTerms, 1)...)
	g.mul(p, r, series, series) // expm1(r)
	scale, e := g.powerOfTwo(p, n), g.YMM()
	g.sub(p, g.constant(p, 1), scale, e)
	g.fma231(p, scale, series, e)
	g.add(p, g.constant(p, 2), e, x)
	g.div(p, x, e, x)
	g.or(p, sign, x, x)
}

func (g *generator) signBit(p precision) operand.Mem {
	return g.bits(p, uint64(1)<<(8*p.size-1))
}

// sigmoid is (v < 0 ? t : 1)/(1+t) with t = exp(-|v|), which keeps its precision
// where it is tiny. v is kept.
func (g *generator) sigmoid(p precision, v vec) vec {
	t, whole, s := g.YMM(), g.YMM(), g.YMM()
	g.or(p, g.signBit(p), v, t)
	g.exp(p, t)
	g.add(p, g.constant(p, 1), t, whole)
	g.move(p, g.constant(p, 1), s)
	g.blend(p, v, t, s, s)
	g.div(p, whole, s, s)
	return s
}

func (g *generator) functions(p precision) {
	unary := func(name, doc string, apply func(p precision, x vec)) {
		g.vectorOp(p, vectorOp{name, doc, nil, []string{"dst", "x"}, 2,
			func(l lane, _ []vec, ptr []gp) {
				x := l.load(ptr[1])
				apply(p, x)
				l.store(x, ptr[0])
			}})
	}
	unary("exp", "writes exp(x).", g.exp)
	unary("tanh", "writes tanh(x).", g.tanh)
	unary("sigmoid", "writes 1/(1+exp(-x)).", func(p precision, x vec) {
		g.move(p, g.sigmoid(p, x), x)
	})
}
