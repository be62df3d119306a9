package audit

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/internal/kernel"
)

// residual is a loss as the attack sees it: how the gradient at the network's
// output depends on the output and on the dummy's target.
type residual interface {
	// at sets d to the gradient of the loss at the output out, for the free
	// variables z of the target.
	at(d, out, z []float64)
	// pull sets dz to the derivative of <d, q> with respect to z, q being fixed.
	pull(dz, out, z, q []float64)
}

// newResidual knows the losses of run files.
func newResidual(loss string) (residual, error) {
	switch loss {
	case "cross-entropy":
		return softLabel{}, nil
	case "squared-error":
		return squares{}, nil
	case "rmse":
		return rootSquares{}, nil
	}
	return nil, fmt.Errorf("audit: loss %q is not known to the attack; allowed: cross-entropy, squared-error, rmse", loss)
}

// softLabel is the cross entropy against a distribution over classes, y =
// softmax(z): the loss -sum_j y_j log p_j has the output gradient p - y.
type softLabel struct{}

func (softLabel) at(d, out, z []float64) {
	softmax(d, out)
	y := make([]float64, len(z))
	softmax(y, z)
	kernel.Sub(d, d, y)
}

func (softLabel) pull(dz, _, z, q []float64) {
	// <d, q> depends on z by -<y, q>, and dy_j/dz_k = y_j (1[j=k] - y_k).
	softmax(dz, z)
	var mean float64
	for i, y := range dz {
		mean += y * q[i]
	}
	for i, y := range dz {
		dz[i] = -y * (q[i] - mean)
	}
}

// squares is the mean of squared differences: d = 2 (out - z)/n.
type squares struct{}

func (squares) at(d, out, z []float64) {
	for i := range d {
		d[i] = 2 * (out[i] - z[i]) / float64(len(d))
	}
}

func (squares) pull(dz, _, _, q []float64) {
	for i := range dz {
		dz[i] = -2 * q[i] / float64(len(dz))
	}
}

// rootSquares is its root: d = r/(sqrt(n) |r|) with r = out - z, 0 at a perfect
// fit.
type rootSquares struct{}

func (rootSquares) at(d, out, z []float64) {
	var sum float64
	for i := range d {
		d[i] = out[i] - z[i]
		sum += d[i] * d[i]
	}
	scale := 0.0
	if sum > 0 {
		scale = 1 / math.Sqrt(float64(len(d))*sum)
	}
	kernel.Scale(d, scale, d)
}

func (rootSquares) pull(dz, out, z, q []float64) {
	// d(r/|r|)/dz = -(I - r r'/|r|^2)/|r|.
	var sum, along float64
	for i := range dz {
		e := out[i] - z[i]
		sum += e * e
		along += e * q[i]
	}
	if sum == 0 {
		clear(dz)
		return
	}
	scale := 1 / math.Sqrt(float64(len(dz))*sum)
	for i := range dz {
		dz[i] = -scale * (q[i] - (out[i]-z[i])*along/sum)
	}
}

func softmax(dst, z []float64) {
	top, sum := slices.Max(z), 0.0
	for i, v := range z {
		dst[i] = math.Exp(v - top)
		sum += dst[i]
	}
	for i := range dst {
		dst[i] /= sum
	}
}
