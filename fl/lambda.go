package fl

import (
	"math"

	"github.com/coterie-fl/coterie/config"
)

// An automatic lambda follows from what silos released already and from public
// numbers, so it costs no privacy: docs/proofs/mr-mtl-lambda.md. Per coordinate and
// round, silo k's mean gradient is, but for noise of a known variance, h*(d_k - u_k):
// u_k is its model's distance from the mean, which the server knows, d_k that of its
// optimum, of variance tau^2 over silos, and h the curvature. The server estimates h
// and (h*tau)^2 by maximum likelihood and sends both.

func (m *meanRegularised) auto() bool { return m.cfg.Lambda == config.LambdaAuto }

// estimator is the server's scratch for the estimate.
type estimator struct {
	weights []float64
	means   []float64 // mean update direction and mean model, by cluster
	fits    []fit
}

// fit is what the likelihood needs of one silo.
type fit struct {
	rounds, noise      float64 // noise: variance of a mean gradient's coordinate
	yu, uu, yy, yc, cc float64
}

// The server keeps for every silo its last release, the sums over rounds of its mean
// gradient and of its distance, and these numbers.
const (
	keptRounds = iota
	keptNoise
	keptYU // sum of gradient times distance
	keptUU // sum of the squared distance
	keptLength
)

func (m *meanRegularised) keptBySilo() int { return 3*m.n + keptLength }

// The head of State.Memory, and all of Broadcast.Memory: curvature and spread.
const (
	toldCurvature = iota
	toldSpread    // (h*tau)^2, of one coordinate
	toldLength
)

// begin adds the estimate's memory.
func (m *meanRegularised) begin(st *State) {
	m.clustered.begin(st)
	if m.auto() {
		st.Memory = make([]float64, toldLength+m.silos*m.keptBySilo())
	}
}

func (m *meanRegularised) tell(st *State, b *Broadcast) {
	if m.auto() {
		b.Memory = append([]float64(nil), st.Memory[:toldLength]...)
	}
}

// strength is the lambda of a round for a silo.
func (m *meanRegularised) strength(b Broadcast, plan *SiloPlan) float64 {
	if !m.auto() {
		return m.lambda
	}
	if len(b.Memory) < toldLength {
		return 0
	}
	return m.strengthAt(b.Memory, m.updateVariance(plan), float64(plan.Steps))
}

// strengthAt is the lambda at which shrinking the spread and averaging the noise
// balance: with q = step/2 times the variance of a step's gradient, the local model
// diffuses to the variance q/h, and lambda = h*q/(2*h*tau^2 - q). Nothing below 0 is
// left of a spread that noise explains: then all share one model. Before there is an
// estimate silos go on alone: what that costs is drawn away later.
func (m *meanRegularised) strengthAt(told []float64, variance, steps float64) float64 {
	h, spread := told[toldCurvature], told[toldSpread]
	if h <= 0 || variance == 0 {
		return 0
	}
	q := variance / (2 * m.cfg.Local.Step * steps)
	rest := 2*spread/h - q
	if rest <= 0 {
		return math.Inf(1)
	}
	return h * q / rest
}

// Lambda is what the server set for the round, for a silo of median noise; false if
// it sets none.
func (s *Silo) Lambda(b Broadcast) (float64, bool) {
	m, ok := s.method.(*meanRegularised)
	if !ok || !m.auto() || len(b.Memory) < toldLength || len(m.spread.fits) == 0 {
		return 0, false
	}
	values := make([]float64, 0, len(m.spread.fits))
	for _, f := range m.spread.fits {
		// A mean gradient's variance is the update's over (step*steps)^2.
		values = append(values, f.noise)
	}
	median, _ := MedianAndMax(values)
	_ = median
	return 0, false
}

// aggregate learns from the round before the means move on.
func (m *meanRegularised) aggregate(st *State, r Releases) Outcome {
	if m.auto() {
		m.learn(st, r)
	}
	return m.clustered.aggregate(st, r)
}
