package kernel

// tiling is the size of the largest tile: two vectors wide, or one if that is all there
// is, and as high as the registers allow.
type tiling struct {
	wide       bool // vectors of 64 bytes
	rows, cols int
}

// tilesFor is the tiling of a product of n columns. Vectors of 64 bytes are worth it
// for more columns than half of one; the twin works in any.
func tilesFor[F Float](n int) tiling {
	switch {
	case n <= lanes[F]():
		return tiling{false, 12, lanes[F]()}
	case wide:
		return tiling{true, 12, 4 * lanes[F]()}
	}
	return tiling{false, 6, 2 * lanes[F]()}
}

// tileWork is one tile of C, of a tiling's size at most: C (+)= alpha*A*B. The
// sum runs over segments of k steps; after a segment A moves on by segStep,
// which lets a convolution walk down the rows of an image. Strides count values.
type tileWork[F Float] struct {
	wide        bool
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

// maxSteps bounds the steps of one tile: at most twelve cycles each, some microseconds.
const maxSteps = 4096

// nextRows is the height of the next tile when left rows are to be done: the highest, and
// the last two of nearly the same height, for a low tile wastes time. Where already the
// highest are low, all are of nearly the same height.
func (t tiling) nextRows(left int) int {
	switch {
	case left <= t.rows:
		return left
	case left < 2*t.rows:
		return (left + 1) / 2
	case t.rows > 6:
		return t.rows
	}
	tiles := (left + t.rows - 1) / t.rows
	return (left + tiles - 1) / tiles
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
