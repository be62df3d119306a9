package kernel

import "fmt"

// Conv is the geometry of a convolution. Images are stored as height, width,
// channel (NHWC, channels fastest), filters as [KernelH][KernelW][InC][OutC].
// The padding takes part as zeros.
type Conv struct {
	InH, InW, InC    int
	OutC             int
	KernelH, KernelW int
	StrideH, StrideW int // at least 1
	PadH, PadW       int // on each side
	CropH, CropW     int // last rows and columns of the output that nobody reads
}

// OutH is the height of the output.
func (g Conv) OutH() int { return (g.InH+2*g.PadH-g.KernelH)/g.StrideH + 1 - g.CropH }

// OutW is the width of the output.
func (g Conv) OutW() int { return (g.InW+2*g.PadW-g.KernelW)/g.StrideW + 1 - g.CropW }

// InLen is the number of values of an input image.
func (g Conv) InLen() int { return g.InH * g.InW * g.InC }

// OutLen is the number of values of an output image.
func (g Conv) OutLen() int { return g.OutH() * g.OutW() * g.OutC }

// FilterLen is the number of values of the filter.
func (g Conv) FilterLen() int { return g.KernelH * g.KernelW * g.InC * g.OutC }

// Validate says what is wrong with a geometry.
func (g Conv) Validate() error {
	switch {
	case g.InH < 1 || g.InW < 1 || g.InC < 1 || g.OutC < 1:
		return fmt.Errorf("convolution of %d x %d x %d to %d channels: sizes must be at least 1", g.InH, g.InW, g.InC, g.OutC)
	case g.KernelH < 1 || g.KernelW < 1 || g.StrideH < 1 || g.StrideW < 1 || g.PadH < 0 || g.PadW < 0:
		return fmt.Errorf("convolution with kernel %d x %d, stride %d x %d, padding %d x %d: kernel and stride must be at least 1, padding at least 0",
			g.KernelH, g.KernelW, g.StrideH, g.StrideW, g.PadH, g.PadW)
	case g.InH+2*g.PadH < g.KernelH || g.InW+2*g.PadW < g.KernelW:
		return fmt.Errorf("convolution with kernel %d x %d does not fit into the padded image of %d x %d",
			g.KernelH, g.KernelW, g.InH+2*g.PadH, g.InW+2*g.PadW)
	case g.CropH < 0 || g.CropW < 0 || g.OutH() < 1 || g.OutW() < 1:
		return fmt.Errorf("convolution that leaves out %d rows and %d columns: at least 0, and some of the output must be left", g.CropH, g.CropW)
	}
	return nil
}

// examples checks the lengths and returns the number of images.
func (g Conv) examples(function string, in, filter, out int) int {
	if err := g.Validate(); err != nil {
		panic("kernel: " + function + ": " + err.Error())
	}
	n := in / g.InLen()
	if in != n*g.InLen() || out != n*g.OutLen() || filter != g.FilterLen() {
		panic(fmt.Sprintf("kernel: %s: images of %d and %d values and a filter of %d, want multiples of %d and %d, and %d",
			function, in, out, filter, g.InLen(), g.OutLen(), g.FilterLen()))
	}
	return n
}

// ConvForward writes the convolution of the images x to y:
// y[oy][ox][o] = sum over ky, kx, c of x[oy*StrideH+ky-PadH][ox*StrideW+kx-PadW][c] * filter[ky][kx][c][o].
func ConvForward[F Float](g Conv, x, filter, y []F, ws *Workspace[F]) {
	n := g.examples("ConvForward", len(x), len(filter), len(y))
	if ws == nil {
		ws = new(Workspace[F])
	}
	c := correlation{
		height: g.InH, width: g.InW + 2*g.PadW, channels: g.InC,
		kernelH: g.KernelH, kernelW: g.KernelW, strideH: g.StrideH, strideW: g.StrideW, top: g.PadH,
		outH: g.OutH(), outW: g.OutW(), outC: g.OutC,
	}
	for i := range n {
		image := widen(x[i*g.InLen():(i+1)*g.InLen()], g.InH, g.InW, g.InC, g.PadW, c.width, 1, 1, ws)
		correlate(&c, image, filter, y[i*g.OutLen():(i+1)*g.OutLen()])
	}
}

// RotateFilter writes the filter turned by 180 degrees, its channels exchanged,
// as ConvInputGrad wants it: [KernelH][KernelW][OutC][InC], and what it needs at the
// sides, RotatedLen values in all. It depends on the filter alone: once for a step is
// enough.
func RotateFilter[F Float](g Conv, rotated, filter []F) {
	checkLength("RotateFilter", len(filter), g.FilterLen())
	checkLength("RotateFilter", len(rotated), g.RotatedLen())
	taps, size := g.KernelH*g.KernelW, g.InC*g.OutC
	for t := range taps {
		transposeInto(rotated[(taps-1-t)*size:(taps-t)*size], g.InC, filter[t*size:(t+1)*size], g.OutC, g.InC, g.OutC)
	}
	writeSides(rotated, g.margin(), g.KernelH, g.KernelW*size, size)
}

// ConvInputGrad writes the gradient with respect to the images to dx, from the
// gradient dy with respect to the output and the filter as RotateFilter turned
// it. It is also the forward pass of a transposed convolution from OutC to InC
// channels.
func ConvInputGrad[F Float](g Conv, dy, rotated, dx []F, ws *Workspace[F]) {
	checkLength("ConvInputGrad", len(rotated), g.RotatedLen())
	n := g.examples("ConvInputGrad", len(dx), g.FilterLen(), len(dy))
	if ws == nil {
		ws = new(Workspace[F])
	}
	// The gradient is the correlation of dy, its pixels spread by the stride,
	// with the rotated filter: input pixel v meets output pixels whose window
	// covers it.
	c := correlation{
		height: (g.OutH()-1)*g.StrideH + 1, width: g.InW + g.KernelW - 1, channels: g.OutC,
		kernelH: g.KernelH, kernelW: g.KernelW, strideH: 1, strideW: 1, top: g.KernelH - 1 - g.PadH,
		outH: g.InH, outW: g.InW, outC: g.InC, margin: g.margin(),
	}
	for i := range n {
		image := widen(dy[i*g.OutLen():(i+1)*g.OutLen()], g.OutH(), g.OutW(), g.OutC,
			g.KernelW-1-g.PadW, c.width, g.StrideH, g.StrideW, ws)
		correlate(&c, image, rotated, dx[i*g.InLen():(i+1)*g.InLen()])
	}
}

// ConvWeightGrad writes the gradient with respect to the filter, summed over
// the images, to dw, or adds it if add is set. One example's own gradient is
// the call with its image alone.
func ConvWeightGrad[F Float](g Conv, x, dy, dw []F, add bool, ws *Workspace[F]) {
	n := g.examples("ConvWeightGrad", len(x), len(dw), len(dy))
	if ws == nil {
		ws = new(Workspace[F])
	}
	if n == 0 && !add {
		clear(dw)
	}
	for i := range n {
		image := widen(x[i*g.InLen():(i+1)*g.InLen()], g.InH, g.InW, g.InC, g.PadW, g.InW+2*g.PadW, 1, 1, ws)
		weightGrad(&g, image, dy[i*g.OutLen():(i+1)*g.OutLen()], dw, add || i > 0)
	}
}

// correlation slides a kernel over an image whose columns are padded already;
// rows above and below the image are left out of the sums instead.
type correlation struct {
	height, width, channels int
	kernelH, kernelW        int
	strideH, strideW        int
	top                     int // rows of padding above; negative: rows left out
	outH, outW, outC        int
	margin                  int // columns of zeros on each side that are left out of sums; 0: none are
}

func correlate[F Float](c *correlation, image, filter, out []F) {
	tiles := tilesFor[F](c.outC)
	cols := tiles.cols
	run := c.kernelW * c.channels // contiguous in image and filter
	line := c.width * c.channels
	perCall := max(1, maxSteps/run)
	for jr := 0; jr < c.outC; jr += cols {
		w := tileWork[F]{
			wide: tiles.wide, cols: min(cols, c.outC-jr), k: run,
			aRow: c.strideW * c.channels, aCol: 1, segStep: line - run,
			bRow: c.outC, cRow: c.outC, alpha: 1,
		}
		for oy := range c.outH {
			first := oy*c.strideH - c.top
			from, to := max(0, -first), min(c.kernelH, c.height-first)
			row, left, right := out[oy*c.outW*c.outC:(oy+1)*c.outW*c.outC], 0, c.outW
			if from == 0 && to == c.kernelH {
				left, right = c.margin, c.outW-c.margin
			}
			if from >= to {
				for ox := range c.outW {
					clear(row[ox*c.outC+jr : ox*c.outC+jr+w.cols])
				}
				continue
			}
			for ky := from; ky < to; ky += perCall {
				w.segments = min(perCall, to-ky)
				w.add = ky > from
				w.b = filter[ky*run*c.outC+jr:]
				at := image[(first+ky)*line:]
				for ox := left; ox < right; ox += w.rows {
					w.rows = tiles.nextRows(right - ox)
					w.a = at[ox*w.aRow:]
					w.c = row[ox*c.outC+jr:]
					tile(&w)
				}
			}
		}
		if c.margin > 0 {
			correlateSides(c, tiles, jr, image, filter, out)
		}
	}
}

// weightGrad sums image patches times output gradients.
func weightGrad[F Float](g *Conv, image, dy, dw []F, add bool) {
	tiles := tilesFor[F](g.OutC)
	cols := tiles.cols
	outH, outW := g.OutH(), g.OutW()
	run := g.KernelW * g.InC
	line := (g.InW + 2*g.PadW) * g.InC
	perCall := max(1, maxSteps/outW)
	for jr := 0; jr < g.OutC; jr += cols {
		w := tileWork[F]{
			wide: tiles.wide, cols: min(cols, g.OutC-jr), k: outW,
			aRow: 1, aCol: g.StrideW * g.InC, segStep: g.StrideH*line - outW*g.StrideW*g.InC,
			bRow: g.OutC, cRow: g.OutC, alpha: 1,
		}
		for ky := range g.KernelH {
			// Output rows whose window's row ky lies in the image.
			from := max(0, (g.PadH-ky+g.StrideH-1)/g.StrideH)
			to := min(outH, (g.InH-1+g.PadH-ky+g.StrideH)/g.StrideH)
			if g.InH-1+g.PadH-ky < 0 || from >= to {
				if !add {
					for i := range run {
						clear(dw[(ky*run+i)*g.OutC+jr:][:w.cols])
					}
				}
				continue
			}
			for oy := from; oy < to; oy += perCall {
				w.segments = min(perCall, to-oy)
				w.add = add || oy > from
				w.b = dy[oy*outW*g.OutC+jr:]
				at := image[(oy*g.StrideH+ky-g.PadH)*line:]
				for i := 0; i < run; i += w.rows {
					w.rows = tiles.nextRows(run - i)
					w.a = at[i:]
					w.c = dw[(ky*run+i)*g.OutC+jr:]
					tile(&w)
				}
			}
		}
	}
}

// widen gives every row of an image the width asked for: left columns of zeros
// (left out, if negative), pixels spread by the strides, zeros to the end. An
// image that needs none of it is returned as it is.
func widen[F Float](image []F, height, width, channels, left, to, spreadH, spreadW int, ws *Workspace[F]) []F {
	if left == 0 && to == width && spreadH == 1 && spreadW == 1 {
		return image
	}
	wide := take(&ws.padded, ((height-1)*spreadH+1)*to*channels)
	if spreadH > 1 || spreadW > 1 {
		clear(wide)
	}
	for y := range height {
		from := image[y*width*channels : (y+1)*width*channels]
		row := wide[y*spreadH*to*channels:][:to*channels]
		if spreadW > 1 {
			for x := range width {
				if at := left + x*spreadW; at >= 0 && at < to {
					copy(row[at*channels:(at+1)*channels], from[x*channels:])
				}
			}
			continue
		}
		if left < 0 {
			from = from[min(len(from), -left*channels):]
		}
		start := max(0, left) * channels
		start = min(start, len(row))
		clear(row[:start])
		n := copy(row[start:], from)
		clear(row[start+n:])
	}
	return wide
}
