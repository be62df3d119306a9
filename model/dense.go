package model

import (
	"fmt"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/internal/kernel"
)

func init() {
	registerLayer(layerKind{name: "linear", keys: []string{"units", "no_bias", "each", "sd"}, single: buildDense[float32], double: buildDense[float64], relus: true})
}

// dense is a linear layer on flat vectors, with ReLU behind it if asked for.
// Weights lie as [input][output].
type dense[F Float] struct {
	in, out    int
	bias, relu bool
	transposed []F // weights as [output][input], for the way back of large batches
	turned     bool
}

func (d *dense[F]) output() Shape { return Shape{1, 1, d.out} }

func (d *dense[F]) views() []View {
	v := []View{{Name: "weight", Shape: []int{d.in, d.out}}}
	if d.bias {
		v = append(v, View{Name: "bias", Offset: d.in * d.out, Shape: []int{d.out}})
	}
	return v
}

func (d *dense[F]) initialise(theta []F, src rand.Source) { uniformFan(theta, d.in, src) }

// largeBatch is from where on turning the weights once a step pays.
const largeBatch = 64

func (d *dense[F]) prepare(theta []F, examples int) {
	d.turned = examples >= largeBatch
	if !d.turned {
		return
	}
	if d.transposed == nil {
		d.transposed = make([]F, d.in*d.out)
	}
	kernel.Transpose(d.transposed, theta[:d.in*d.out], d.in, d.out)
}

func (d *dense[F]) inPlace() bool     { return false }
func (d *dense[F]) oneByOne() bool    { return false }
func (d *dense[F]) needsOutput() bool { return d.relu }

func (d *dense[F]) cell(examples int) cell[F] {
	return &denseCell[F]{dense: d, kept: make([]F, examples*d.out)}
}

type denseCell[F Float] struct {
	*dense[F]
	kept    []F // gradients at the output, until their weights are known
	waiting waitingRows[F]
	once    bool      // add is to add every value as one number
	some    []int     // examples of one of two sums that share them
	sum     []F       // of gradients at the output; or they themselves, behind their inputs
	biases  []F       // their sum, where that is to be added as one number
	whole   []float64 // gradients at the output, in lattice steps
	work    kernel.Workspace[F]
}

func (d *denseCell[F]) forward(theta, in, out []F, g int) {
	x, w, y := kernel.Dense(in, g, d.in), kernel.Dense(theta[:d.in*d.out], d.in, d.out), kernel.Dense(out, g, d.out)
	kernel.Gemm(1, x, w, 0, y, &d.work)
	finish(out, theta[d.in*d.out:], d.relu)
}

// finish adds a bias, if there is one, and does the ReLU behind a layer.
func finish[F Float](out, bias []F, relu bool) {
	switch {
	case len(bias) > 0 && relu:
		kernel.AddToRowsRelu(out, bias)
	case len(bias) > 0:
		kernel.AddToRows(out, bias)
	case relu:
		kernel.Relu(out, out)
	}
}

func (d *denseCell[F]) backward(p pass[F]) {
	if d.relu {
		kernel.ReluGrad(p.dOut, p.out, p.dOut)
	}
	if p.dIn != nil {
		back := kernel.Dense(p.theta[:d.in*d.out], d.in, d.out).T()
		if d.turned {
			back = kernel.Dense(d.transposed, d.out, d.in)
		}
		kernel.Gemm(1, kernel.Dense(p.dOut, p.g, d.out), back, 0, kernel.Dense(p.dIn, p.g, d.in), &d.work)
	}
	switch {
	case p.acc != nil:
		d.accumulate(p.acc, p.in, p.dOut, p.g, false)
	case p.norms != nil:
		copy(d.kept, p.dOut)
		for i := range p.g {
			// |x d'|^2 = |x|^2 |d|^2: the gradient itself is never formed.
			x := kernel.SquaredNorm(p.in[i*d.in:(i+1)*d.in]) + lostSquare*float64(d.in)
			if d.bias {
				x++
			}
			p.norms[i] += x * (kernel.SquaredNorm(p.dOut[i*d.out:(i+1)*d.out]) + lostSquare*float64(d.out))
		}
	}
}

func (d *denseCell[F]) add(acc, in, weights []F, g int) {
	taken := 0
	for i, w := range weights[:g] {
		if w == 0 {
			continue
		}
		taken++
		if w != 1 {
			row := d.kept[i*d.out : (i+1)*d.out]
			kernel.Scale(row, w, row)
		}
	}
	if taken == g {
		d.accumulate(acc, in, d.kept, g, d.once)
		return
	}
	// What has no weight belongs to another sum. Where the others are many, they are one
	// product, which reads their inputs where they are.
	if taken >= leastWaiting && d.selects() {
		d.some = d.some[:0]
		for i, w := range weights[:g] {
			if w != 0 {
				d.some = append(d.some, i)
			}
		}
		d.accumulateSome(acc, in, d.kept, d.some)
		return
	}
	// A few wait for those of other chunks, so that one product, and one way through the
	// sum, serves many.
	for i, w := range weights[:g] {
		if w != 0 {
			d.wait(acc, in, i)
		}
	}
}

// selects says whether a product of some rows is worth its while: of one input or output,
// or next to none, products have shorter ways.
func (d *dense[F]) selects() bool { return d.in > 1 && d.out > 1 && d.in*d.out >= 64 }

// accumulateSome adds what accumulate does, of some rows.
func (d *denseCell[F]) accumulateSome(acc, in, dOut []F, rows []int) {
	if !d.selects() {
		n := len(rows)
		d.sum = grown(d.sum, n*(d.in+d.out))
		for i, row := range rows {
			copy(d.sum[i*d.in:], in[row*d.in:(row+1)*d.in])
			copy(d.sum[n*d.in+i*d.out:], dOut[row*d.out:(row+1)*d.out])
		}
		d.accumulate(acc, d.sum[:n*d.in], d.sum[n*d.in:], n, d.once)
		return
	}
	inputs, outputs := kernel.Dense(in, len(in)/d.in, d.in).T(), kernel.Dense(dOut, len(in)/d.in, d.out)
	kernel.GemmOf(inputs, outputs, rows, kernel.Dense(acc[:d.in*d.out], d.in, d.out), &d.work)
	if !d.bias {
		return
	}
	d.sum = grown(d.sum, d.out)
	clear(d.sum)
	for _, row := range rows {
		kernel.Axpy(1, dOut[row*d.out:(row+1)*d.out], d.sum)
	}
	kernel.Axpy(1, d.sum, acc[d.in*d.out:])
}

// accumulate adds in' * dOut, and the column sums for the bias, if asked for as one number
// each.
func (d *denseCell[F]) accumulate(acc, in, dOut []F, g int, once bool) {
	dOut = dOut[:g*d.out]
	weights := kernel.Dense(acc[:d.in*d.out], d.in, d.out)
	kernel.Gemm(1, kernel.Dense(in, g, d.in).T(), kernel.Dense(dOut, g, d.out), 1, weights, &d.work)
	switch {
	case d.bias && once:
		d.biases = grown(d.biases, d.out)
		clear(d.biases)
		kernel.SumRows(d.biases, dOut)
		kernel.Axpy(1, d.biases, acc[d.in*d.out:])
	case d.bias:
		kernel.SumRows(acc[d.in*d.out:], dOut)
	}
}

// lostSquare is more than a square in double precision falls short by where it is too small
// for a normal number: that may be multiplied by something very large.
const lostSquare = 0x1p-1070

// addWhole multiplies inputs and gradients at the output, which are exact in double precision.
func (d *denseCell[F]) addWhole(acc []float64, in []F, weights []float64, g int) {
	d.whole = grown(d.whole, g*d.out)
	n, from := 0, in[:g*d.in]
	for i, w := range weights[:g] {
		if w == 0 {
			continue
		}
		if n < i {
			if n == 0 || &from[0] == &in[0] { // inputs are others' to read
				from = append(d.sum[:0], in[:g*d.in]...)
				d.sum = from
			}
			copy(from[n*d.in:(n+1)*d.in], in[i*d.in:(i+1)*d.in])
		}
		row := d.whole[n*d.out : (n+1)*d.out]
		for j, v := range d.kept[i*d.out : (i+1)*d.out] {
			row[j] = float64(v) * w
		}
		n++
	}
	rows := d.whole[:n*d.out]
	kernel.AddTruncatedProducts(acc[:d.in*d.out], from[:n*d.in], rows, n)
	for ; d.bias && len(rows) > 0; rows = rows[d.out:] {
		kernel.AddTruncated(1, rows[:d.out], acc[d.in*d.out:])
	}
}

func buildDense[F Float](in Shape, s Layer, behind []Layer) (layer[F], Shape, error) {
	if s.Units < 1 {
		return nil, in, fmt.Errorf("units %d; allowed: 1 or more", s.Units)
	}
	if s.Each {
		return buildPlaces[F](in, s, behind)
	}
	if s.SD != 0 {
		return nil, in, fmt.Errorf("sd %v; allowed: only with each", s.SD)
	}
	if in.Len()*s.Units > maxParameters {
		return nil, in, fmt.Errorf("%d inputs and %d units are too many parameters", in.Len(), s.Units)
	}
	l := &dense[F]{in: in.Len(), out: s.Units, bias: !s.NoBias, relu: reluBehind(behind)}
	return l, l.output(), nil
}
