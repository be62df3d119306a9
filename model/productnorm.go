package model

import (
	"math"

	"github.com/coterie-fl/coterie/internal/kernel"
)

// productNorm computes norms of one example's gradient of a matrix that many places share:
// the sum over places of x_t d_t'. It is formed only where that is cheaper than the two
// tables of products between places, whose sum of products is its squared norm.
type productNorm[F Float] struct {
	formed []F // the gradient itself
	x, d   []F // products between places
	sum    []F // the bias's
	work   kernel.Workspace[F]
}

// roundingShare bounds the rounding of sums over places: 16 times the spacing of numbers.
func roundingShare[F Float]() float64 {
	if _, single := any(F(0)).(float32); single {
		return 0x1p-20
	}
	return 0x1p-48
}

// squared is the squared norm of the gradient of weights, and of the bias if there is
// one, of n places with so many inputs and outputs.
func (p *productNorm[F]) squared(x, d []F, n, in, out int, bias bool) float64 {
	total := p.weights(x, d, n, in, out) + p.allow(x, d, n, in, out)
	if !bias {
		return total
	}
	p.sum = grown(p.sum, out)
	clear(p.sum)
	kernel.SumRows(p.sum, d)
	return total + kernel.SquaredNorm(p.sum)
}

// weights is the squared norm of the sum over places of x_t d_t'.
func (p *productNorm[F]) weights(x, d []F, n, in, out int) float64 {
	xs, ds := kernel.Dense(x, n, in), kernel.Dense(d, n, out)
	if in*out <= n*(in+out) {
		p.formed = grown(p.formed, in*out)
		kernel.Gemm(1, xs.T(), ds, 0, kernel.Dense(p.formed, in, out), &p.work)
		return kernel.SquaredNorm(p.formed)
	}
	p.x, p.d = grown(p.x, n*n), grown(p.d, n*n)
	kernel.Gemm(1, xs, xs.T(), 0, kernel.Dense(p.x, n, n), &p.work)
	kernel.Gemm(1, ds, ds.T(), 0, kernel.Dense(p.d, n, n), &p.work)
	return max(0, kernel.Dot(p.x, p.d))
}

// allow is what is added for rounding. Where places nearly cancel, neither the norm nor
// the sum that is clipped by it is exact; both err by a small share of the places' norms,
// added up. With it the norm is an upper bound, and the clipped sum keeps to its clip.
func (p *productNorm[F]) allow(x, d []F, n, in, out int) float64 {
	var norms float64
	for t := range n {
		norms += math.Sqrt(kernel.SquaredNorm(x[t*in:(t+1)*in]) * kernel.SquaredNorm(d[t*out:(t+1)*out]))
	}
	return roundingShare[F]() * norms * norms
}

// grown is room for n values.
func grown[F Float](s []F, n int) []F {
	if cap(s) < n {
		return make([]F, n)
	}
	return s[:n]
}
