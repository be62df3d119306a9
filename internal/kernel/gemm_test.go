package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// drawMatrix lays a rows x cols matrix out at random: by rows, by columns, or
// with gaps in both directions.
func drawMatrix[F Float](t *rapid.T, a *arena[F], r *rand.Rand, rows, cols int, name string) Matrix[F] {
	m := Matrix[F]{Rows: rows, Cols: cols}
	gap := rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(t, name+" gap")
	switch rapid.IntRange(0, 3).Draw(t, name+" layout") {
	case 0, 1:
		m.RowStride, m.ColStride = cols+gap, 1
	case 2:
		m.RowStride, m.ColStride = 1, rows+gap
	case 3:
		m.RowStride, m.ColStride = 2*cols+gap, 2
	}
	n := 0
	if rows > 0 && cols > 0 {
		n = (rows-1)*m.RowStride + (cols-1)*m.ColStride + 1
	}
	m.Data = a.normal(r, n)
	return m
}

func at[F Float](m Matrix[F], i, j int) float64 { return float64(m.Data[i*m.RowStride+j*m.ColStride]) }

// dimension draws sizes around tiles, blocks and nothing.
var dimension = rapid.OneOf(rapid.IntRange(0, 8), rapid.IntRange(9, 40), rapid.SampledFrom([]int{1, 1, 169, blockK + 1}))

func TestGemm(t *testing.T) {
	t.Run("float32", testGemm[float32])
	t.Run("float64", testGemm[float64])
}

func testGemm[F Float](t *testing.T) {
	var ar arena[F]
	var ws Workspace[F]
	check(t, func(t *rapid.T) {
		defer ar.reset()
		m, n, k := dimension.Draw(t, "m"), dimension.Draw(t, "n"), dimension.Draw(t, "k")
		if m*n*k > 1<<19 {
			m = min(m, 9)
		}
		r := source(t)
		a, b, c := drawMatrix(t, &ar, r, m, k, "a"), drawMatrix(t, &ar, r, k, n, "b"), drawMatrix(t, &ar, r, m, n, "c")
		alpha := rapid.SampledFrom([]F{1, 1, -0.5, 0, 3}).Draw(t, "alpha")
		beta := rapid.SampledFrom([]F{0, 1, 0.25}).Draw(t, "beta")
		before := append([]F(nil), c.Data...)
		inside := make([]bool, len(c.Data))
		w := &ws
		if rapid.IntRange(0, 3).Draw(t, "workspace") == 0 {
			w = nil
		}
		if beta == 0 { // must not be read
			for i := range m {
				for j := range n {
					c.Data[i*c.RowStride+j*c.ColStride] = F(math.NaN())
				}
			}
		}
		Gemm(alpha, a, b, beta, c, w)
		for i := range m {
			for j := range n {
				to := i*c.RowStride + j*c.ColStride
				inside[to] = true
				sum, size := 0.0, 0.0
				for p := range k {
					v := at(a, i, p) * at(b, p, j)
					sum += v
					size += math.Abs(v)
				}
				want := float64(alpha) * sum
				size *= math.Abs(float64(alpha))
				if beta != 0 {
					want += float64(beta) * float64(before[to])
					size += math.Abs(float64(beta) * float64(before[to]))
				}
				if got := float64(c.Data[to]); !(math.Abs(got-want) <= float64(k+4)*epsilon[F]()*size) {
					t.Fatalf("(%d, %d) of %d x %d x %d, alpha %v, beta %v: %v, want %v", i, j, m, k, n, alpha, beta, got, want)
				}
			}
		}
		for i, v := range c.Data {
			if !inside[i] && v != before[i] {
				t.Fatalf("element %d of the gaps was overwritten", i)
			}
		}
		ar.done(t)
	})
}

// TestGemmOf: the product of some columns, in any order, has the bits of the product of a
// matrix that is made of them.
func TestGemmOf(t *testing.T) {
	t.Run("float32", testGemmOf[float32])
	t.Run("float64", testGemmOf[float64])
}

func testGemmOf[F Float](t *testing.T) {
	var ar arena[F]
	var ws Workspace[F]
	size := rapid.OneOf(rapid.IntRange(2, 40), rapid.SampledFrom([]int{169, blockK + 1}))
	check(t, func(t *rapid.T) {
		defer ar.reset()
		m, n, all, k := size.Draw(t, "m"), size.Draw(t, "n"), size.Draw(t, "columns"), size.Draw(t, "k")
		if m*n*k > 1<<19 {
			m = 9
		}
		r := source(t)
		a, b := drawMatrix(t, &ar, r, m, all, "a"), drawMatrix(t, &ar, r, all, n, "b")
		c, want := Dense(ar.normal(r, m*n), m, n), Dense(ar.make(m*n), m, n)
		copy(want.Data, c.Data)
		inner, ofA, ofB := make([]int, k), Dense(make([]F, m*k), m, k), Dense(make([]F, k*n), k, n)
		for p := range inner {
			inner[p] = r.IntN(all)
			for i := range m {
				ofA.Data[i*k+p] = a.Data[i*a.RowStride+inner[p]*a.ColStride]
			}
			for j := range n {
				ofB.Data[p*n+j] = b.Data[inner[p]*b.RowStride+j*b.ColStride]
			}
		}
		Gemm(1, ofA, ofB, 1, want, nil)
		GemmOf(a, b, inner, c, &ws)
		for i, v := range c.Data {
			if m*n*k > tinyProduct && v != want.Data[i] {
				t.Fatalf("element %d of %d x %d x %d: %v, want %v", i, m, k, n, v, want.Data[i])
			}
		}
		ar.done(t)
	})
	a, b, c := Dense(make([]F, 6), 2, 3), Dense(make([]F, 6), 3, 2), Dense(make([]F, 4), 2, 2)
	mustPanic(t, "a number that is not there", func() { GemmOf(a, b, []int{0, 3}, c, &ws) })
	mustPanic(t, "shapes", func() { GemmOf(a, a, []int{0}, c, &ws) })
}

// TestGemmSpecials: NaN and infinities reach the rows and columns that they
// belong to and no others.
func TestGemmSpecials(t *testing.T) {
	t.Run("float32", testGemmSpecials[float32])
	t.Run("float64", testGemmSpecials[float64])
}

func testGemmSpecials[F Float](t *testing.T) {
	check(t, func(t *rapid.T) {
		m, n, k := rapid.IntRange(1, 20).Draw(t, "m"), rapid.IntRange(1, 40).Draw(t, "n"), rapid.IntRange(1, 20).Draw(t, "k")
		a, b, c := Dense(make([]F, m*k), m, k), Dense(make([]F, k*n), k, n), Dense(make([]F, m*n), m, n)
		for i := range a.Data {
			a.Data[i] = 1
		}
		for i := range b.Data {
			b.Data[i] = 1
		}
		row, col := rapid.IntRange(0, m-1).Draw(t, "row"), rapid.IntRange(0, n-1).Draw(t, "col")
		a.Data[row*k+k/2] = F(math.Inf(1))
		b.Data[k/2*n+col] = F(math.NaN())
		Gemm(1, a, b, 0, c, nil)
		for i := range m {
			for j := range n {
				v := float64(c.Data[i*n+j])
				switch {
				case j == col && !math.IsNaN(v), j != col && i == row && !math.IsInf(v, 1), j != col && i != row && v != float64(k):
					t.Fatalf("(%d, %d) of %d x %d: %v with Inf in row %d and NaN in column %d", i, j, m, n, v, row, col)
				}
			}
		}
	})
}

// TestRowsDoNotDependOnEachOther: callers may cut a product into blocks of
// rows without changing a bit, as long as the blocks are not tiny.
func TestRowsDoNotDependOnEachOther(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, s := range [][3]int{{100, 700, 40}, {37, 128, 300}, {64, 300, 10}} {
		m, k, n := s[0], s[1], s[2]
		a, b := make([]float32, m*k), make([]float32, k*n)
		for i := range a {
			a[i] = float32(r.NormFloat64())
		}
		for i := range b {
			b[i] = float32(r.NormFloat64())
		}
		whole, parts := make([]float32, m*n), make([]float32, m*n)
		Gemm(1, Dense(a, m, k), Dense(b, k, n), 0, Dense(whole, m, n), nil)
		for lo := 0; lo < m; lo += 10 {
			hi := min(lo+10, m)
			Gemm(1, Dense(a[lo*k:], hi-lo, k), Dense(b, k, n), 0, Dense(parts[lo*n:], hi-lo, n), nil)
		}
		for i := range whole {
			if whole[i] != parts[i] {
				t.Fatalf("%v: element %d is %v in one call, %v in blocks", s, i, whole[i], parts[i])
			}
		}
	}
}

func TestTranspose(t *testing.T) {
	t.Run("float32", testTranspose[float32])
	t.Run("float64", testTranspose[float64])
}

func testTranspose[F Float](t *testing.T) {
	var a arena[F]
	size := rapid.OneOf(rapid.IntRange(0, 40), rapid.SampledFrom([]int{chunk/16 + 3}))
	check(t, func(t *rapid.T) {
		defer a.reset()
		rows, cols := size.Draw(t, "rows"), size.Draw(t, "cols")
		x, dst := a.normal(source(t), rows*cols), a.make(rows*cols)
		Transpose(dst, x, rows, cols)
		for i := range rows {
			for j := range cols {
				if dst[j*rows+i] != x[i*cols+j] {
					t.Fatalf("(%d, %d) of %d x %d is wrong", i, j, rows, cols)
				}
			}
		}
		a.done(t)
	})
}

func TestNoAllocationInSteadyState(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	x := make([]float32, 64*200)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	var ws Workspace[float32]
	out := make([]float32, 64*64)
	g := Conv{10, 10, 4, 20, 3, 3, 1, 1, 1, 1, 0, 0}
	y, dw := make([]float32, g.OutLen()), make([]float32, g.FilterLen())
	work := func() {
		Gemm(1, Dense(x, 64, 200), Dense(x, 64, 200).T(), 0, Dense(out, 64, 64), &ws)
		Gemm(1, Dense(x, 2, 3), Dense(x, 3, 2), 0, Dense(out, 2, 2), nil)
		ConvForward(g, x[:g.InLen()], x[:g.FilterLen()], y, &ws)
		ConvWeightGrad(g, x[:g.InLen()], y, dw, false, &ws)
		MaxPool(Pool{10, 10, 20, 2, 2, 2, 2, 0, 0}, y, x[:500])
	}
	if n := testing.AllocsPerRun(20, work); n != 0 {
		t.Errorf("%v allocations a round, want none", n)
	}
}
