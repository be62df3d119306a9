package method

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/coterie-fl/coterie/fl/fltest"
	"github.com/coterie-fl/coterie/internal/rng"
)

// TestRelationsAgreeWithTheirDefinition: S = (W W')^(1/2)/trace, computed from either
// side, against a plain computation of all of it.
func TestRelationsAgreeWithTheirDefinition(t *testing.T) {
	run := fltest.Run("mocha")
	for _, silos := range []int{3, 12} { // fewer and more than parameters
		m := fltest.New(t, run, silos).Method().(*mocha)
		f := rng.NewFamily(3, "models")
		w := make([]float64, silos*m.n)
		for i := range w {
			w[i] = f.Stream(0, i).Normal()
		}
		related, diagonal := make([]float64, silos*m.n), make([]float64, silos)
		m.relate(related, diagonal, w)

		models := mat.NewDense(silos, m.n, slices.Clone(w))
		var gram mat.Dense
		gram.Mul(models, models.T())
		sym := mat.NewSymDense(silos, nil)
		for i := range silos {
			for j := i; j < silos; j++ {
				sym.SetSym(i, j, gram.At(i, j))
			}
		}
		var eigen mat.EigenSym
		if !eigen.Factorize(sym, true) {
			t.Fatal("no eigenvalues")
		}
		values := eigen.Values(nil)
		trace := 0.0
		for i, v := range values {
			values[i] = math.Sqrt(max(v, leastRelation))
			trace += values[i]
		}
		var vectors, s, want mat.Dense
		eigen.VectorsTo(&vectors)
		s.Mul(&vectors, mat.NewDiagDense(silos, values))
		s.Mul(&s, vectors.T())
		s.Scale(1/trace, &s)
		want.Mul(&s, models)
		for i := range silos {
			if math.Abs(diagonal[i]-s.At(i, i)) > 1e-9 {
				t.Errorf("%d silos: diagonal %d is %v, want %v", silos, i, diagonal[i], s.At(i, i))
			}
			for j := range m.n {
				if math.Abs(related[i*m.n+j]-want.At(i, j)) > 1e-9 {
					t.Errorf("%d silos: (S W)[%d][%d] is %v, want %v", silos, i, j, related[i*m.n+j], want.At(i, j))
				}
			}
		}
	}
}
