package kernel

// Matrix is a view of a slice: element (i, j) is Data[i*RowStride+j*ColStride].
// Strides are not negative; a zero stride repeats a row or column of a factor.
type Matrix[F Float] struct {
	Data                 []F
	Rows, Cols           int
	RowStride, ColStride int
}

// Dense is the view of a slice that holds rows one after another.
func Dense[F Float](data []F, rows, cols int) Matrix[F] {
	return Matrix[F]{data, rows, cols, cols, 1}
}

// T is the transposed view.
func (m Matrix[F]) T() Matrix[F] {
	return Matrix[F]{m.Data, m.Cols, m.Rows, m.ColStride, m.RowStride}
}

// valid: no element lies outside the data.
func (m *Matrix[F]) valid() bool {
	if m.Rows < 0 || m.Cols < 0 || m.RowStride < 0 || m.ColStride < 0 {
		return false
	}
	return m.Rows == 0 || m.Cols == 0 || (m.Rows-1)*m.RowStride+(m.Cols-1)*m.ColStride < len(m.Data)
}

// Workspace keeps the buffers of products and convolutions between calls, so
// that they allocate nothing once it has grown. The zero value is ready. One
// goroutine at a time may use it.
type Workspace[F Float] struct {
	a, b, result, padded []F
	inner                [blockK]int // numbers of a block of the inner dimension
}

// number sets inner to the numbers from pc on, of some or, without them, of all.
func (ws *Workspace[F]) number(some []int, pc, kc int) {
	if some != nil {
		copy(ws.inner[:kc], some[pc:])
		return
	}
	for p := range kc {
		ws.inner[p] = pc + p
	}
}

// take is a buffer's first n values, grown if need be; they are not cleared.
func take[F Float](buffer *[]F, n int) []F {
	if cap(*buffer) < n {
		*buffer = make([]F, n)
	}
	return (*buffer)[:n]
}

// Transpose writes the transpose of x, rows by cols, to dst.
func Transpose[F Float](dst, x []F, rows, cols int) {
	checkLength("Transpose", len(x), rows*cols)
	checkLength("Transpose", len(dst), rows*cols)
	transposeInto(dst, rows, x, cols, rows, cols)
}

// transposeInto writes dst[j*dstRow+i] = src[i*srcRow+j].
func transposeInto[F Float](dst []F, dstRow int, src []F, srcRow, rows, cols int) {
	const lines = 16 // rows at a time: the lines that they write stay in the cache
	for lo := 0; lo < rows; lo += lines {
		hi := min(lo+lines, rows)
		for at := 0; at < cols; at += chunk / lines {
			n := min(chunk/lines, cols-at)
			transpose(dst[at*dstRow+lo:], dstRow, src[lo*srcRow+at:], srcRow, hi-lo, n)
		}
	}
}

func transposeTwin[F Float](dst []F, dstRow int, src []F, srcRow, rows, cols int) {
	for i := range rows {
		to := dst[i:]
		for j, v := range src[i*srcRow : i*srcRow+cols] {
			to[j*dstRow] = v
		}
	}
}
