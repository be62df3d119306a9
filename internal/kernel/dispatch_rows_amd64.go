//go:build amd64 && !purego

package kernel

// strip is a group of columns that one call into assembly takes through all rows: four
// registers wide while so many columns are left, then one register, the last of them in
// part.
type strip[F Float] struct {
	at, cols     int // the first of its columns, of so many
	rows, stride uintptr
	tail         uintptr // columns in a strip of one register
	wide         bool
	next         int
}

// stripsOf is the walk over all columns; enter makes each strip in turn.
func stripsOf[F Float](x []F, cols int) strip[F] {
	return strip[F]{cols: cols, rows: uintptr(len(x) / cols), stride: uintptr(cols * 32 / lanes[F]())}
}

// enter goes on to the next strip; it is false behind the last one.
func (s *strip[F]) enter() bool {
	lanes := lanes[F]()
	s.at = s.next
	left := s.cols - s.at
	s.wide, s.tail = left >= 4*lanes, uintptr(min(lanes, left))
	s.next += lanes
	if s.wide {
		s.next += 3 * lanes
	}
	return left > 0
}

func addToRows[F Float](x, bias []F) {
	cols := len(bias)
	if !vectorised || cols == 0 || len(x) == 0 {
		addToRowsTwin(x, bias)
		return
	}
	for s := stripsOf(x, cols); s.enter(); {
		from, with := x[s.at:], bias[s.at:]
		switch {
		case s.wide && isSingle[F]():
			addToRows4F32(s.rows, f32(from), s.stride, f32(with))
		case s.wide:
			addToRows4F64(s.rows, f64(from), s.stride, f64(with))
		case isSingle[F]():
			addToRows1F32(s.rows, f32(from), s.stride, f32(with), s.tail)
		default:
			addToRows1F64(s.rows, f64(from), s.stride, f64(with), s.tail)
		}
	}
}

func addToRowsRelu[F Float](x, bias []F) {
	cols := len(bias)
	if !vectorised || cols == 0 || len(x) == 0 {
		addToRowsReluTwin(x, bias)
		return
	}
	for s := stripsOf(x, cols); s.enter(); {
		from, with := x[s.at:], bias[s.at:]
		switch {
		case s.wide && isSingle[F]():
			addToRowsRelu4F32(s.rows, f32(from), s.stride, f32(with))
		case s.wide:
			addToRowsRelu4F64(s.rows, f64(from), s.stride, f64(with))
		case isSingle[F]():
			addToRowsRelu1F32(s.rows, f32(from), s.stride, f32(with), s.tail)
		default:
			addToRowsRelu1F64(s.rows, f64(from), s.stride, f64(with), s.tail)
		}
	}
}

func sumRows[F Float](dst, x []F) {
	cols := len(dst)
	if !vectorised || cols == 0 || len(x) == 0 {
		sumRowsTwin(dst, x)
		return
	}
	for s := stripsOf(x, cols); s.enter(); {
		from, with := x[s.at:], dst[s.at:]
		switch {
		case s.wide && isSingle[F]():
			sumRows4F32(s.rows, f32(from), s.stride, f32(with))
		case s.wide:
			sumRows4F64(s.rows, f64(from), s.stride, f64(with))
		case isSingle[F]():
			sumRows1F32(s.rows, f32(from), s.stride, f32(with), s.tail)
		default:
			sumRows1F64(s.rows, f64(from), s.stride, f64(with), s.tail)
		}
	}
}

func sumProducts[F Float](dst, x, y []F) {
	cols := len(dst)
	if !vectorised || cols == 0 || len(x) == 0 {
		sumProductsTwin(dst, x, y)
		return
	}
	for s := stripsOf(x, cols); s.enter(); {
		from, by, into := x[s.at:], y[s.at:], dst[s.at:]
		switch {
		case s.wide && isSingle[F]():
			sumProducts4F32(s.rows, f32(from), s.stride, f32(by), f32(into))
		case s.wide:
			sumProducts4F64(s.rows, f64(from), s.stride, f64(by), f64(into))
		case isSingle[F]():
			sumProducts1F32(s.rows, f32(from), s.stride, f32(by), f32(into), s.tail)
		default:
			sumProducts1F64(s.rows, f64(from), s.stride, f64(by), f64(into), s.tail)
		}
	}
}

func affineRows[F Float](dst, x, factor, bias []F) {
	cols := len(bias)
	if !vectorised || cols == 0 || len(x) == 0 {
		affineRowsTwin(dst, x, factor, bias)
		return
	}
	for s := stripsOf(x, cols); s.enter(); {
		from, into, by, with := x[s.at:], dst[s.at:], factor[s.at:], bias[s.at:]
		switch {
		case s.wide && isSingle[F]():
			affineRows4F32(s.rows, f32(from), s.stride, f32(into), f32(by), f32(with))
		case s.wide:
			affineRows4F64(s.rows, f64(from), s.stride, f64(into), f64(by), f64(with))
		case isSingle[F]():
			affineRows1F32(s.rows, f32(from), s.stride, f32(into), f32(by), f32(with), s.tail)
		default:
			affineRows1F64(s.rows, f64(from), s.stride, f64(into), f64(by), f64(with), s.tail)
		}
	}
}

func normals32(dst []float32, sigma float32, words []byte) {
	if !vectorised || len(dst) == 0 {
		normals32Twin(dst, sigma, words)
		return
	}
	normalsF32(uintptr(len(dst)/normalBlock32), sigma, &dst[0], &words[0])
}

func narrow(dst []float32, x []float64) {
	whole := 0
	if blocks := len(x) / conversionBlock; vectorised && blocks > 0 {
		whole = blocks * conversionBlock
		narrowF64(uintptr(blocks), &dst[0], &x[0])
	}
	narrowTwin(dst[whole:], x[whole:])
}

func addSingle(x []float32, y []float64) {
	whole := 0
	if blocks := len(x) / conversionBlock; vectorised && blocks > 0 {
		whole = blocks * conversionBlock
		addSingleF64(uintptr(blocks), &x[0], &y[0])
	}
	addSingleTwin(x[whole:], y[whole:])
}

func addTruncated[F Float](factor float64, x []F, y []float64) {
	whole := 0
	if blocks := len(x) / conversionBlock; vectorised && blocks > 0 {
		whole = blocks * conversionBlock
		if isSingle[F]() {
			addTruncatedF32(uintptr(blocks), factor, f32(x), &y[0])
		} else {
			addTruncatedF64(uintptr(blocks), factor, f64(x), &y[0])
		}
	}
	addTruncatedTwin(factor, x[whole:], y[whole:])
}

func addTruncatedProducts[F Float](acc []float64, x []F, d []float64, rows int) {
	if !vectorised {
		addTruncatedProductsTwin(acc, x, d, rows)
		return
	}
	high, wide := len(x)/rows, len(d)/rows
	n, xRow, dRow := uintptr(rows), uintptr(high*32/lanes[F]()), uintptr(wide*8)
	for at, next := 0, 0; at < wide; at = next {
		vectors := 1
		switch left := wide - at; {
		case left >= 32:
			vectors = 8
		case left >= 16:
			vectors = 4
		}
		next = at + 4*vectors
		tail := uintptr(min(4, wide-at))
		for i := range high {
			from, by, to := x[i:], &d[at], &acc[i*wide+at]
			switch {
			case vectors == 8 && isSingle[F]():
				truncatedProducts8F32(n, f32(from), xRow, by, dRow, to)
			case vectors == 8:
				truncatedProducts8F64(n, f64(from), xRow, by, dRow, to)
			case vectors == 4 && isSingle[F]():
				truncatedProducts4F32(n, f32(from), xRow, by, dRow, to)
			case vectors == 4:
				truncatedProducts4F64(n, f64(from), xRow, by, dRow, to)
			case isSingle[F]():
				truncatedProducts1F32(n, f32(from), xRow, by, dRow, to, tail)
			default:
				truncatedProducts1F64(n, f64(from), xRow, by, dRow, to, tail)
			}
		}
	}
}
