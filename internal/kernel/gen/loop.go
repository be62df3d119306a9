package main

import (
	"github.com/mmcloughlin/avo/operand"
)

// lane is one vector's place in an element-wise loop: whole, at a displacement
// from the running pointers, or the masked rest.
type lane struct {
	g      *generator
	p      precision
	disp   int
	index  int
	mask   vec
	masked bool
}

func (l lane) at(pointer gp) operand.Mem { return operand.Mem{Base: pointer, Disp: l.disp} }

func (l lane) load(pointer gp) vec {
	v := l.g.YMM()
	if l.masked {
		l.g.maskMove(l.p, l.at(pointer), l.mask, v)
	} else {
		l.g.move(l.p, l.at(pointer), v)
	}
	return v
}

func (l lane) store(v vec, pointer gp) {
	if l.masked {
		l.g.maskMove(l.p, v, l.mask, l.at(pointer))
	} else {
		l.g.move(l.p, v, l.at(pointer))
	}
}

// forEach emits a loop over n values: unroll whole vectors at a time, then one
// at a time under a mask, so that a value's result never depends on its place.
func (g *generator) forEach(p precision, unroll int, n gp, pointers []gp, body func(l lane)) {
	main, rest, restLoop, done := g.label("main"), g.label("rest"), g.label("restLoop"), g.label("done")
	block := unroll * p.lanes
	g.SUBQ(operand.U32(block), n)
	g.JL(operand.LabelRef(rest))
	g.Label(main)
	for i := range unroll {
		body(lane{g: g, p: p, disp: 32 * i, index: i})
	}
	for _, pointer := range pointers {
		g.ADDQ(operand.U32(32*unroll), pointer)
	}
	g.SUBQ(operand.U32(block), n)
	g.JGE(operand.LabelRef(main))

	g.Label(rest)
	g.ADDQ(operand.U32(block), n)
	g.JZ(operand.LabelRef(done))
	g.Label(restLoop)
	count, whole, mask := g.GP64(), g.GP64(), g.YMM()
	g.MOVQ(n, count)
	g.MOVQ(operand.U32(p.lanes), whole)
	g.CMPQ(count, whole)
	g.CMOVQGT(whole, count)
	g.mask(p, count, mask)
	body(lane{g: g, p: p, mask: mask, masked: true})
	for _, pointer := range pointers {
		g.ADDQ(operand.U8(32), pointer)
	}
	g.SUBQ(operand.U32(p.lanes), n)
	g.JG(operand.LabelRef(restLoop))
	g.Label(done)
}

func (g *generator) finish() {
	g.VZEROUPPER()
	g.RET()
}
