package account

import (
	"math"

	"github.com/coterie-fl/coterie/dp/event"
)

// nodeGaussian is one step on a batch of examples drawn without replacement from
// a graph's, of which at most S contain one node.
type nodeGaussian struct{ event.NodeGaussian }

func (nodeGaussian) comparableMechanism() {}

func (m nodeGaussian) curve([]float64) Curve {
	c := &nodeCurve{}
	// Sensitivity 2*rho*C gives (2 rho)^2/(2 s^2); the authors' code has a quarter
	// of it (DESIGN, erratum 13).
	c.rate = 2 / m.Noise / m.Noise
	if m.Formula == event.AuthorsCode {
		c.rate = 0.5 / m.Noise / m.Noise
	}
	c.rate = atLeastSmallest(c.rate)
	c.counts = hypergeometric(m.Nodes, m.Occurrences, m.Batch)
	return c
}

// nodeCurve is theorem 2.4.4 of paper 002 (Daigavane et al. 2021):
// log E[exp(a(a-1) rate k^2)]/(a-1), k the number of the node's examples in the
// batch, hypergeometric.
type nodeCurve struct {
	rate   float64
	counts []probableCount
}

type probableCount struct{ k, logProbability float64 }

func (c *nodeCurve) RDP(order float64) float64 {
	if math.IsInf(order, 1) {
		return math.Inf(1)
	}
	var total logSum
	for _, h := range c.counts {
		if h.k == 0 {
			continue // e^0 - 1
		}
		x := order * (order - 1) * c.rate * h.k * h.k
		logExp := x
		if x < 40 {
			logExp = math.Log(atLeastSmallest(math.Expm1(x)))
		}
		total.add(h.logProbability + logExp)
	}
	log := total.log()
	if math.IsNaN(log) || math.IsInf(log, 1) {
		return math.Inf(1)
	}
	return roundUp(log1pExp(log)) / (order - 1)
}

// hypergeometric lists the chances that k of the s special ones are among b drawn
// from n, by the ratios of neighbouring terms: they cannot cancel.
func hypergeometric(n, s, b int64) []probableCount {
	var counts []probableCount
	var total logSum
	log := 0.0
	for k := max(0, b-(n-s)); k <= min(s, b); k++ {
		counts = append(counts, probableCount{float64(k), log})
		total.add(log)
		log += math.Log(float64(s-k)) + math.Log(float64(b-k)) - math.Log(float64(k+1)) - math.Log(float64(n-s-b+k+1))
	}
	for i := range counts {
		counts[i].logProbability -= total.log()
	}
	return counts
}
