//go:build amd64 && !purego

package kernel

import "unsafe"

func tile[F Float](w *tileWork[F]) {
	switch {
	case !vectorised:
		tileTwin(w)
	case isSingle[F]() && w.wide:
		wideTileF32((*tileWork[float32])(unsafe.Pointer(w)))
	case isSingle[F]():
		tileF32((*tileWork[float32])(unsafe.Pointer(w)))
	case w.wide:
		wideTileF64((*tileWork[float64])(unsafe.Pointer(w)))
	default:
		tileF64((*tileWork[float64])(unsafe.Pointer(w)))
	}
}

// transpose turns whole square blocks in assembly, the edges in Go.
func transpose[F Float](dst []F, dstRow int, src []F, srcRow, rows, cols int) {
	lanes, size := lanes[F](), 32/lanes[F]()
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

// pack copies rows values of every column, one column after another, if they are as many
// as a tile has.
func pack[F Float](dst []F, rows int, src []F, stride int, columns []int) bool {
	if !vectorised {
		return packTwin(dst, rows, src, stride, columns)
	}
	size := 32 / lanes[F]()
	n, to, from, at := uintptr(len(columns)), bytesOf(dst), bytesOf(src), &columns[0]
	switch step := uintptr(stride * size); rows * size {
	case 96:
		pack96(n, to, from, step, at)
	case 48:
		pack48(n, to, from, step, at)
	case 24:
		pack24(n, to, from, step, at)
	default:
		return false
	}
	return true
}

func bytesOf[F Float](x []F) *byte { return (*byte)(unsafe.Pointer(unsafe.SliceData(x))) }
