package method

import (
	"math"

	"github.com/coterie-fl/coterie/fl"
)

// An automatic lambda follows from what participants released already and from public
// numbers, so it costs no privacy: docs/proofs/mr-mtl-lambda.md. In every coordinate
// and round, participant k's mean gradient is, but for noise of a known variance,
// h*(d_k - u_k): u_k is its model's distance from the mean, which the server knows,
// d_k that of its optimum, of variance tau^2 over participants, and h the curvature. The
// server estimates h, and for every coordinate the spread (h*tau)^2, and sends them.

// What the server sends, which is the head of State.Memory, too: the mean curvature,
// 0 while there is no estimate; the dispersion of examples; every coordinate's
// curvature; and every coordinate's spread.
const (
	toldCurvature = iota
	toldDispersion
	toldEach
)

func (m *meanRegularised) toldLength() int { return toldEach + 2*m.n }

// Then come, for every coordinate, sums over participants and rounds of gradient times
// distance and of the squared distance, both over the noise; and for every participant its
// last release, the sums over rounds of its mean gradient and of its distance, and
// these numbers.
const (
	keptRounds = iota
	keptNoise  // the variance of a coordinate of the mean gradient
	keptSize   // the declared number of examples; 0: not declared
	keptLength
)

func (m *meanRegularised) keptEach() int   { return 3*m.n + keptLength }
func (m *meanRegularised) headLength() int { return m.toldLength() + 2*m.n }

// diffusion is q: half the variance that a unit of training time, steps times step
// size, adds to a participant's model.
func (m *meanRegularised) diffusion(variance, steps float64) float64 {
	return variance / (2 * m.Run.Algorithm.Local.Step * steps)
}

// strengthAt is the lambda of one coordinate at which shrinking the spread and
// averaging the noise balance. Left alone, a model diffuses to the variance q/h; drawn
// with lambda, its error is lambda^2*tau^2/(h+lambda)^2 + q/(h+lambda), least at
// lambda = h*q/(2*h*tau^2 - q). A spread that noise explains leaves nothing above 0,
// and without curvature data never correct the noise: then all participants share the
// coordinate.
func strengthAt(h, spread, q, sampling float64) float64 {
	rest := 2*spread/h - q
	if !(h > 0) || rest <= 0 {
		return math.Inf(1)
	}
	return h * (q + 2*sampling) / rest
}

// size is a participant's number of examples, if its weight tells.
func (m *meanRegularised) size(weight float64) float64 {
	if m.Run.Algorithm.Weights == "counts" {
		return weight
	}
	return 0
}

// pullBy moves a model to the mean by what a round's steps of the regulariser would,
// taken implicitly: w = m + (w - m)/(1 + step*steps*lambda). It is stable for every
// lambda, and at infinity it is FedAvg. Before an automatic lambda has an estimate
// participants go on alone: what that costs is pulled away later.
func (m *meanRegularised) pullBy(theta, mean, told []float64, variance, steps, size float64) {
	if !m.auto() {
		keep := 1 / (1 + m.Run.Algorithm.Local.Step*steps*m.lambda)
		if keep == 1 {
			return // without rounding errors
		}
		for i, v := range mean {
			theta[i] = v + keep*(theta[i]-v)
		}
		return
	}
	if len(told) < m.toldLength() || told[toldCurvature] == 0 || variance == 0 {
		return
	}
	q, curvatures, spreads := m.diffusion(variance, steps), told[toldEach:toldEach+m.n], told[toldEach+m.n:]
	sampling := 0.0
	if size > 0 {
		sampling = told[toldDispersion] / size
	}
	for i, v := range mean {
		keep := 1 / (1 + m.Run.Algorithm.Local.Step*steps*strengthAt(curvatures[i], spreads[i], q, sampling))
		theta[i] = v + keep*(theta[i]-v)
	}
}

// Lambda is the median over coordinates of what the server set for a participant, and
// the share of coordinates that it shares with all; false if the server sets none.
func (m *meanRegularised) Lambda(b *fl.Broadcast, p *fl.Participant) (median, shared float64, ok bool) {
	if !m.auto() || len(b.Memory) < m.toldLength() {
		return 0, 0, false
	}
	if b.Memory[toldCurvature] == 0 {
		return 0, 0, true
	}
	values := make([]float64, m.n)
	q := m.diffusion(p.Plan.Variance(), float64(p.Plan.Steps))
	sampling := 0.0
	if size := m.size(p.Plan.Weight); size > 0 {
		sampling = b.Memory[toldDispersion] / size
	}
	for i := range values {
		values[i] = strengthAt(b.Memory[toldEach+i], b.Memory[toldEach+m.n+i], q, sampling)
		if math.IsInf(values[i], 1) {
			shared += 1 / float64(m.n)
		}
	}
	median, _ = fl.MedianAndMax(values)
	return median, shared, true
}
