package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
)

// tileRows is the height of the largest tile: twelve vectors at least are summed at a
// time, for a sum waits four cycles for its next addition, and there are two a cycle. With
// two vectors a row it fills the registers, 16 of AVX2 or 32 of AVX-512, but for what the
// factors need.
func (p precision) tileRows(vectors int) int {
	if p.wide() || vectors == 1 {
		return 12
	}
	return 6
}

// tileName is the micro-kernel's name without the precision.
func tileName(p precision, rows, vectors int, masked bool) string {
	name := fmt.Sprintf("tile%dx%d", rows, vectors)
	if p.wide() {
		name = fmt.Sprintf("wideTile%dx%d", rows, vectors)
	}
	if masked {
		name += "m"
	}
	return name
}

// tiles emits the micro-kernels of products and convolutions: every height by one
// vector or two, the last one whole or masked.
func (g *generator) tiles(p precision) {
	for rows := 1; rows <= p.tileRows(1); rows++ {
		for vectors := 2; vectors >= 1; vectors-- {
			if rows <= p.tileRows(vectors) {
				g.tile(p, rows, vectors, false)
				g.tile(p, rows, vectors, true)
			}
		}
	}
}

// tile emits C (+)= alpha*A*B for one tile of C held in registers. The inner
// dimension runs over segments of k steps; after each segment A moves on by
// segStep, which lets a convolution walk down the rows of an image. Strides are
// in bytes.
func (g *generator) tile(p precision, rows, vectors int, masked bool) {
	signature := fmt.Sprintf("func(segments, k uintptr, a *%[1]s, aRow, aCol, segStep uintptr, b *%[1]s, bRow uintptr, c *%[1]s, cRow uintptr, alpha %[1]s, add uintptr", p.goType)
	if masked {
		signature += ", tail uintptr"
	}
	g.function(tileName(p, rows, vectors, masked)+p.suffix, signature+")", fmt.Sprintf("is the micro-kernel of %d rows.", rows))
	segments, k := g.parameter("segments"), g.parameter("k")
	a, aRow, aCol := g.parameter("a"), g.parameter("aRow"), g.parameter("aCol")
	segStep := g.parameter("segStep")
	b, bRow := g.parameter("b"), g.parameter("bRow")

	aPointers := []gp{a}
	for i := 3; i < rows; i += 3 { // three rows are addressed from each pointer
		next := g.GP64()
		g.LEAQ(operand.Mem{Base: aPointers[len(aPointers)-1], Index: aRow, Scale: 2}, next)
		g.ADDQ(aRow, next)
		aPointers = append(aPointers, next)
	}
	aAt := func(i int) operand.Mem {
		m := operand.Mem{Base: aPointers[i/3]}
		if i%3 > 0 {
			m.Index, m.Scale = aRow, uint8(i%3)
		}
		return m
	}

	acc := make([][]vec, rows)
	for i := range acc {
		for range vectors {
			acc[i] = append(acc[i], g.zero(p))
		}
	}
	bs := make([]vec, vectors)
	for j := range bs {
		bs[j] = g.vector(p)
	}
	var mask op
	if masked {
		mask = g.laneMask(p, g.parameter("tail"))
	}
	isMasked := func(j int) bool { return masked && j == vectors-1 }
	value := g.vector(p)
	step := func() {
		for j := range bs {
			at := operand.Mem{Base: b, Disp: p.bytes() * j}
			if isMasked(j) {
				g.maskMove(p, at, mask, bs[j])
			} else {
				g.move(p, at, bs[j])
			}
		}
		for i := range acc {
			if p.wide() && vectors == 1 { // one instruction a row: decoding is the limit
				g.fma231Broadcast(p, aAt(i), bs[0], acc[i][0])
				continue
			}
			g.broadcast(p, aAt(i), value)
			for j := range bs {
				g.fma231(p, value, bs[j], acc[i][j])
			}
		}
		if p.wide() && vectors == 2 && rows > 6 { // what the next tile will broadcast, if A is stored by columns
			g.PREFETCHT0(operand.Mem{Base: aPointers[len(aPointers)-1], Disp: 64})
		}
		for _, pointer := range aPointers {
			g.ADDQ(aCol, pointer)
		}
		g.ADDQ(bRow, b)
	}

	// C is needed last: fetch it meanwhile.
	c, cRow := g.parameter("c"), g.parameter("cRow")
	for i := range rows {
		for at := 0; at < vectors*p.bytes(); at += 64 {
			g.PREFETCHT0(operand.Mem{Base: c, Disp: at})
		}
		if i < rows-1 {
			g.ADDQ(cRow, c)
		}
	}

	unroll := 4
	if rows > 6 { // a step is long enough
		unroll = 2
	}
	left := g.GP64()
	g.Label("segment")
	g.MOVQ(k, left)
	g.SUBQ(operand.U8(unroll), left)
	g.JL(operand.LabelRef("rest"))
	g.Label("several")
	for range unroll {
		step()
	}
	g.SUBQ(operand.U8(unroll), left)
	g.JGE(operand.LabelRef("several"))
	g.Label("rest")
	g.ADDQ(operand.U8(unroll), left)
	g.JZ(operand.LabelRef("segmentEnd"))
	g.Label("one")
	step()
	g.DECQ(left)
	g.JNZ(operand.LabelRef("one"))
	g.Label("segmentEnd")
	for _, pointer := range aPointers {
		g.ADDQ(segStep, pointer)
	}
	g.DECQ(segments)
	g.JNZ(operand.LabelRef("segment"))

	alpha := g.broadcastParameter(p, "alpha")
	c, cRow = g.parameter("c"), g.parameter("cRow")
	add := g.parameter("add")
	write := func(body func(v vec, at operand.Mem, masked bool)) {
		for i := range acc {
			for j := range bs {
				body(acc[i][j], operand.Mem{Base: c, Disp: p.bytes() * j}, isMasked(j))
			}
			if i < rows-1 {
				g.ADDQ(cRow, c)
			}
		}
		g.finish()
	}
	g.TESTQ(add, add)
	g.JZ(operand.LabelRef("overwrite"))
	old := g.vector(p)
	write(func(v vec, at operand.Mem, masked bool) {
		if masked {
			g.maskMove(p, at, mask, old)
			g.fma213(p, old, alpha, v)
			g.maskMove(p, v, mask, at)
			return
		}
		g.fma213(p, at, alpha, v)
		g.move(p, v, at)
	})
	g.Label("overwrite")
	write(func(v vec, at operand.Mem, masked bool) {
		g.mul(p, alpha, v, v)
		if masked {
			g.maskMove(p, v, mask, at)
			return
		}
		g.move(p, v, at)
	})
}

// transpose emits the move of square blocks, one vector wide, from rows to
// columns: blocks follow each other along the source's rows.
func (g *generator) transpose(p precision) {
	g.function("transpose"+p.suffix, fmt.Sprintf("func(blocks uintptr, src *%[1]s, srcRow uintptr, dst *%[1]s, dstRow uintptr)", p.goType),
		fmt.Sprintf("turns blocks of %d rows and columns.", p.lanes))
	blocks := g.parameter("blocks")
	src, srcRow := g.parameter("src"), g.parameter("srcRow")
	dst, dstRow := g.parameter("dst"), g.parameter("dstRow")
	row := g.GP64()
	g.Label("block")
	g.MOVQ(src, row)
	in := make([]vec, p.lanes)
	for i := range in {
		in[i] = g.YMM()
		g.move(p, operand.Mem{Base: row}, in[i])
		if i < p.lanes-1 {
			g.ADDQ(srcRow, row)
		}
	}
	var out []vec
	if p.single {
		out = g.transpose8(in)
	} else {
		out = g.transpose4(in)
	}
	for _, v := range out {
		g.move(p, v, operand.Mem{Base: dst})
		g.ADDQ(dstRow, dst)
	}
	g.ADDQ(operand.U8(32), src)
	g.DECQ(blocks)
	g.JNZ(operand.LabelRef("block"))
	g.finish()
}

func (g *generator) transpose8(in []vec) []vec {
	pairs := make([]vec, 8) // rows 2i and 2i+1 interleaved, low then high
	for i := 0; i < 8; i += 2 {
		pairs[i], pairs[i+1] = g.YMM(), g.YMM()
		g.VUNPCKLPS(in[i+1], in[i], pairs[i])
		g.VUNPCKHPS(in[i+1], in[i], pairs[i+1])
	}
	quads := make([]vec, 8) // columns c and c+4 of four rows
	for half := range 2 {
		for c := range 4 {
			q := g.YMM()
			low, high := pairs[4*half+c/2], pairs[4*half+2+c/2]
			g.VSHUFPS(operand.U8([]uint64{0x44, 0xEE}[c%2]), high, low, q)
			quads[4*half+c] = q
		}
	}
	out := make([]vec, 8)
	for c := range 4 {
		out[c], out[c+4] = g.YMM(), g.YMM()
		g.VPERM2F128(operand.U8(0x20), quads[4+c], quads[c], out[c])
		g.VPERM2F128(operand.U8(0x31), quads[4+c], quads[c], out[c+4])
	}
	return out
}

func (g *generator) transpose4(in []vec) []vec {
	pairs := make([]vec, 4)
	for i := 0; i < 4; i += 2 {
		pairs[i], pairs[i+1] = g.YMM(), g.YMM()
		g.VUNPCKLPD(in[i+1], in[i], pairs[i])
		g.VUNPCKHPD(in[i+1], in[i], pairs[i+1])
	}
	out := make([]vec, 4)
	for c := range 2 {
		out[c], out[c+2] = g.YMM(), g.YMM()
		g.VPERM2F128(operand.U8(0x20), pairs[2+c], pairs[c], out[c])
		g.VPERM2F128(operand.U8(0x31), pairs[2+c], pairs[c], out[c+2])
	}
	return out
}
