package kernel

// quarters says that the windows are of 2 by 2 and share nothing: what most
// networks have, and worth calls of its own.
func (g Pool) quarters() bool {
	return g.KernelH == 2 && g.KernelW == 2 && g.StrideH == 2 && g.StrideW == 2 && g.PadH == 0 && g.PadW == 0 && g.Channels <= chunk
}

// maxPoolQuarters is MaxPool on one image.
func maxPoolQuarters[F Float](g Pool, x, y []F) {
	c, line, width := g.Channels, g.InW*g.Channels, g.OutW()
	for oy := range g.OutH() {
		top, bottom := x[2*oy*line:(2*oy+1)*line], x[(2*oy+1)*line:(2*oy+2)*line]
		row := y[oy*width*c : (oy+1)*width*c]
		for ox := range width {
			at := 2 * ox * c
			maximum4(row[ox*c:(ox+1)*c], top[at:at+c], top[at+c:at+2*c], bottom[at:at+c], bottom[at+c:at+2*c])
		}
	}
}

// maxPoolQuartersGrad is MaxPoolGrad on one image; left is a row of the output.
func maxPoolQuartersGrad[F Float](g Pool, x, y, dy, dx, left []F) {
	c, line, width := g.Channels, g.InW*g.Channels, g.OutW()
	for oy := range g.OutH() {
		from, to := oy*width*c, (oy+1)*width*c
		copy(left, dy[from:to])
		row := y[from:to]
		for half := range 2 {
			in := (2*oy + half) * line
			source, sink := x[in:in+line], dx[in:in+line]
			for ox := range width {
				at := 2 * ox * c
				maxPoolGradPair(left[ox*c:(ox+1)*c], row[ox*c:(ox+1)*c], source[at:at+c], source[at+c:at+2*c], sink[at:at+c], sink[at+c:at+2*c])
			}
			clear(sink[2*width*c:])
		}
	}
	clear(dx[2*g.OutH()*line:])
}
