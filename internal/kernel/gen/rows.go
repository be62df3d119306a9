package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
)

// rowLoop goes down the rows of a matrix, a block of columns at a time: four whole
// vectors, or one masked.
type rowLoop struct {
	g       *generator
	p       precision
	vectors int
	lanes   []lane
	rows    gp
	stride  gp
	x       gp
}

// function opens a function whose parameters are those of the loop and some pointers.
func (r *rowLoop) function(name, pointers, doc string) {
	tail := ""
	if r.vectors == 1 {
		tail = ", tail uintptr"
	}
	g := r.g
	g.function(fmt.Sprint(name, r.vectors, r.p.suffix), fmt.Sprintf("func(rows uintptr, x *%[1]s, stride uintptr, %[2]s *%[1]s%[3]s)", r.p.goType, pointers, tail), doc)
	r.rows, r.x, r.stride = g.parameter("rows"), g.parameter("x"), g.parameter("stride")
	r.lanes = nil
	for i := range r.vectors {
		l := lane{g: g, p: r.p, disp: 32 * i, index: i, masked: r.vectors == 1}
		if l.masked {
			l.mask = g.YMM()
			g.mask(r.p, g.parameter("tail"), l.mask)
		}
		r.lanes = append(r.lanes, l)
	}
}

// down does the body for every row and vector, and moves x and other pointers on.
func (r *rowLoop) down(body func(l lane), others ...gp) {
	g := r.g
	g.Label("loop")
	for _, l := range r.lanes {
		body(l)
	}
	for _, pointer := range append([]gp{r.x}, others...) {
		g.ADDQ(r.stride, pointer)
	}
	g.DECQ(r.rows)
	g.JNZ(operand.LabelRef("loop"))
}

// loaded are the vectors at a pointer.
func (r *rowLoop) loaded(pointer gp) (all []vec) {
	for _, l := range r.lanes {
		all = append(all, l.load(pointer))
	}
	return all
}

// sums are empty accumulators.
func (r *rowLoop) sums() (all []vec) {
	for range r.lanes {
		all = append(all, r.g.zero(r.p))
	}
	return all
}

// addTo adds accumulators to dst.
func (r *rowLoop) addTo(dst gp, acc []vec) {
	for _, l := range r.lanes {
		r.g.add(r.p, l.load(dst), acc[l.index], acc[l.index])
		l.store(acc[l.index], dst)
	}
}

// rows emits what works on the rows of matrices.
func (g *generator) rows(p precision) {
	for _, vectors := range []int{4, 1} {
		r := &rowLoop{g: g, p: p, vectors: vectors}
		for _, relu := range []bool{false, true} {
			name, doc := "addToRows", "adds bias to every row."
			if relu {
				name, doc = "addToRowsRelu", "adds bias to every row and takes max(x, 0)."
			}
			r.function(name, "bias", doc)
			bias := r.loaded(g.parameter("bias"))
			zero := g.zero(p)
			r.down(func(l lane) {
				v := l.load(r.x)
				g.add(p, bias[l.index], v, v)
				if relu {
					g.max(p, v, zero, v)
				}
				l.store(v, r.x)
			})
			g.finish()
		}
		r.function("sumRows", "dst", "adds the sum of all rows to dst.")
		acc := r.sums()
		r.down(func(l lane) { g.add(p, l.load(r.x), acc[l.index], acc[l.index]) })
		r.addTo(g.parameter("dst"), acc)
		g.finish()

		r.function("sumProducts", "y, dst", "adds the sum of all rows of x*y to dst.")
		y := g.parameter("y")
		acc = r.sums()
		r.down(func(l lane) { g.fma231(p, l.load(r.x), l.load(y), acc[l.index]) }, y)
		r.addTo(g.parameter("dst"), acc)
		g.finish()

		r.function("affineRows", "dst, factor, bias", "writes x*factor+bias to dst, row by row.")
		dst := g.parameter("dst")
		factor, bias := r.loaded(g.parameter("factor")), r.loaded(g.parameter("bias"))
		r.down(func(l lane) {
			v := l.load(r.x)
			g.fma213(p, bias[l.index], factor[l.index], v)
			l.store(v, dst)
		}, dst)
		g.finish()
	}
}
