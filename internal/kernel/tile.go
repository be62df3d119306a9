package kernel

// tileWork is one tile of C, at most tileRows x tileCols: C (+)= alpha*A*B. The
// sum runs over segments of k steps; after a segment A moves on by segStep,
// which lets a convolution walk down the rows of an image. Strides count values.
type tileWork[F Float] struct {
	rows, cols  int
	segments, k int // at least 1
	a           []F
	aRow, aCol  int
	segStep     int
	b           []F
	bRow        int
	c           []F
	cRow        int
	alpha       F
	add         bool
}

// maxSteps bounds the steps of one tile: six cycles each, some microseconds.
const maxSteps = 4096

// nextRows is the height of the next tile when left rows are to be done: six,
// and the last two of nearly the same height, for a low tile wastes time.
func nextRows(left int) int {
	switch {
	case left <= tileRows:
		return left
	case left < 2*tileRows:
		return (left + 1) / 2
	}
	return tileRows
}

// tileTwin works on blocks of 2 x 4 that fit into registers, and on single
// elements at the edges.
func tileTwin[F Float](w *tileWork[F]) {
	for i := 0; i < w.rows; i += 2 {
		for j := 0; j < w.cols; j += 4 {
			if i+2 <= w.rows && j+4 <= w.cols {
				tileBlock(w, i, j)
				continue
			}
			for q := i; q < min(i+2, w.rows); q++ {
				for r := j; r < min(j+4, w.cols); r++ {
					tileElement(w, q, r)
				}
			}
		}
	}
}

func (w *tileWork[F]) put(i, j int, v F) {
	to := &w.c[i*w.cRow+j]
	if w.add {
		*to += w.alpha * v
	} else {
		*to = w.alpha * v
	}
}

func tileElement[F Float](w *tileWork[F], i, j int) {
	var s F
	at, bt := i*w.aRow, j
	for range w.segments {
		for range w.k {
			s += w.a[at] * w.b[bt]
			at += w.aCol
			bt += w.bRow
		}
		at += w.segStep
	}
	w.put(i, j, s)
}

func tileBlock[F Float](w *tileWork[F], i, j int) {
	var s00, s01, s02, s03, s10, s11, s12, s13 F
	at, bt := i*w.aRow, j
	a, b, aRow, aCol, bRow := w.a, w.b, w.aRow, w.aCol, w.bRow
	for range w.segments {
		for range w.k {
			x, y := a[at], a[at+aRow]
			v := b[bt : bt+4 : bt+4]
			s00 += x * v[0]
			s01 += x * v[1]
			s02 += x * v[2]
			s03 += x * v[3]
			s10 += y * v[0]
			s11 += y * v[1]
			s12 += y * v[2]
			s13 += y * v[3]
			at += aCol
			bt += bRow
		}
		at += w.segStep
	}
	w.put(i, j, s00)
	w.put(i, j+1, s01)
	w.put(i, j+2, s02)
	w.put(i, j+3, s03)
	w.put(i+1, j, s10)
	w.put(i+1, j+1, s11)
	w.put(i+1, j+2, s12)
	w.put(i+1, j+3, s13)
}

// packPanels copies the kc x nc block of b at (pc, jc) into panels as wide as a
// tile, each with its rows one after another. What lies beyond nc in the last
// panel is never read.
func packPanels[F Float](dst []F, b *Matrix[F], pc, jc, kc, nc int) {
	width := tileCols[F]()
	for j := 0; j < nc; j += width {
		cols := min(width, nc-j)
		panel := dst[j*kc:]
		from := b.Data[pc*b.RowStride+(jc+j)*b.ColStride:]
		switch {
		case b.ColStride == 1:
			copyRows(panel, width, from, b.RowStride, kc, cols)
		case b.RowStride == 1:
			transposeInto(panel, width, from, b.ColStride, cols, kc)
		default:
			for p := range kc {
				for q := range cols {
					panel[p*width+q] = from[p*b.RowStride+q*b.ColStride]
				}
			}
		}
	}
}

// copyRows copies rows of cols values; whole tiles' rows without a call each.
func copyRows[F Float](dst []F, dstRow int, src []F, srcRow, rows, cols int) {
	switch cols {
	case 16:
		for i := range rows {
			*(*[16]F)(dst[i*dstRow:]) = *(*[16]F)(src[i*srcRow:])
		}
	case 8:
		for i := range rows {
			*(*[8]F)(dst[i*dstRow:]) = *(*[8]F)(src[i*srcRow:])
		}
	default:
		for i := range rows {
			copy(dst[i*dstRow:i*dstRow+cols], src[i*srcRow:])
		}
	}
}

// packRows copies the mc x kc block of a at (ic, pc) into groups as high as its
// tiles will be, each with its columns one after another.
func packRows[F Float](dst []F, a *Matrix[F], ic, pc, mc, kc int) {
	for i := 0; i < mc; {
		rows := nextRows(mc - i)
		group := dst[i*kc : (i+rows)*kc]
		from := a.Data[(ic+i)*a.RowStride+pc*a.ColStride:]
		switch {
		case a.RowStride == 1 && rows == tileRows:
			for p := range kc {
				*(*[tileRows]F)(group[p*tileRows:]) = *(*[tileRows]F)(from[p*a.ColStride:])
			}
		case a.ColStride == 1 && rows == tileRows:
			s := a.RowStride
			r0, r1, r2 := from[:kc], from[s:s+kc], from[2*s:2*s+kc]
			r3, r4, r5 := from[3*s:3*s+kc], from[4*s:4*s+kc], from[5*s:5*s+kc]
			for p := range kc {
				t := (*[tileRows]F)(group[p*tileRows:])
				t[0], t[1], t[2], t[3], t[4], t[5] = r0[p], r1[p], r2[p], r3[p], r4[p], r5[p]
			}
		default:
			for q := range rows {
				for p := range kc {
					group[p*rows+q] = from[q*a.RowStride+p*a.ColStride]
				}
			}
		}
		i += rows
	}
}
