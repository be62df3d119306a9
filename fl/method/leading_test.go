package method

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// TestLeadingAgreesWithTheLibrary: eigenvalues are those that a library finds, vectors are
// at right angles and of length 1, and the matrix only stretches them; of matrices whose
// eigenvalues are equal, zero, or in pieces that do not touch, too.
func TestLeadingAgreesWithTheLibrary(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 2))
	noise := func(d int) []float64 {
		a := make([]float64, d*d)
		for i := range d {
			for j := i; j < d; j++ {
				a[i*d+j] = source.NormFloat64()
				a[j*d+i] = a[i*d+j]
			}
		}
		return a
	}
	few := func(d, rank int) []float64 { // of a few rows
		a := make([]float64, d*d)
		for range rank {
			x := make([]float64, d)
			for i := range x {
				if i%3 > 0 { // some features are always 0
					x[i] = source.NormFloat64()
				}
			}
			for i := range d {
				for j := range d {
					a[i*d+j] += x[i] * x[j]
				}
			}
		}
		return a
	}
	identity := func(d int) []float64 {
		a := make([]float64, d*d)
		for i := range d {
			a[i*d+i] = 3
		}
		return a
	}
	blocks := identity(12)
	blocks[1], blocks[12] = 1, 1
	blocks[5*12+9], blocks[9*12+5] = -1, -1
	graded := noise(30)
	for i := range 30 {
		for j := range 30 {
			graded[i*30+j] *= math.Pow(10, -float64(i+j)/4)
		}
	}
	huge := noise(8)
	for i := range huge {
		huge[i] *= 1e12
	}
	for name, c := range map[string]struct {
		a []float64
		d int
	}{
		"one": {[]float64{-2}, 1}, "two": {[]float64{1, 2, 2, -3}, 2}, "three": {noise(3), 3}, "noise": {noise(60), 60}, "of few rows": {few(50, 7), 50},
		"identity": {identity(20), 20}, "zero": {make([]float64, 25), 5}, "blocks": {blocks, 12}, "graded": {graded, 30}, "huge": {huge, 8},
	} {
		d := c.d
		for _, k := range []int{1, (d + 1) / 2, d} {
			values, vectors, err := leading(slices.Clone(c.a), d, k)
			if err != nil {
				t.Errorf("%s, %d of %d: %v", name, k, d, err)
				continue
			}
			var eigen mat.EigenSym
			if !eigen.Factorize(mat.NewSymDense(d, slices.Clone(c.a)), false) {
				t.Fatal(name)
			}
			all := eigen.Values(nil)
			norm := max(math.Abs(all[0]), math.Abs(all[d-1]), 1e-300)
			for i := range k {
				v := vectors[i*d : (i+1)*d]
				if math.Abs(values[i]-all[d-1-i]) > 1e-11*norm {
					t.Errorf("%s: eigenvalue %d is %v, not %v", name, i, values[i], all[d-1-i])
				}
				for j := 0; j <= i; j++ {
					along, want := 0.0, 0.0
					for l := range d {
						along += v[l] * vectors[j*d+l]
					}
					if i == j {
						want = 1
					}
					if math.Abs(along-want) > 1e-10 {
						t.Errorf("%s, %d of %d: vectors %d and %d have the product %v", name, k, d, i, j, along)
					}
				}
				for row := range d {
					image := 0.0
					for l := range d {
						image += c.a[row*d+l] * v[l]
					}
					if math.Abs(image-values[i]*v[row]) > 1e-10*norm {
						t.Fatalf("%s, %d of %d: vector %d is turned: %v for %v", name, k, d, i, image, values[i]*v[row])
					}
				}
			}
		}
	}
}
