package audit

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/coterie-fl/coterie/internal/kernel"
	"github.com/coterie-fl/coterie/model"
)

// denseInput is what the gradient of one linear layer says about its input.
//
// For one example with input a and output gradient d the weights' gradient is a d'
// and the biases' is d: one matrix [a; 1] d' of rank one. Without noise every
// column, divided by its bias entry, is a. Under noise that is equally large in
// every entry, the leading singular vectors are the best fit of rank one, and use
// all columns at once.
type denseInput struct {
	input []float64 // a; without a scale of its own if scaled is false
	delta []float64 // d, up to a positive factor
	// scaled says that the bias row tells a's length. Otherwise the input is known
	// up to a factor, and is returned such that a twentieth of it lies above 1.
	scaled bool

	line []float64 // [a; 1], or a without bias, as a direction of length 1
	// blur is the standard deviation of an entry of line, as far as the matrix
	// itself shows it: what it has beside its leading part.
	blur float64
}

// denseLayer is where a linear layer's parameters lie.
type denseLayer struct {
	offset, in, out int
	bias            bool
}

// denseLayers are the network's linear layers, in order.
func denseLayers(views []model.View) []denseLayer {
	var out []denseLayer
	for i, v := range views {
		if len(v.Shape) != 2 {
			continue
		}
		l := denseLayer{offset: v.Offset, in: v.Shape[0], out: v.Shape[1]}
		l.bias = i+1 < len(views) && len(views[i+1].Shape) == 1 && views[i+1].Offset == v.Offset+v.Len()
		out = append(out, l)
	}
	return out
}

// matrix is the layer's part of a gradient, the bias as its last row.
func (l denseLayer) matrix(gradient []float64) kernel.Matrix[float64] {
	rows := l.in
	if l.bias {
		rows++
	}
	return kernel.Dense(gradient[l.offset:l.offset+rows*l.out], rows, l.out)
}

// recover finds the layer's input in a gradient.
func (l denseLayer) recover(gradient []float64) (denseInput, error) {
	m := l.matrix(gradient)
	left, right, top, err := leading(m)
	if err != nil {
		return denseInput{}, fmt.Errorf("audit: linear layer of %d by %d: %w", l.in, l.out, err)
	}
	rest := max(0, squared(m.Data)-top*top) / float64(len(m.Data))
	blur := math.Sqrt(rest) / top
	d := denseInput{input: slices.Clone(left[:l.in]), delta: right, line: left, blur: blur}
	// A bias entry within three standard deviations of 0 would give any scale.
	scale := 0.0
	if l.bias && math.Abs(left[l.in]) > 3*blur {
		scale, d.scaled = 1/left[l.in], true
	} else if top := loud(d.input); top != 0 {
		scale = 1 / top
	}
	kernel.Scale(d.input, scale, d.input)
	sign := math.Copysign(1, scale)
	kernel.Scale(d.delta, sign, d.delta)
	kernel.Scale(d.line, sign, d.line)
	return d, nil
}

// leading are the singular vectors of the largest singular value, and that value,
// from the eigenvectors of the smaller Gram matrix.
func leading(m kernel.Matrix[float64]) (left, right []float64, value float64, err error) {
	transposed := m.Rows < m.Cols
	if transposed {
		m = m.T()
	}
	n := m.Cols
	gram := make([]float64, n*n)
	kernel.Gemm(1, m.T(), m, 0, kernel.Dense(gram, n, n), nil)
	var eigen mat.EigenSym
	if !eigen.Factorize(mat.NewSymDense(n, gram), true) {
		return nil, nil, 0, fmt.Errorf("the singular vectors could not be computed")
	}
	if !(eigen.Values(nil)[n-1] > 0) {
		return nil, nil, 0, fmt.Errorf("its gradient is 0: it shows nothing")
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	right = mat.Col(nil, n-1, &vectors)
	left = make([]float64, m.Rows)
	kernel.Gemm(1, m, kernel.Dense(right, n, 1), 0, kernel.Dense(left, m.Rows, 1), nil)
	value = math.Sqrt(squared(left))
	kernel.Scale(left, 1/value, left)
	if transposed {
		left, right = right, left
	}
	return left, right, value, nil
}

// loud is a value that one in twenty exceeds, whatever its sign; the sign is that
// of most of what is loud.
func loud(v []float64) float64 {
	size := make([]float64, len(v))
	for i, x := range v {
		size[i] = math.Abs(x)
	}
	slices.Sort(size)
	top := size[len(size)-1-len(size)/20]
	var sum float64
	for _, x := range v {
		if math.Abs(x) >= top {
			sum += x
		}
	}
	return math.Copysign(top, sum)
}
