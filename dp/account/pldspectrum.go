package account

import "math"

// unit is the unit roundoff of float64.
const unit = 0x1p-53

// fftError bounds what a transform of length n adds: relative to the sum of
// absolute inputs for one coefficient, and relative to the Euclidean norm for all.
// Every level of butterflies adds at most some 5 units; 8 leave room for the
// library's twiddle factors (Higham 2002, section 24.1).
func fftError(n int) float64 { return 8 * unit * math.Log2(float64(n)) }

// product is a product of powers of spectra, and what rounding can have done to it.
type product struct {
	value []complex128
	// logSize is the logarithm of a bound on each coefficient's size, and errors
	// the sum of its factors' relative errors.
	logSize, errors []float64
	n               int
}

func newProduct(n int) *product {
	p := &product{make([]complex128, n/2+1), make([]float64, n/2+1), make([]float64, n/2+1), n}
	for i := range p.value {
		p.value[i] = 1
	}
	return p
}

// multiply takes in a spectrum of a distribution to a whole power. A coefficient f
// with an error up to e has |(f+e)^T - f^T| <= T e (|f|+e)^(T-1); repeated squaring
// adds less than 5 units for each of the T factors.
func (p *product) multiply(spectrum []complex128, times float64) {
	e := fftError(p.n)
	for i, base := range spectrum {
		size := math.Hypot(real(base), imag(base)) + e
		p.logSize[i] += times * math.Log(size)
		p.errors[i] += times * (e/size + 5*unit)
		result := p.value[i]
		for k := uint64(times); k > 0; k >>= 1 {
			if k&1 == 1 {
				result *= base
			}
			base *= base
		}
		p.value[i] = result
	}
}

// roundoff bounds the Euclidean norm of the error in the inverse transform.
func (p *product) roundoff() float64 {
	total := 0.0
	for i, e := range p.errors {
		one := e * math.Exp(p.logSize[i])
		if i == 0 || 2*i == p.n {
			total += one * one
		} else {
			total += 2 * one * one // and its conjugate
		}
	}
	return math.Sqrt(total / float64(p.n))
}
