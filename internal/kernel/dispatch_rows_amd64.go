//go:build amd64 && !purego

package kernel

func addToRows[F Float](x, bias []F) {
	cols := len(bias)
	if !vectorised || cols == 0 || len(x) == 0 {
		addToRowsTwin(x, bias)
		return
	}
	rows := uintptr(len(x) / cols)
	lanes := lanes[F]()
	stride := uintptr(cols * 32 / lanes)
	for j := 0; j < cols; {
		from, with := x[j:], bias[j:]
		tail := uintptr(min(lanes, cols-j))
		switch whole := cols-j >= 4*lanes; {
		case whole && isSingle[F]():
			addToRows4F32(rows, f32(from), stride, f32(with))
		case whole:
			addToRows4F64(rows, f64(from), stride, f64(with))
		case isSingle[F]():
			addToRows1F32(rows, f32(from), stride, f32(with), tail)
		default:
			addToRows1F64(rows, f64(from), stride, f64(with), tail)
		}
		if cols-j >= 4*lanes {
			j += 4 * lanes
		} else {
			j += lanes
		}
	}
}

func addToRowsRelu[F Float](x, bias []F) {
	cols := len(bias)
	if !vectorised || cols == 0 || len(x) == 0 {
		addToRowsReluTwin(x, bias)
		return
	}
	rows := uintptr(len(x) / cols)
	lanes := lanes[F]()
	stride := uintptr(cols * 32 / lanes)
	for j := 0; j < cols; {
		from, with := x[j:], bias[j:]
		tail := uintptr(min(lanes, cols-j))
		switch whole := cols-j >= 4*lanes; {
		case whole && isSingle[F]():
			addToRowsRelu4F32(rows, f32(from), stride, f32(with))
		case whole:
			addToRowsRelu4F64(rows, f64(from), stride, f64(with))
		case isSingle[F]():
			addToRowsRelu1F32(rows, f32(from), stride, f32(with), tail)
		default:
			addToRowsRelu1F64(rows, f64(from), stride, f64(with), tail)
		}
		if cols-j >= 4*lanes {
			j += 4 * lanes
		} else {
			j += lanes
		}
	}
}

func sumRows[F Float](dst, x []F) {
	cols := len(dst)
	if !vectorised || cols == 0 || len(x) == 0 {
		sumRowsTwin(dst, x)
		return
	}
	rows := uintptr(len(x) / cols)
	lanes := lanes[F]()
	stride := uintptr(cols * 32 / lanes)
	for j := 0; j < cols; {
		from, with := x[j:], dst[j:]
		tail := uintptr(min(lanes, cols-j))
		switch whole := cols-j >= 4*lanes; {
		case whole && isSingle[F]():
			sumRows4F32(rows, f32(from), stride, f32(with))
		case whole:
			sumRows4F64(rows, f64(from), stride, f64(with))
		case isSingle[F]():
			sumRows1F32(rows, f32(from), stride, f32(with), tail)
		default:
			sumRows1F64(rows, f64(from), stride, f64(with), tail)
		}
		if cols-j >= 4*lanes {
			j += 4 * lanes
		} else {
			j += lanes
		}
	}
}

func sumProducts[F Float](dst, x, y []F) {
	cols := len(dst)
	if !vectorised || cols == 0 || len(x) == 0 {
		sumProductsTwin(dst, x, y)
		return
	}
	rows := uintptr(len(x) / cols)
	lanes := lanes[F]()
	stride := uintptr(cols * 32 / lanes)
	for j := 0; j < cols; {
		from, by, into := x[j:], y[j:], dst[j:]
		tail := uintptr(min(lanes, cols-j))
		switch whole := cols-j >= 4*lanes; {
		case whole && isSingle[F]():
			sumProducts4F32(rows, f32(from), stride, f32(by), f32(into))
		case whole:
			sumProducts4F64(rows, f64(from), stride, f64(by), f64(into))
		case isSingle[F]():
			sumProducts1F32(rows, f32(from), stride, f32(by), f32(into), tail)
		default:
			sumProducts1F64(rows, f64(from), stride, f64(by), f64(into), tail)
		}
		if cols-j >= 4*lanes {
			j += 4 * lanes
		} else {
			j += lanes
		}
	}
}

func affineRows[F Float](dst, x, factor, bias []F) {
	cols := len(bias)
	if !vectorised || cols == 0 || len(x) == 0 {
		affineRowsTwin(dst, x, factor, bias)
		return
	}
	rows := uintptr(len(x) / cols)
	lanes := lanes[F]()
	stride := uintptr(cols * 32 / lanes)
	for j := 0; j < cols; {
		from, into, by, with := x[j:], dst[j:], factor[j:], bias[j:]
		tail := uintptr(min(lanes, cols-j))
		switch whole := cols-j >= 4*lanes; {
		case whole && isSingle[F]():
			affineRows4F32(rows, f32(from), stride, f32(into), f32(by), f32(with))
		case whole:
			affineRows4F64(rows, f64(from), stride, f64(into), f64(by), f64(with))
		case isSingle[F]():
			affineRows1F32(rows, f32(from), stride, f32(into), f32(by), f32(with), tail)
		default:
			affineRows1F64(rows, f64(from), stride, f64(into), f64(by), f64(with), tail)
		}
		if cols-j >= 4*lanes {
			j += 4 * lanes
		} else {
			j += lanes
		}
	}
}

func normals32(dst []float32, sigma float32, words []uint32) {
	if !vectorised || len(dst) == 0 {
		normals32Twin(dst, sigma, words)
		return
	}
	normalsF32(uintptr(len(dst)/normalBlock32), sigma, &dst[0], &words[0])
}
