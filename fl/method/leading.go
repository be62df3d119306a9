package method

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/lapack/gonum"

	"github.com/coterie-fl/coterie/internal/kernel"
	"github.com/coterie-fl/coterie/internal/rng"
)

// leading are the k largest eigenvalues of a symmetric matrix, the largest first, and their
// eigenvectors, one after another. The matrix, row by row, is overwritten. A library that
// finds all eigenvectors takes many times as long where a few of many are wanted: the
// matrix is brought to three diagonals by reflections, whose eigenvalues alone are cheap,
// and inverse iteration finds the vectors of the few.
func leading(a []float64, d, k int) (values, vectors []float64, err error) {
	diagonal, beside, mirrors := tridiagonal(a, d)
	t := bands{diagonal, beside}
	all := slices.Clone(diagonal)
	if !(gonum.Implementation{}).Dsterf(d, all, slices.Clone(beside)) {
		return nil, nil, fmt.Errorf("the eigenvalues of a matrix of %d rows cannot be found", d)
	}
	norm := max(math.Abs(all[0]), math.Abs(all[d-1]))
	if norm < 0x1p-500 { // as good as nothing: any directions will do
		norm = 1
	}
	family := rng.NewFamily(0, "start of an inverse iteration")
	for i := range k {
		values = append(values, all[d-1-i])
		v, err := t.vector(values[i], norm, vectors, family.Stream(0, i))
		if err != nil {
			return nil, nil, fmt.Errorf("eigenvector %d of a matrix of %d rows: %w", i+1, d, err)
		}
		vectors = append(vectors, v...)
	}
	for i := range k {
		v := vectors[i*d : (i+1)*d]
		for j := d - 3; j >= 0; j-- {
			if m := mirrors[j]; m != nil {
				kernel.Axpy(-2*kernel.Dot(m, v[j+1:]), m, v[j+1:])
			}
		}
	}
	return values, vectors, nil
}

// tridiagonal brings a symmetric matrix to three diagonals (Householder): the middle one,
// those beside it, and the unit vectors of the reflections, of which the j-th leaves the
// first j+1 coordinates as they are; nil: it leaves all.
func tridiagonal(a []float64, d int) (diagonal, beside []float64, mirrors [][]float64) {
	diagonal, beside, mirrors = make([]float64, d), make([]float64, max(0, d-1)), make([][]float64, max(0, d-2))
	image := make([]float64, d)
	for j := range d {
		diagonal[j] = a[j*d+j]
		if j == d-1 {
			break
		}
		m := a[j*d+j+1 : (j+1)*d] // the row beside the diagonal, which is the column below it
		if j == d-2 {
			beside[j] = m[0]
			continue
		}
		length := math.Sqrt(kernel.Dot(m, m))
		beside[j] = length
		if kernel.Dot(m[1:], m[1:]) == 0 {
			beside[j] = m[0]
			continue
		}
		if m[0] > 0 {
			beside[j] = -length
		}
		m[0] -= beside[j]
		kernel.Scale(m, 1/math.Sqrt(kernel.Dot(m, m)), m)
		mirrors[j] = m
		// With w = B m and s = m*w, B becomes B - 2(m w' + w m') + 4 s m m'.
		w := image[:len(m)]
		for i := range w {
			w[i] = kernel.Dot(a[(j+1+i)*d+j+1:(j+2+i)*d], m)
		}
		kernel.Axpy(-kernel.Dot(m, w), m, w)
		for i := range w {
			row := a[(j+1+i)*d+j+1 : (j+2+i)*d]
			kernel.Axpy(-2*m[i], w, row)
			kernel.Axpy(-2*w[i], m, row)
		}
	}
	return diagonal, beside, mirrors
}

// bands is a symmetric matrix of three diagonals.
type bands struct{ diagonal, beside []float64 }

// mostStarts is from how many random vectors inverse iteration begins at most.
const mostStarts = 5

// vector is an eigenvector of an eigenvalue, of length 1 and at right angles to those that
// were found.
func (t bands) vector(value, norm float64, found []float64, src *rng.Stream) ([]float64, error) {
	d := len(t.diagonal)
	for start := range mostStarts {
		v := make([]float64, d)
		for i := range v {
			v[i] = src.Normal()
		}
		// Equal eigenvalues are told apart by nothing but the start; an exact one would
		// divide by 0.
		lu := t.factor(value+float64(start+1)*norm*0x1p-50, norm)
		kept := true
		for range 4 {
			lu.solve(v)
			for range 2 { // once is not enough if little is left
				for at := 0; at < len(found); at += d {
					kernel.Axpy(-kernel.Dot(found[at:at+d], v), found[at:at+d], v)
				}
			}
			length := math.Sqrt(kernel.Dot(v, v))
			if kept = length > 0 && !math.IsInf(length, 0); !kept {
				break
			}
			kernel.Scale(v, 1/length, v)
		}
		if kept && t.residual(v, value) <= 1e-11*norm {
			return v, nil
		}
	}
	return nil, fmt.Errorf("inverse iteration does not find one of eigenvalue %v", value)
}

// residual is how far the matrix turns a vector away from its eigenvalue.
func (t bands) residual(v []float64, value float64) float64 {
	sum := 0.0
	for i := range v {
		r := (t.diagonal[i] - value) * v[i]
		if i > 0 {
			r += t.beside[i-1] * v[i-1]
		}
		if i < len(v)-1 {
			r += t.beside[i] * v[i+1]
		}
		sum += r * r
	}
	return math.Sqrt(sum)
}

// factored is a matrix of three diagonals less a multiple of the identity, as a product of
// triangles with exchanged rows.
type factored struct {
	low, main, up, far []float64
	exchanged          []bool
}

// factor eliminates what is below the diagonal; a pivot of 0 becomes the least that norm
// lets matter.
func (t bands) factor(shift, norm float64) factored {
	d := len(t.diagonal)
	f := factored{make([]float64, d), make([]float64, d), make([]float64, d), make([]float64, d), make([]bool, d)}
	least := norm * 0x1p-52
	main, up := t.diagonal[0]-shift, 0.0
	if d > 1 {
		up = t.beside[0]
	}
	for i := range d {
		if i == d-1 {
			f.main[i] = main
		} else {
			below, next, after := t.beside[i], t.diagonal[i+1]-shift, 0.0
			if i+2 < d {
				after = t.beside[i+1]
			}
			if math.Abs(below) > math.Abs(main) {
				f.exchanged[i] = true
				f.main[i], f.up[i], f.far[i] = below, next, after
				f.low[i] = main / below
				main, up = up-f.low[i]*next, -f.low[i]*after
			} else {
				if math.Abs(main) < least {
					main = math.Copysign(least, main)
				}
				f.main[i], f.up[i] = main, up
				f.low[i] = below / main
				main, up = next-f.low[i]*up, after
			}
		}
		if math.Abs(f.main[i]) < least {
			f.main[i] = math.Copysign(least, f.main[i])
		}
	}
	return f
}

// solve replaces v by what the matrix makes of it backwards.
func (f factored) solve(v []float64) {
	d := len(v)
	for i := range d - 1 {
		if f.exchanged[i] {
			v[i], v[i+1] = v[i+1], v[i]
		}
		v[i+1] -= f.low[i] * v[i]
	}
	for i := d - 1; i >= 0; i-- {
		if i+1 < d {
			v[i] -= f.up[i] * v[i+1]
		}
		if i+2 < d {
			v[i] -= f.far[i] * v[i+2]
		}
		v[i] /= f.main[i]
	}
}
