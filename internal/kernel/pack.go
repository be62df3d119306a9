package kernel

// packPanels copies rows of b, and of them the nc values from jc on, into panels as wide
// as a tile, each with its rows one after another. What lies beyond nc in the last panel
// is never read.
func packPanels[F Float](dst []F, width int, b *Matrix[F], rows []int, jc, nc int) {
	kc := len(rows)
	for j := 0; j < nc; j += width {
		cols := min(width, nc-j)
		panel := dst[j*kc:]
		from := b.Data[(jc+j)*b.ColStride:]
		switch {
		case b.ColStride == 1:
			copyRows(panel, width, from, b.RowStride, rows, cols)
		case b.RowStride == 1 && rows[kc-1] == rows[0]+kc-1:
			transposeInto(panel, width, from[rows[0]:], b.ColStride, cols, kc)
		default:
			for p, row := range rows {
				for q := range cols {
					panel[p*width+q] = from[row*b.RowStride+q*b.ColStride]
				}
			}
		}
	}
}

// copyRows copies rows of cols values; whole tiles' rows without a call each.
func copyRows[F Float](dst []F, dstRow int, src []F, srcRow int, rows []int, cols int) {
	switch cols {
	case 32:
		for i, row := range rows {
			*(*[32]F)(dst[i*dstRow:]) = *(*[32]F)(src[row*srcRow:])
		}
	case 16:
		for i, row := range rows {
			*(*[16]F)(dst[i*dstRow:]) = *(*[16]F)(src[row*srcRow:])
		}
	case 8:
		for i, row := range rows {
			*(*[8]F)(dst[i*dstRow:]) = *(*[8]F)(src[row*srcRow:])
		}
	default:
		for i, row := range rows {
			copy(dst[i*dstRow:i*dstRow+cols], src[row*srcRow:])
		}
	}
}

// packRows copies columns of a, and of them the mc values from ic on, into groups as high
// as its tiles will be, each with its columns one after another.
func packRows[F Float](dst []F, t tiling, a *Matrix[F], columns []int, ic, mc int) {
	kc := len(columns)
	for i := 0; i < mc; {
		rows := t.nextRows(mc - i)
		group := dst[i*kc : (i+rows)*kc]
		from := a.Data[(ic+i)*a.RowStride:]
		if a.RowStride != 1 || !pack(group, rows, from, a.ColStride, columns) {
			for p, column := range columns {
				for q := range rows {
					group[p*rows+q] = from[q*a.RowStride+column*a.ColStride]
				}
			}
		}
		i += rows
	}
}

// packTwin copies rows values of every column, one column after another, if they are as
// many as a tile has.
func packTwin[F Float](dst []F, rows int, src []F, stride int, columns []int) bool {
	switch rows {
	case 12:
		for p, column := range columns {
			*(*[12]F)(dst[p*12:]) = *(*[12]F)(src[column*stride:])
		}
	case 6:
		for p, column := range columns {
			*(*[6]F)(dst[p*6:]) = *(*[6]F)(src[column*stride:])
		}
	default:
		return false
	}
	return true
}
