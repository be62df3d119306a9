package kernel

import (
	"fmt"
	"math"
)

// Pool is the geometry of a pooling layer over images stored as height, width,
// channel.
type Pool struct {
	InH, InW, Channels int
	KernelH, KernelW   int
	StrideH, StrideW   int // at least 1
	PadH, PadW         int // on each side, less than the kernel
}

// OutH is the height of the output.
func (g Pool) OutH() int { return (g.InH+2*g.PadH-g.KernelH)/g.StrideH + 1 }

// OutW is the width of the output.
func (g Pool) OutW() int { return (g.InW+2*g.PadW-g.KernelW)/g.StrideW + 1 }

// InLen is the number of values of an input image.
func (g Pool) InLen() int { return g.InH * g.InW * g.Channels }

// OutLen is the number of values of an output image.
func (g Pool) OutLen() int { return g.OutH() * g.OutW() * g.Channels }

// Validate says what is wrong with a geometry.
func (g Pool) Validate() error {
	switch {
	case g.InH < 1 || g.InW < 1 || g.Channels < 1:
		return fmt.Errorf("pooling of %d x %d x %d: sizes must be at least 1", g.InH, g.InW, g.Channels)
	case g.KernelH < 1 || g.KernelW < 1 || g.StrideH < 1 || g.StrideW < 1:
		return fmt.Errorf("pooling with kernel %d x %d and stride %d x %d: they must be at least 1", g.KernelH, g.KernelW, g.StrideH, g.StrideW)
	case g.PadH < 0 || g.PadW < 0 || g.PadH >= g.KernelH || g.PadW >= g.KernelW:
		return fmt.Errorf("pooling with padding %d x %d: it must be at least 0 and less than the kernel, %d x %d", g.PadH, g.PadW, g.KernelH, g.KernelW)
	case g.InH+2*g.PadH < g.KernelH || g.InW+2*g.PadW < g.KernelW:
		return fmt.Errorf("pooling with kernel %d x %d does not fit into the padded image of %d x %d",
			g.KernelH, g.KernelW, g.InH+2*g.PadH, g.InW+2*g.PadW)
	}
	return nil
}

func (g Pool) examples(function string, in, out int) int {
	if err := g.Validate(); err != nil {
		panic("kernel: " + function + ": " + err.Error())
	}
	n := in / g.InLen()
	if in != n*g.InLen() || out != n*g.OutLen() {
		panic(fmt.Sprintf("kernel: %s: images of %d and %d values, want multiples of %d and %d", function, in, out, g.InLen(), g.OutLen()))
	}
	return n
}

// runs calls visit for the windows of output row oy, position by position in
// the kernel: n values from in of the image belong to those from out of the
// row. first: it is the windows' first position.
func (g Pool) runs(oy int, visit func(in, out, n int, first bool)) {
	for ky := range g.KernelH {
		y := oy*g.StrideH + ky - g.PadH
		if y < 0 || y >= g.InH {
			continue
		}
		for kx := range g.KernelW {
			if g.StrideW == 1 { // neighbours stay neighbours: one long run
				from, to := max(0, g.PadW-kx), min(g.OutW(), g.InW+g.PadW-kx)
				if from < to {
					visit((y*g.InW+from+kx-g.PadW)*g.Channels, from*g.Channels, (to-from)*g.Channels, ky+kx == 0)
				}
				continue
			}
			for ox := range g.OutW() {
				if x := ox*g.StrideW + kx - g.PadW; x >= 0 && x < g.InW {
					visit((y*g.InW+x)*g.Channels, ox*g.Channels, g.Channels, ky+kx == 0)
				}
			}
		}
	}
}

// eachRow calls visit for every output row of n images.
func (g Pool) eachRow(n int, visit func(oy, in, out int)) {
	for i := range n {
		for oy := range g.OutH() {
			visit(oy, i*g.InLen(), (i*g.OutH()+oy)*g.OutW()*g.Channels)
		}
	}
}

// MaxPool writes the largest value of every window to y; a NaN in the window
// comes through. The padding takes no part.
func MaxPool[F Float](g Pool, x, y []F) {
	n := g.examples("MaxPool", len(x), len(y))
	if g.quarters() {
		for i := range n {
			maxPoolQuarters(g, x[i*g.InLen():(i+1)*g.InLen()], y[i*g.OutLen():(i+1)*g.OutLen()])
		}
		return
	}
	line := g.OutW() * g.Channels
	g.eachRow(n, func(oy, in, out int) {
		row := y[out : out+line]
		padded := g.PadH > 0 || g.PadW > 0
		if padded {
			for i := range row {
				row[i] = F(math.Inf(-1))
			}
		}
		g.runs(oy, func(from, to, n int, first bool) {
			if first && !padded {
				copy(row[to:to+n], x[in+from:])
			} else {
				Maximum(row[to:to+n], row[to:to+n], x[in+from:in+from+n])
			}
		})
	})
}

// MaxPoolGrad writes to dx the gradient dy, each value of it to the first
// element of the window that equals the maximum y; windows with NaN give none.
func MaxPoolGrad[F Float](g Pool, x, y, dy, dx []F, ws *Workspace[F]) {
	n := g.examples("MaxPoolGrad", len(x), len(y))
	checkLength("MaxPoolGrad", len(dy), len(y))
	checkLength("MaxPoolGrad", len(dx), len(x))
	if ws == nil {
		ws = new(Workspace[F])
	}
	line := g.OutW() * g.Channels
	if g.quarters() {
		left := take(&ws.padded, line)
		for i := range n {
			in, out := i*g.InLen(), i*g.OutLen()
			maxPoolQuartersGrad(g, x[in:in+g.InLen()], y[out:out+g.OutLen()], dy[out:out+g.OutLen()], dx[in:in+g.InLen()], left)
		}
		return
	}
	clear(dx)
	left := take(&ws.padded, line)
	g.eachRow(n, func(oy, in, out int) {
		copy(left, dy[out:out+line])
		row := y[out : out+line]
		g.runs(oy, func(from, to, n int, _ bool) {
			for lo := 0; lo < n; lo += chunk {
				hi := min(lo+chunk, n)
				maxPoolGrad(left[to+lo:to+hi], row[to+lo:to+hi], x[in+from+lo:in+from+hi], dx[in+from+lo:in+from+hi])
			}
		})
	})
}

// AvgPool writes the mean of every window to y. The padding counts as zeros.
func AvgPool[F Float](g Pool, x, y []F) {
	n := g.examples("AvgPool", len(x), len(y))
	clear(y)
	line := g.OutW() * g.Channels
	share := 1 / F(g.KernelH*g.KernelW)
	g.eachRow(n, func(oy, in, out int) {
		row := y[out : out+line]
		g.runs(oy, func(from, to, n int, _ bool) { Axpy(share, x[in+from:in+from+n], row[to:to+n]) })
	})
}

// AvgPoolGrad writes to dx the gradient dy, spread evenly over each window.
func AvgPoolGrad[F Float](g Pool, dy, dx []F) {
	n := g.examples("AvgPoolGrad", len(dx), len(dy))
	clear(dx)
	line := g.OutW() * g.Channels
	share := 1 / F(g.KernelH*g.KernelW)
	g.eachRow(n, func(oy, in, out int) {
		row := dy[out : out+line]
		g.runs(oy, func(from, to, n int, _ bool) { Axpy(share, row[to:to+n], dx[in+from:in+from+n]) })
	})
}
