package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
)

// roundTruncate rounds toward zero, and reports nothing.
const roundTruncate = 11

// truncated emits sums of values that are each rounded toward zero first, in double
// precision, of values of precision p.
func (g *generator) truncated(p precision) {
	g.function("addTruncated"+p.suffix, fmt.Sprintf("func(blocks uintptr, factor float64, x *%s, y *float64)", p.goType), "adds factor*x, rounded toward zero, to y.")
	blocks, factor := g.parameter("blocks"), g.broadcastParameter(double, "factor")
	x, y := g.parameter("x"), g.parameter("y")
	g.Label("loop")
	for i := range conversionBlock / double.lanes {
		v := g.YMM()
		g.widened(p, operand.Mem{Base: x, Disp: double.lanes * p.size * i}, v)
		g.mul(double, factor, v, v)
		g.round(double, roundTruncate, v, v)
		g.add(double, operand.Mem{Base: y, Disp: 32 * i}, v, v)
		g.move(double, v, operand.Mem{Base: y, Disp: 32 * i})
	}
	g.ADDQ(operand.U8(p.size*conversionBlock), x)
	g.ADDQ(operand.U32(8*conversionBlock), y)
	g.DECQ(blocks)
	g.JNZ(operand.LabelRef("loop"))
	g.finish()

	for _, vectors := range []int{8, 4, 1} {
		g.truncatedProducts(p, vectors)
	}
}

// widened loads four values in double precision.
func (g *generator) widened(p precision, from operand.Mem, to vec) {
	if p.single {
		g.VCVTPS2PD(from, to)
	} else {
		g.move(p, from, to)
	}
}

// truncatedProducts goes down rows: a value of x, and whole vectors of d, or one masked.
func (g *generator) truncatedProducts(p precision, vectors int) {
	tail := ""
	if vectors == 1 {
		tail = ", tail uintptr"
	}
	g.function(fmt.Sprint("truncatedProducts", vectors, p.suffix), fmt.Sprintf("func(rows uintptr, x *%s, xRow uintptr, d *float64, dRow uintptr, acc *float64%s)", p.goType, tail),
		"adds the sum over rows of x*d, each product rounded toward zero, to acc.")
	rows, x, xRow := g.parameter("rows"), g.parameter("x"), g.parameter("xRow")
	d, dRow, acc := g.parameter("d"), g.parameter("dRow"), g.parameter("acc")
	var lanes []lane
	for i := range vectors {
		l := lane{g: g, p: double, disp: 32 * i, index: i, masked: vectors == 1}
		if l.masked {
			l.mask = g.YMM()
			g.mask(double, g.parameter("tail"), l.mask)
		}
		lanes = append(lanes, l)
	}
	var sums []vec
	for _, l := range lanes {
		sums = append(sums, l.load(acc))
	}
	g.Label("loop")
	factor := g.YMM()
	if p.single {
		g.VBROADCASTSS(operand.Mem{Base: x}, factor.AsX())
		g.VCVTPS2PD(factor.AsX(), factor)
	} else {
		g.broadcast(p, operand.Mem{Base: x}, factor)
	}
	for _, l := range lanes {
		v := g.YMM()
		if l.masked {
			v = l.load(d)
			g.mul(double, factor, v, v)
		} else {
			g.mul(double, l.at(d), factor, v)
		}
		g.round(double, roundTruncate, v, v)
		g.add(double, v, sums[l.index], sums[l.index])
	}
	g.ADDQ(xRow, x)
	g.ADDQ(dRow, d)
	g.DECQ(rows)
	g.JNZ(operand.LabelRef("loop"))
	for _, l := range lanes {
		l.store(sums[l.index], acc)
	}
	g.finish()
}
