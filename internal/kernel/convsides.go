package kernel

// At its left and right side the gradient of an input meets columns of zeros, more of them
// with every column towards the edge. To multiply by them is a tenth of the work where
// images are small. Tiles of one row cannot leave them out, for every pixel of such a
// tile meets others; tiles of one column can, with the filter's columns that are left.
// Nothing else is left out, so that sums are the same to the last bit: zero times a finite
// number adds nothing.

// margin is how many columns of zeros ConvInputGrad leaves out at each side; 0: none.
// They must be the same on both sides, and so many rows be left between those that lack
// some of the filter's rows that tiles are high; a column's sum must be that of one tile.
func (g Conv) margin() int {
	inner := g.InH - 2*max(0, g.KernelH-1-g.PadH)
	if g.StrideH != 1 || g.StrideW != 1 || g.CropH != 0 || g.CropW != 0 || inner < 12 || g.KernelH*g.KernelW*g.OutC > maxSteps {
		return 0
	}
	if margin := g.KernelW - 1 - g.PadW; margin > 0 && 2*margin < g.InW {
		return margin
	}
	return 0
}

// RotatedLen is the number of values that RotateFilter writes.
func (g Conv) RotatedLen() int {
	n, column := g.FilterLen(), g.KernelH*g.InC*g.OutC
	for zeros := 1; zeros <= g.margin(); zeros++ {
		n += 2 * (g.KernelW - zeros) * column
	}
	return n
}

// writeSides writes, behind a filter whose rows have so many values, the filters of the
// columns at the sides: for every number of zeros that without its first columns, then
// that without its last ones.
func writeSides[F Float](filter []F, margin, rows, row, column int) {
	to := filter[rows*row:]
	for zeros := 1; zeros <= margin; zeros++ {
		for _, first := range []int{zeros * column, 0} {
			n := row - zeros*column
			for y := range rows {
				copy(to[:n], filter[y*row+first:])
				to = to[n:]
			}
		}
	}
}

// correlateSides is correlate for the columns at the sides, in the rows that meet all rows of
// the filter and the columns of out from jr on that a tile has.
func correlateSides[F Float](c *correlation, tiles tiling, jr int, image, filter, out []F) {
	line := c.width * c.channels
	w := tileWork[F]{
		wide: tiles.wide, cols: min(tiles.cols, c.outC-jr), segments: c.kernelH,
		aRow: line, aCol: 1, bRow: c.outC, cRow: c.outW * c.outC, alpha: 1,
	}
	top, bottom := max(0, c.top), min(c.outH, c.height-c.kernelH+c.top+1)
	sides := filter[c.kernelH*c.kernelW*c.channels*c.outC:]
	for zeros := 1; zeros <= c.margin; zeros++ {
		w.k = (c.kernelW - zeros) * c.channels
		w.segStep = line - w.k
		for _, side := range [2]struct{ column, from int }{
			{c.margin - zeros, c.margin},                                   // left: what is left of the window begins behind the zeros
			{c.outW - 1 - c.margin + zeros, c.outW - 1 - c.margin + zeros}, // right
		} {
			w.b = sides[jr:]
			for oy := top; oy < bottom; oy += w.rows {
				w.rows = tiles.nextRows(bottom - oy)
				w.a = image[(oy-c.top)*line+side.from*c.channels:]
				w.c = out[(oy*c.outW+side.column)*c.outC+jr:]
				tile(&w)
			}
			sides = sides[c.kernelH*w.k*c.outC:]
		}
	}
}
