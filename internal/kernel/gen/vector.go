package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/operand"
)

// vectorOp describes an element-wise function: an optional scalar and pointers,
// of which the body stores through some.
type vectorOp struct {
	name, doc string
	scalars   []string
	pointers  []string
	unroll    int
	body      func(l lane, scalar []vec, pointer []gp)
}

func (g *generator) vectorOp(p precision, o vectorOp) {
	signature := "func(n uintptr"
	for _, s := range o.scalars {
		signature += ", " + s + " " + p.goType
	}
	signature += fmt.Sprintf(", %s *%s)", strings.Join(o.pointers, ", "), p.goType)
	g.function(o.name+p.suffix, signature, o.doc)
	n := g.parameter("n")
	var scalars []vec
	for _, s := range o.scalars {
		scalars = append(scalars, g.broadcastParameter(p, s))
	}
	var pointers []gp
	for _, s := range o.pointers {
		pointers = append(pointers, g.parameter(s))
	}
	g.forEach(p, o.unroll, n, pointers, func(l lane) { o.body(l, scalars, pointers) })
	g.finish()
}

func (g *generator) elementWise(p precision) {
	g.vectorOp(p, vectorOp{"axpy", "adds alpha*x to y.", []string{"alpha"}, []string{"x", "y"}, 4,
		func(l lane, s []vec, ptr []gp) {
			y := l.load(ptr[1])
			g.fma231(p, l.load(ptr[0]), s[0], y)
			l.store(y, ptr[1])
		}})
	g.vectorOp(p, vectorOp{"scale", "writes alpha*x.", []string{"alpha"}, []string{"dst", "x"}, 4,
		func(l lane, s []vec, ptr []gp) {
			x := l.load(ptr[1])
			g.mul(p, s[0], x, x)
			l.store(x, ptr[0])
		}})
	g.vectorOp(p, vectorOp{"sub", "writes x-y.", nil, []string{"dst", "x", "y"}, 4,
		func(l lane, _ []vec, ptr []gp) {
			x := l.load(ptr[1])
			g.sub(p, l.load(ptr[2]), x, x)
			l.store(x, ptr[0])
		}})
	g.vectorOp(p, vectorOp{"maximum", "writes the larger of x and y, or a NaN of either.", nil, []string{"dst", "x", "y"}, 2,
		func(l lane, _ []vec, ptr []gp) {
			x, y := l.load(ptr[1]), l.load(ptr[2])
			nan := g.YMM()
			g.compare(p, unordered, x, x, nan)
			g.max(p, y, x, y)
			g.blend(p, nan, x, y, y)
			l.store(y, ptr[0])
		}})
	// Where x is the window's maximum y, the gradient that is left goes to dx
	// and is used up: the first of equal values gets it.
	g.vectorOp(p, vectorOp{"maxPoolGrad", "moves left to dx where x equals y.", nil, []string{"left", "y", "x", "dx"}, 2,
		func(l lane, _ []vec, ptr []gp) {
			left, x, dx := l.load(ptr[0]), l.load(ptr[2]), l.load(ptr[3])
			hit, given := g.YMM(), g.YMM()
			g.compare(p, equal, l.load(ptr[1]), x, hit)
			g.and(p, hit, left, given)
			g.add(p, given, dx, dx)
			l.store(dx, ptr[3])
			g.andn(p, left, hit, left)
			l.store(left, ptr[0])
		}})
	g.vectorOp(p, vectorOp{"maximum4", "writes the largest of a, b, c and d, or a NaN of any.", nil, []string{"dst", "a", "b", "c", "d"}, 1,
		func(l lane, _ []vec, ptr []gp) {
			top := l.load(ptr[1])
			for _, next := range ptr[2:] {
				x, nan := l.load(next), g.YMM()
				g.compare(p, unordered, top, top, nan)
				g.max(p, x, top, x)
				g.blend(p, nan, top, x, top)
			}
			l.store(top, ptr[0])
		}})
	// The same for windows that share no value: gradients are written, not added
	// to, two neighbours at a time.
	g.vectorOp(p, vectorOp{"maxPoolGradPair", "moves left to da where a equals y, what then is left to db where b does, and writes zeros elsewhere.", nil, []string{"left", "y", "a", "b", "da", "db"}, 1,
		func(l lane, _ []vec, ptr []gp) {
			left, y := l.load(ptr[0]), l.load(ptr[1])
			for i := range 2 {
				hit, given := g.YMM(), g.YMM()
				g.compare(p, equal, y, l.load(ptr[2+i]), hit)
				g.and(p, hit, left, given)
				l.store(given, ptr[4+i])
				g.andn(p, left, hit, left)
			}
			l.store(left, ptr[0])
		}})
	g.vectorOp(p, vectorOp{"relu", "writes max(x, 0), NaN for NaN.", nil, []string{"dst", "x"}, 4,
		func(l lane, _ []vec, ptr []gp) {
			x := l.load(ptr[1])
			g.max(p, x, g.zero(p), x)
			l.store(x, ptr[0])
		}})
	g.vectorOp(p, vectorOp{"reluGrad", "writes dy where x > 0, else 0.", nil, []string{"dst", "x", "dy"}, 4,
		func(l lane, _ []vec, ptr []gp) {
			x := l.load(ptr[1])
			g.compare(p, greater, g.zero(p), x, x)
			g.and(p, l.load(ptr[2]), x, x)
			l.store(x, ptr[0])
		}})
	g.vectorOp(p, vectorOp{"leakyRelu", "writes x where x > 0, else slope*x.", []string{"slope"}, []string{"dst", "x"}, 4,
		func(l lane, s []vec, ptr []gp) {
			x := l.load(ptr[1])
			positive, scaled := g.YMM(), g.YMM()
			g.compare(p, greater, g.zero(p), x, positive)
			g.mul(p, s[0], x, scaled)
			g.blend(p, positive, x, scaled, x)
			l.store(x, ptr[0])
		}})
	g.vectorOp(p, vectorOp{"leakyReluGrad", "writes dy where x > 0, else slope*dy.", []string{"slope"}, []string{"dst", "x", "dy"}, 4,
		func(l lane, s []vec, ptr []gp) {
			x, dy := l.load(ptr[1]), l.load(ptr[2])
			scaled := g.YMM()
			g.compare(p, greater, g.zero(p), x, x)
			g.mul(p, s[0], dy, scaled)
			g.blend(p, x, dy, scaled, x)
			l.store(x, ptr[0])
		}})
	g.vectorOp(p, vectorOp{"sigmoidGrad", "writes dy*y*(1-y).", nil, []string{"dst", "y", "dy"}, 2,
		func(l lane, _ []vec, ptr []gp) {
			y := l.load(ptr[1])
			rest := g.load(p, g.constant(p, 1))
			g.sub(p, y, rest, rest)
			g.mul(p, rest, y, y)
			g.mul(p, l.load(ptr[2]), y, y)
			l.store(y, ptr[0])
		}})
	g.vectorOp(p, vectorOp{"tanhGrad", "writes dy*(1-y*y).", nil, []string{"dst", "y", "dy"}, 2,
		func(l lane, _ []vec, ptr []gp) {
			y := l.load(ptr[1])
			rest := g.load(p, g.constant(p, 1))
			g.fnma231(p, y, y, rest)
			g.mul(p, l.load(ptr[2]), rest, rest)
			l.store(rest, ptr[0])
		}})
}

// wide loads a lane as float64 vectors: one for float64, two for float32.
func (l lane) wide(pointer gp) []vec {
	if !l.p.single {
		return []vec{l.load(pointer)}
	}
	g := l.g
	low, high := g.YMM(), g.YMM()
	if !l.masked {
		g.VCVTPS2PD(l.at(pointer), low)
		g.VCVTPS2PD(operand.Mem{Base: pointer, Disp: l.disp + 16}, high)
		return []vec{low, high}
	}
	v, top := l.load(pointer), g.XMM()
	g.VEXTRACTF128(operand.U8(1), v, top)
	g.VCVTPS2PD(v.AsX(), low)
	g.VCVTPS2PD(top, high)
	return []vec{low, high}
}

// reductions emits sums in float64 accumulators, whatever the values are.
func (g *generator) reductions(p precision) {
	for _, r := range []struct {
		name, doc string
		pointers  []string
		term      func(acc vec, x []vec) // adds one vector's terms
	}{
		{"squaredNorm", "adds up x*x.", []string{"x"}, func(acc vec, x []vec) { g.VFMADD231PD(x[0], x[0], acc) }},
		{"dot", "adds up x*y.", []string{"x", "y"}, func(acc vec, x []vec) { g.VFMADD231PD(x[0], x[1], acc) }},
		{"squaredDistance", "adds up (x-y)*(x-y).", []string{"x", "y"}, func(acc vec, x []vec) {
			d := g.YMM()
			g.VSUBPD(x[1], x[0], d)
			g.VFMADD231PD(d, d, acc)
		}},
	} {
		g.function(r.name+p.suffix, fmt.Sprintf("func(n uintptr, %s *%s) float64", strings.Join(r.pointers, ", "), p.goType), r.doc)
		n := g.parameter("n")
		var pointers []gp
		for _, s := range r.pointers {
			pointers = append(pointers, g.parameter(s))
		}
		width := p.lanes / 4 // float64 vectors in a lane
		unroll := 4 / width
		acc := make([]vec, 4)
		for i := range acc {
			acc[i] = g.zero(double)
		}
		g.forEach(p, unroll, n, pointers, func(l lane) {
			var loaded [][]vec
			for _, pointer := range pointers {
				loaded = append(loaded, l.wide(pointer))
			}
			for w := range width {
				var terms []vec
				for _, v := range loaded {
					terms = append(terms, v[w])
				}
				r.term(acc[l.index*width+w], terms)
			}
		})
		g.reduce(acc, g.VADDPD)
		g.VZEROUPPER()
		g.Store(acc[0].AsX(), g.ReturnIndex(0))
		g.RET()
	}
}

// foldHalves combines the upper half of v into its lower.
func (g *generator) foldHalves(v vec, combine func(ops ...op)) {
	upper := g.XMM()
	g.VEXTRACTF128(operand.U8(1), v, upper)
	combine(upper, v.AsX(), v.AsX())
}

// reduce combines float64 accumulators into the lowest lane of the first.
func (g *generator) reduce(acc []vec, combine func(ops ...op)) {
	for n := len(acc) / 2; n > 0; n /= 2 {
		for i := range n {
			combine(acc[i+n], acc[i], acc[i])
		}
	}
	g.foldHalves(acc[0], combine)
	swapped := g.XMM()
	g.VPERMILPD(operand.U8(1), acc[0].AsX(), swapped)
	combine(swapped, acc[0].AsX(), acc[0].AsX())
}
