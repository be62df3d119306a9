package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/operand"
)

// normals emits the Box-Muller transform (Box and Muller 1958): two vectors of
// random words become two of normal values. The first vector gives the radius,
// the second the angle: its high bits an angle within pi/4 of the x axis, bit 0
// whether sine and cosine are exchanged, bit 1 the sign of both.
func (g *generator) normals(p precision) {
	g.function("normals"+p.suffix, fmt.Sprintf("func(blocks uintptr, sigma %[1]s, dst *%[1]s, words *byte)", p.goType),
		fmt.Sprintf("writes blocks of %d normal values.", 2*p.lanes))
	blocks := g.parameter("blocks")
	sigma := g.broadcastParameter(p, "sigma")
	dst, words := g.parameter("dst"), g.parameter("words")
	g.Label("loop")
	first, second := g.YMM(), g.YMM()
	g.move(p, operand.Mem{Base: words}, first)
	g.move(p, operand.Mem{Base: words, Disp: 32}, second)

	radius, angle := first, g.YMM()
	g.VPSRLD(operand.U8(1), first, radius)
	g.VCVTDQ2PS(radius, radius)
	g.add(p, g.constant(p, 0.5), radius, radius)
	g.mul(p, g.constant(p, 0x1p-31), radius, radius)
	g.VPSRAD(operand.U8(8), second, angle)
	g.VCVTDQ2PS(angle, angle)
	g.add(p, g.constant(p, 0.5), angle, angle)
	g.mul(p, g.constant(p, math.Pi/4*0x1p-23), angle, angle)
	g.logPositive(p, radius)
	g.mul(p, g.constant(p, -2), radius, radius)
	g.sqrt(p, radius, radius)
	g.mul(p, sigma, radius, radius)

	z := g.YMM()
	g.mul(p, angle, angle, z)
	const terms = 5
	var sines, cosines []float64
	for k := terms - 1; k >= 0; k-- {
		sign := 1 - 2*float64(k%2)
		sines = append(sines, sign/math.Gamma(float64(2*k+2)))
		cosines = append(cosines, sign/math.Gamma(float64(2*k+1)))
	}
	sine := g.horner(p, z, sines...)
	g.mul(p, angle, sine, sine)
	cosine := g.horner(p, z, cosines...)

	exchange, flip := g.YMM(), second
	top := 8*p.size - 1
	g.shiftLeft(p, top, second, exchange)
	g.shiftLeft(p, top-1, second, flip)
	g.and(p, g.signBit(p), flip, flip)
	g.xor(p, flip, radius, radius)
	x, y := g.YMM(), g.YMM()
	g.blend(p, exchange, sine, cosine, x)
	g.blend(p, exchange, cosine, sine, y)
	g.mul(p, radius, x, x)
	g.mul(p, radius, y, y)
	g.move(p, x, operand.Mem{Base: dst})
	g.move(p, y, operand.Mem{Base: dst, Disp: 32})
	g.ADDQ(operand.U8(64), dst)
	g.ADDQ(operand.U8(64), words)
	g.DECQ(blocks)
	g.JNZ(operand.LabelRef("loop"))
	g.finish()
}
