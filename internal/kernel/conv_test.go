package kernel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// drawConv draws a geometry with any stride and padding; kernels may be larger
// than the image, padding larger than the kernel.
func drawConv(t *rapid.T) Conv {
	small := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	channels := rapid.SampledFrom([]int{1, 2, 3, 5, 8, 9, 16, 17, 33})
	g := Conv{
		InH: small("height", 1, 16), InW: small("width", 1, 15), InC: channels.Draw(t, "in"), OutC: channels.Draw(t, "out"),
		KernelH: small("kernel height", 1, 5), KernelW: small("kernel width", 1, 5),
		StrideH: small("stride down", 1, 3), StrideW: small("stride across", 1, 3),
		PadH: small("pad above", 0, 6), PadW: small("pad beside", 0, 6),
	}
	for g.Validate() != nil {
		g.PadH, g.PadW = g.PadH+1, g.PadW+1
	}
	g.CropH, g.CropW = small("rows left out", 0, min(2, g.OutH()-1)), small("columns left out", 0, min(2, g.OutW()-1))
	return g
}

// visit calls f for every product of the definition: input, filter and output
// index of one image.
func (g Conv) visit(f func(in, filter, out int)) {
	for oy := range g.OutH() {
		for ox := range g.OutW() {
			for ky := range g.KernelH {
				for kx := range g.KernelW {
					y, x := oy*g.StrideH+ky-g.PadH, ox*g.StrideW+kx-g.PadW
					if y < 0 || x < 0 || y >= g.InH || x >= g.InW {
						continue
					}
					for c := range g.InC {
						for o := range g.OutC {
							f((y*g.InW+x)*g.InC+c, ((ky*g.KernelW+kx)*g.InC+c)*g.OutC+o, (oy*g.OutW()+ox)*g.OutC+o)
						}
					}
				}
			}
		}
	}
}

// compare checks values against sums of products taken in float64.
type sums struct{ want, size, terms []float64 }

func newSums(n int) sums { return sums{make([]float64, n), make([]float64, n), make([]float64, n)} }

func (s sums) add(i int, v float64) {
	s.want[i] += v
	s.size[i] += math.Abs(v)
	s.terms[i]++
}

func compare[F Float](t *rapid.T, what string, got []F, s sums) {
	for i, v := range got {
		if !(math.Abs(float64(v)-s.want[i]) <= (s.terms[i]+4)*epsilon[F]()*s.size[i]) {
			t.Fatalf("%s, element %d of %d: %v, want %v", what, i, len(got), v, s.want[i])
		}
	}
}

func TestConv(t *testing.T) {
	t.Run("float32", testConv[float32])
	t.Run("float64", testConv[float64])
}

func testConv[F Float](t *testing.T) {
	var a arena[F]
	var ws Workspace[F]
	check(t, func(t *rapid.T) {
		defer a.reset()
		g := drawConv(t)
		n := rapid.IntRange(0, 2).Draw(t, "images")
		r := source(t)
		in, out, weights := g.InLen(), g.OutLen(), g.FilterLen()
		x, filter, dy := a.normal(r, n*in), a.normal(r, weights), a.normal(r, n*out)
		y, dx, dw, rotated := a.normal(r, n*out), a.normal(r, n*in), a.normal(r, weights), a.make(g.RotatedLen())
		add := rapid.Bool().Draw(t, "add")

		wantY, wantDX, wantDW := newSums(n*out), newSums(n*in), newSums(weights)
		if add {
			for i, v := range dw {
				wantDW.add(i, float64(v))
			}
		}
		for e := range n {
			g.visit(func(i, f, o int) {
				i, o = i+e*in, o+e*out
				wantY.add(o, float64(x[i])*float64(filter[f]))
				wantDX.add(i, float64(dy[o])*float64(filter[f]))
				wantDW.add(f, float64(dy[o])*float64(x[i]))
			})
		}
		w := &ws
		if rapid.IntRange(0, 3).Draw(t, "workspace") == 0 {
			w = nil
		}
		ConvForward(g, x, filter, y, w)
		compare(t, "forward", y, wantY)
		RotateFilter(g, rotated, filter)
		ConvInputGrad(g, dy, rotated, dx, w)
		compare(t, "input gradient", dx, wantDX)
		ConvWeightGrad(g, x, dy, dw, add, w)
		compare(t, "weight gradient", dw, wantDW)
		a.done(t)
	})
}

// TestConvLongSums: kernels and images so large that the sums of one tile are
// cut into several calls.
func TestConvLongSums(t *testing.T) {
	g := Conv{InH: 90, InW: 70, InC: 8, OutC: 3, KernelH: 12, KernelW: 70, StrideH: 1, StrideW: 1, PadH: 2, PadW: 1}
	if g.KernelH*g.KernelW*g.InC <= maxSteps {
		t.Fatal("the kernel is too small for this test")
	}
	g2 := Conv{InH: 90, InW: 70, InC: 1, OutC: 2, KernelH: 2, KernelW: 2, StrideH: 1, StrideW: 1}
	if g2.OutH()*g2.OutW() <= maxSteps {
		t.Fatal("the image is too small for this test")
	}
	for _, g := range []Conv{g, g2} {
		x, filter := make([]float64, g.InLen()), make([]float64, g.FilterLen())
		dy, y, dw := make([]float64, g.OutLen()), make([]float64, g.OutLen()), make([]float64, g.FilterLen())
		for i := range x {
			x[i] = float64(i%7) - 3
		}
		for i := range filter {
			filter[i] = float64(i%5) - 2
		}
		for i := range dy {
			dy[i] = float64(i%3) - 1
		}
		wantY, wantDW := make([]float64, len(y)), make([]float64, len(dw))
		g.visit(func(i, f, o int) {
			wantY[o] += x[i] * filter[f]
			wantDW[f] += x[i] * dy[o]
		})
		ConvForward(g, x, filter, y, nil)
		ConvWeightGrad(g, x, dy, dw, false, nil)
		for i := range y { // small integers: exact
			if y[i] != wantY[i] {
				t.Fatalf("output %d: %v, want %v", i, y[i], wantY[i])
			}
		}
		for i := range dw {
			if dw[i] != wantDW[i] {
				t.Fatalf("weight %d: %v, want %v", i, dw[i], wantDW[i])
			}
		}
	}
}

func drawPool(t *rapid.T) Pool {
	small := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	g := Pool{
		InH: small("height", 1, 8), InW: small("width", 1, 9), Channels: small("channels", 1, 20),
		KernelH: small("kernel height", 1, 4), KernelW: small("kernel width", 1, 4),
		StrideH: small("stride down", 1, 3), StrideW: small("stride across", 1, 3),
	}
	if rapid.Bool().Draw(t, "quarters") { // they have code of their own
		g.KernelH, g.KernelW, g.StrideH, g.StrideW = 2, 2, 2, 2
	} else {
		g.PadH, g.PadW = small("pad above", 0, g.KernelH-1), small("pad beside", 0, g.KernelW-1)
	}
	for g.Validate() != nil {
		g.InH, g.InW = g.InH+1, g.InW+1
	}
	return g
}

// window calls f for every input element of output (oy, ox, c) of one image.
func (g Pool) window(oy, ox, c int, f func(in int)) {
	for ky := range g.KernelH {
		for kx := range g.KernelW {
			y, x := oy*g.StrideH+ky-g.PadH, ox*g.StrideW+kx-g.PadW
			if y >= 0 && x >= 0 && y < g.InH && x < g.InW {
				f((y*g.InW+x)*g.Channels + c)
			}
		}
	}
}

func TestPool(t *testing.T) {
	t.Run("float32", testPool[float32])
	t.Run("float64", testPool[float64])
}

func testPool[F Float](t *testing.T) {
	var a arena[F]
	check(t, func(t *rapid.T) {
		defer a.reset()
		g := drawPool(t)
		n := rapid.IntRange(0, 2).Draw(t, "images")
		r := source(t)
		x, dy := a.normal(r, n*g.InLen()), a.normal(r, n*g.OutLen())
		for i := range x { // ties are common
			x[i] = F(math.Round(float64(x[i])))
		}
		largest, mean := a.normal(r, n*g.OutLen()), a.normal(r, n*g.OutLen())
		dMax, dMean := a.normal(r, n*g.InLen()), a.normal(r, n*g.InLen())
		MaxPool(g, x, largest)
		MaxPoolGrad(g, x, largest, dy, dMax, nil)
		AvgPool(g, x, mean)
		AvgPoolGrad(g, dy, dMean)

		wantMean, wantDMax, wantDMean := newSums(len(mean)), newSums(len(x)), newSums(len(x))
		o, share := 0, 1/float64(g.KernelH*g.KernelW)
		for e := range n {
			for oy := range g.OutH() {
				for ox := range g.OutW() {
					for c := range g.Channels {
						best := -1
						g.window(oy, ox, c, func(i int) {
							i += e * g.InLen()
							if best < 0 || x[i] > x[best] {
								best = i
							}
							wantMean.add(o, float64(x[i])*share)
							wantDMean.add(i, float64(dy[o])*share)
						})
						if largest[o] != x[best] {
							t.Fatalf("maximum %d: %v, want %v", o, largest[o], x[best])
						}
						wantDMax.add(best, float64(dy[o]))
						o++
					}
				}
			}
		}
		compare(t, "mean", mean, wantMean)
		compare(t, "gradient of the maximum", dMax, wantDMax)
		compare(t, "gradient of the mean", dMean, wantDMean)
		a.done(t)
	})
}

func TestMaxPoolLetsNaNThrough(t *testing.T) {
	for _, g := range []Pool{
		{InH: 1, InW: 4, Channels: 9, KernelH: 1, KernelW: 2, StrideH: 1, StrideW: 2},
		{InH: 2, InW: 4, Channels: 9, KernelH: 2, KernelW: 2, StrideH: 2, StrideW: 2},
	} {
		for at := range g.InLen() {
			x, y := make([]float32, g.InLen()), make([]float32, g.OutLen())
			x[at] = float32(math.NaN())
			MaxPool(g, x, y)
			for o, v := range y {
				hit := at%36/18 == o/9 && at%9 == o%9
				if hit != (v != v) {
					t.Fatalf("%+v, NaN at %d: output %d is %v", g, at, o, v)
				}
			}
		}
	}
}
