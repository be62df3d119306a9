//go:build amd64 && !purego

package kernel

import "unsafe"

func tile[F Float](w *tileWork[F]) {
	switch {
	case !vectorised:
		tileTwin(w)
	case isSingle[F]():
		tile32((*tileWork[float32])(unsafe.Pointer(w)))
	default:
		tile64((*tileWork[float64])(unsafe.Pointer(w)))
	}
}

// tile32 chooses the micro-kernel by the tile's shape.
func tile32(w *tileWork[float32]) {
	const size = 4
	segments, k := uintptr(w.segments), uintptr(w.k)
	a, aRow, aCol, segStep := &w.a[0], uintptr(w.aRow*size), uintptr(w.aCol*size), uintptr(w.segStep*size)
	b, bRow := &w.b[0], uintptr(w.bRow*size)
	c, cRow := &w.c[0], uintptr(w.cRow*size)
	var add uintptr
	if w.add {
		add = 1
	}
	switch {
	case w.cols == 16:
		switch w.rows {
		case 6:
			tile6x2F32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add)
		case 5:
			tile5x2F32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add)
		case 4:
			tile4x2F32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add)
		case 3:
			tile3x2F32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add)
		case 2:
			tile2x2F32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add)
		case 1:
			tile1x2F32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add)
		}
	case w.cols > 8:
		tail := uintptr(w.cols - 8)
		switch w.rows {
		case 6:
			tile6x2mF32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 5:
			tile5x2mF32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 4:
			tile4x2mF32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 3:
			tile3x2mF32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 2:
			tile2x2mF32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 1:
			tile1x2mF32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		}
	default:
		tail := uintptr(w.cols)
		switch w.rows {
		case 6:
			tile6x1mF32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 5:
			tile5x1mF32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 4:
			tile4x1mF32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 3:
			tile3x1mF32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 2:
			tile2x1mF32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 1:
			tile1x1mF32(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		}
	}
}

// tile64 chooses the micro-kernel by the tile's shape.
func tile64(w *tileWork[float64]) {
	const size = 8
	segments, k := uintptr(w.segments), uintptr(w.k)
	a, aRow, aCol, segStep := &w.a[0], uintptr(w.aRow*size), uintptr(w.aCol*size), uintptr(w.segStep*size)
	b, bRow := &w.b[0], uintptr(w.bRow*size)
	c, cRow := &w.c[0], uintptr(w.cRow*size)
	var add uintptr
	if w.add {
		add = 1
	}
	switch {
	case w.cols == 8:
		switch w.rows {
		case 6:
			tile6x2F64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add)
		case 5:
			tile5x2F64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add)
		case 4:
			tile4x2F64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add)
		case 3:
			tile3x2F64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add)
		case 2:
			tile2x2F64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add)
		case 1:
			tile1x2F64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add)
		}
	case w.cols > 4:
		tail := uintptr(w.cols - 4)
		switch w.rows {
		case 6:
			tile6x2mF64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 5:
			tile5x2mF64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 4:
			tile4x2mF64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 3:
			tile3x2mF64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 2:
			tile2x2mF64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 1:
			tile1x2mF64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		}
	default:
		tail := uintptr(w.cols)
		switch w.rows {
		case 6:
			tile6x1mF64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 5:
			tile5x1mF64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 4:
			tile4x1mF64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 3:
			tile3x1mF64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 2:
			tile2x1mF64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		case 1:
			tile1x1mF64(segments, k, a, aRow, aCol, segStep, b, bRow, c, cRow, w.alpha, add, tail)
		}
	}
}

// transpose turns whole square blocks in assembly, the edges in Go.
func transpose[F Float](dst []F, dstRow int, src []F, srcRow, rows, cols int) {
	lanes := tileCols[F]() / 2
	size := 32 / lanes
	blocks := cols / lanes
	if !vectorised || blocks == 0 || rows < lanes {
		transposeTwin(dst, dstRow, src, srcRow, rows, cols)
		return
	}
	whole := rows / lanes * lanes
	for i := 0; i < whole; i += lanes {
		from, to := src[i*srcRow:], dst[i:]
		if isSingle[F]() {
			transposeF32(uintptr(blocks), f32(from), uintptr(srcRow*size), f32(to), uintptr(dstRow*size))
		} else {
			transposeF64(uintptr(blocks), f64(from), uintptr(srcRow*size), f64(to), uintptr(dstRow*size))
		}
	}
	if done := blocks * lanes; done < cols {
		transposeTwin(dst[done*dstRow:], dstRow, src[done:], srcRow, whole, cols-done)
	}
	if whole < rows {
		transposeTwin(dst[whole:], dstRow, src[whole*srcRow:], srcRow, rows-whole, cols)
	}
}
