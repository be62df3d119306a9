package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
)

// pack emits copies of pieces of so many bytes from columns of a matrix. The next call
// reads what follows every piece: it is asked for early.
func (g *generator) pack(length int) {
	g.function(fmt.Sprint("pack", length), "func(n uintptr, dst, src *byte, stride uintptr, columns *int)",
		fmt.Sprintf("copies %d bytes at every column.", length))
	n, dst, src := g.parameter("n"), g.parameter("dst"), g.parameter("src")
	stride, columns := g.parameter("stride"), g.parameter("columns")
	at := g.GP64()
	g.Label("loop")
	g.MOVQ(operand.Mem{Base: columns}, at)
	g.IMULQ(stride, at)
	g.ADDQ(src, at)
	g.PREFETCHT0(operand.Mem{Base: at, Disp: length + length*2/3})
	for from := 0; from < length; {
		piece, to := operand.Mem{Base: at, Disp: from}, operand.Mem{Base: dst, Disp: from}
		switch left := length - from; {
		case left >= 32:
			v := g.YMM()
			g.VMOVUPS(piece, v)
			g.VMOVUPS(v, to)
			from += 32
		case left >= 16:
			v := g.XMM()
			g.VMOVUPS(piece, v)
			g.VMOVUPS(v, to)
			from += 16
		default:
			v := g.GP64()
			g.MOVQ(piece, v)
			g.MOVQ(v, to)
			from += 8
		}
	}
	g.ADDQ(operand.U8(length), dst)
	g.ADDQ(operand.U8(8), columns)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("loop"))
	g.finish()
}
