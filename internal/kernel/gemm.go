package kernel

import "fmt"

// Block sizes of the product: a panel of B (blockK x blockN) stays in the
// second-level cache, a block of A (blockM x blockK) next to it.
const (
	blockK = 256
	blockM = 168
	blockN = 1024
)

// lanes is the number of values in a vector of 32 bytes.
func lanes[F Float]() int {
	if isSingle[F]() {
		return 8
	}
	return 4
}

// tinyProduct is the number of multiplications up to which plain loops win.
const tinyProduct = 20

// AlikeFrom is how many rows a product must have at least for each of them to have the same bits
// whatever the others are, and however many: of a row-major matrix times one of any strides, into
// a row-major one, with columns times inner numbers as given. Fewer rows are added up in another
// order.
func AlikeFrom(columnsTimesInner int) int { return max(2, tinyProduct/max(1, columnsTimesInner)+1) }

// longDot is the length from which a row times a column is worth a call each.
const longDot = 128

// Gemm computes C = alpha*A*B + beta*C, for any transposition and strides of
// the three views. With beta = 0 C is overwritten and not read, with beta = 1
// it is added to; with alpha = 0, or nothing to sum over, A and B are not read.
// C must not overlap A or B, nor its own rows each other. The workspace may be
// nil: buffers are then allocated when they are needed.
func Gemm[F Float](alpha F, a, b Matrix[F], beta F, c Matrix[F], ws *Workspace[F]) {
	if a.Rows != c.Rows || b.Cols != c.Cols || a.Cols != b.Rows || !a.valid() || !b.valid() || !c.valid() {
		panicGemm(&a, &b, &c)
	}
	m, n, k := c.Rows, c.Cols, a.Cols
	if m == 0 || n == 0 {
		return
	}
	if k == 0 || alpha == 0 {
		scaleMatrix(beta, &c)
		return
	}
	if m*n*k <= tinyProduct {
		gemmTiny(alpha, &a, &b, beta, &c)
		return
	}
	if ws == nil {
		ws = new(Workspace[F])
	}
	// A product may be taken transposed: do so if that makes rows contiguous.
	if n == 1 && a.RowStride == 1 && c.RowStride == 1 || m == 1 && n > 1 && b.ColStride != 1 ||
		m > 1 && n > 1 && c.ColStride != 1 && c.RowStride == 1 {
		a, b, c = b.T(), a.T(), c.T()
		m, n = n, m
	}
	if n == 1 {
		b.ColStride, c.ColStride = 1, 1 // of one column it does not matter
		if k >= longDot && a.ColStride == 1 {
			gemmDots(alpha, &a, &b, beta, &c, ws)
			return
		}
	}
	if c.ColStride != 1 {
		dense := Dense(take(&ws.result, m*n), m, n)
		gemmBlocked(alpha, &a, &b, nil, &dense, false, ws)
		scaleMatrix(beta, &c)
		addMatrix(&dense, &c, beta == 0)
		return
	}
	if beta != 0 && beta != 1 {
		scaleMatrix(beta, &c)
	}
	gemmBlocked(alpha, &a, &b, nil, &c, beta != 0, ws)
}

// GemmOf adds A*B to C, of which the inner sums run over some columns of A and the
// rows of B with the same numbers alone, in their order: as Gemm does for matrices
// of these alone. C's rows are contiguous.
func GemmOf[F Float](a, b Matrix[F], inner []int, c Matrix[F], ws *Workspace[F]) {
	if a.Rows != c.Rows || b.Cols != c.Cols || a.Cols != b.Rows || !a.valid() || !b.valid() || !c.valid() || c.ColStride != 1 {
		panicGemm(&a, &b, &c)
	}
	for _, p := range inner {
		if p < 0 || p >= a.Cols {
			panic(fmt.Sprintf("kernel: GemmOf: column %d of %d", p, a.Cols))
		}
	}
	if c.Rows == 0 || c.Cols == 0 || len(inner) == 0 {
		return
	}
	gemmBlocked(1, &a, &b, inner, &c, true, ws)
}

func panicGemm[F Float](a, b, c *Matrix[F]) {
	describe := func(m *Matrix[F]) string {
		return fmt.Sprintf("%d x %d (strides %d, %d, data %d)", m.Rows, m.Cols, m.RowStride, m.ColStride, len(m.Data))
	}
	panic(fmt.Sprintf("kernel: Gemm: %s times %s into %s", describe(a), describe(b), describe(c)))
}

// scaleMatrix multiplies by beta; 0 overwrites whatever was there.
func scaleMatrix[F Float](beta F, c *Matrix[F]) {
	if beta == 1 {
		return
	}
	for i := range c.Rows {
		row := c.Data[i*c.RowStride:]
		switch {
		case c.ColStride == 1 && beta == 0:
			clear(row[:c.Cols])
		case c.ColStride == 1:
			Scale(row[:c.Cols], beta, row[:c.Cols])
		case beta == 0:
			for j := range c.Cols {
				row[j*c.ColStride] = 0
			}
		default:
			for j := range c.Cols {
				row[j*c.ColStride] *= beta
			}
		}
	}
}

// addMatrix adds a dense matrix to c, or overwrites c with it.
func addMatrix[F Float](dense, c *Matrix[F], overwrite bool) {
	for i := range c.Rows {
		row := c.Data[i*c.RowStride:]
		for j, v := range dense.Data[i*c.Cols : (i+1)*c.Cols] {
			if overwrite {
				row[j*c.ColStride] = v
			} else {
				row[j*c.ColStride] += v
			}
		}
	}
}

// gemmTiny is the definition.
func gemmTiny[F Float](alpha F, a, b *Matrix[F], beta F, c *Matrix[F]) {
	for i := range c.Rows {
		for j := range c.Cols {
			var s F
			at, bt := i*a.RowStride, j*b.ColStride
			for range a.Cols {
				s += a.Data[at] * b.Data[bt]
				at += a.ColStride
				bt += b.RowStride
			}
			to := &c.Data[i*c.RowStride+j*c.ColStride]
			if beta == 0 {
				*to = alpha * s
			} else {
				*to = alpha*s + beta*(*to)
			}
		}
	}
}

// gemmDots multiplies a matrix of contiguous rows by a column.
func gemmDots[F Float](alpha F, a, b *Matrix[F], beta F, c *Matrix[F], ws *Workspace[F]) {
	k := a.Cols
	column := b.Data
	if b.RowStride != 1 {
		column = take(&ws.b, k)
		for p := range column {
			column[p] = b.Data[p*b.RowStride]
		}
	}
	for i := range c.Rows {
		s := alpha * F(Dot(a.Data[i*a.RowStride:][:k], column[:k]))
		if to := &c.Data[i*c.RowStride]; beta == 0 {
			*to = s
		} else {
			*to = s + beta*(*to)
		}
	}
}

// gemmBlocked adds alpha*A*B to C, or overwrites C; rows of C are contiguous.
// The inner dimension is cut into blocks that are added in order. B is packed
// into panels as wide as a tile when its rows are not contiguous or when many
// rows of A use it; A is packed when its rows are not contiguous and many tiles
// use it. Both are where only some inner numbers count; nil: all do.
func gemmBlocked[F Float](alpha F, a, b *Matrix[F], inner []int, c *Matrix[F], add bool, ws *Workspace[F]) {
	m, n, k := c.Rows, c.Cols, a.Cols
	if inner != nil {
		k = len(inner)
	}
	tiles := tilesFor[F](n)
	cols := tiles.cols
	packB := inner != nil || b.ColStride != 1 || (m > 36 && n > 8*lanes[F]())
	packA := inner != nil || a.ColStride != 1 && n > 16*lanes[F]() && m > tiles.rows
	for jc := 0; jc < n; jc += blockN {
		nc := min(blockN, n-jc)
		for pc := 0; pc < k; pc += blockK {
			kc := min(blockK, k-pc)
			add := add || pc > 0
			if packA || packB {
				ws.number(inner, pc, kc)
			}
			var panel []F
			if packB {
				panel = take(&ws.b, kc*((nc+cols-1)/cols*cols))
				packPanels(panel, cols, b, ws.inner[:kc], jc, nc)
			}
			for ic := 0; ic < m; ic += blockM {
				mc := min(blockM, m-ic)
				var block []F
				if packA {
					block = take(&ws.a, kc*mc)
					packRows(block, tiles, a, ws.inner[:kc], ic, mc)
				}
				for jr := 0; jr < nc; jr += cols {
					w := tileWork[F]{wide: tiles.wide, cols: min(cols, nc-jr), segments: 1, k: kc, cRow: c.RowStride, alpha: alpha, add: add}
					if packB {
						w.b, w.bRow = panel[jr*kc:], cols
					} else {
						w.b, w.bRow = b.Data[pc*b.RowStride+jc+jr:], b.RowStride
					}
					for ir := 0; ir < mc; ir += w.rows {
						w.rows = tiles.nextRows(mc - ir)
						if packA {
							w.a, w.aRow, w.aCol = block[ir*kc:], 1, w.rows
						} else {
							w.a, w.aRow, w.aCol = a.Data[(ic+ir)*a.RowStride+pc*a.ColStride:], a.RowStride, a.ColStride
						}
						w.c = c.Data[(ic+ir)*c.RowStride+jc+jr:]
						tile(&w)
					}
				}
			}
		}
	}
}
