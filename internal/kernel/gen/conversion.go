package main

import "github.com/mmcloughlin/avo/operand"

// conversionBlock is how many values a conversion takes at a time.
const conversionBlock = 16

// conversions emits what goes from one precision to the other: a block's values are
// independent of each other, so the rest of a vector is left to Go.
func (g *generator) conversions() {
	g.function("narrowF64", "func(blocks uintptr, dst *float32, x *float64)", "writes x in single precision.")
	blocks, dst, x := g.parameter("blocks"), g.parameter("dst"), g.parameter("x")
	g.Label("loop")
	for i := range conversionBlock / 4 {
		v := g.XMM()
		g.VCVTPD2PSY(operand.Mem{Base: x, Disp: 32 * i}, v)
		g.VMOVUPS(v, operand.Mem{Base: dst, Disp: 16 * i})
	}
	g.ADDQ(operand.U8(4*conversionBlock), dst)
	g.ADDQ(operand.U32(8*conversionBlock), x)
	g.DECQ(blocks)
	g.JNZ(operand.LabelRef("loop"))
	g.finish()

	g.function("addSingleF64", "func(blocks uintptr, x *float32, y *float64)", "adds x to y.")
	blocks, x = g.parameter("blocks"), g.parameter("x")
	y := g.parameter("y")
	g.Label("loop")
	for i := range conversionBlock / 4 {
		v := g.YMM()
		g.VCVTPS2PD(operand.Mem{Base: x, Disp: 16 * i}, v)
		g.VADDPD(operand.Mem{Base: y, Disp: 32 * i}, v, v)
		g.VMOVUPD(v, operand.Mem{Base: y, Disp: 32 * i})
	}
	g.ADDQ(operand.U8(4*conversionBlock), x)
	g.ADDQ(operand.U32(8*conversionBlock), y)
	g.DECQ(blocks)
	g.JNZ(operand.LabelRef("loop"))
	g.finish()
}
