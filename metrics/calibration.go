package metrics

import "math"

// recalibration is the logistic regression of a class on its logit (Cox 1958), with
// standard errors. What is not defined is NaN.
type recalibration struct{ intercept, slope, interceptError, slopeError float64 }

var noRecalibration = recalibration{math.NaN(), math.NaN(), math.NaN(), math.NaN()}

// recalibrate fits by Newton's method with halved steps. There is no fit where one
// class is missing, where all logits are one, or where some logit separates the classes:
// the slope would be infinite.
func recalibrate(logits []float64, labels []int) recalibration {
	weights := make([]float64, len(logits))
	shares := make([]float64, len(logits))
	for i, label := range labels {
		weights[i], shares[i] = 1, float64(label)
	}
	return recalibrateShares(logits, shares, weights)
}

// recalibrateShares is the same of groups: a logit, the share of class 1 and a weight.
func recalibrateShares(logits, shares, weights []float64) recalibration {
	if separated(logits, shares, weights) {
		return noRecalibration
	}
	// The logits' own mean and spread keep Newton's steps well scaled.
	var n, mean, spread float64
	for i, x := range logits {
		n, mean = n+weights[i], mean+weights[i]*x
	}
	mean /= n
	for i, x := range logits {
		spread += weights[i] * (x - mean) * (x - mean)
	}
	if spread = math.Sqrt(spread / n); !(spread > 0) || !finite(spread) {
		return noRecalibration
	}
	likelihood := func(a, b float64) (sum float64) {
		for i, x := range logits {
			z := a + b*(x-mean)/spread
			sum += weights[i] * (shares[i]*z - softplus(z))
		}
		return sum
	}
	a, b := 0.0, spread
	best := likelihood(a, b)
	var h information
	for range 100 {
		var ga, gb float64
		h, ga, gb = fisher(logits, shares, weights, mean, spread, a, b)
		da, db := h.solve(ga, gb)
		if !finite(da) || !finite(db) {
			a, b, best = 0, 0, likelihood(0, 0) // too far out to see a slope: from the middle
			h, ga, gb = fisher(logits, shares, weights, mean, spread, a, b)
			da, db = h.solve(ga, gb)
		}
		if da*ga+db*gb < 1e-9 { // as near as sums of so many terms can tell: one whole step more
			a, b = a+da, b+db
			break
		}
		step := 1.0
		for ; step > 1e-10 && !(likelihood(a+step*da, b+step*db) >= best); step /= 2 {
		}
		a, b = a+step*da, b+step*db
		best = likelihood(a, b)
	}
	h, _, _ = fisher(logits, shares, weights, mean, spread, a, b)
	det := h.aa*h.bb - h.ab*h.ab
	va, vb, vab := h.bb/det, h.aa/det, -h.ab/det
	shift := mean / spread
	r := recalibration{
		intercept: a - b*shift, slope: b / spread,
		interceptError: math.Sqrt(va - 2*shift*vab + shift*shift*vb), slopeError: math.Sqrt(vb) / spread,
	}
	if !finite(r.intercept) || !finite(r.slope) {
		return noRecalibration
	}
	return r
}

// information is the negative second derivative of the likelihood.
type information struct{ aa, ab, bb float64 }

func (h information) solve(ga, gb float64) (da, db float64) {
	det := h.aa*h.bb - h.ab*h.ab
	return (h.bb*ga - h.ab*gb) / det, (h.aa*gb - h.ab*ga) / det
}

func fisher(logits, shares, weights []float64, mean, spread, a, b float64) (h information, ga, gb float64) {
	for i, x := range logits {
		x = (x - mean) / spread
		p := 1 / (1 + math.Exp(-(a + b*x)))
		r, w := weights[i]*(shares[i]-p), weights[i]*p*(1-p)
		ga, gb = ga+r, gb+r*x
		h.aa, h.ab, h.bb = h.aa+w, h.ab+w*x, h.bb+w*x*x
	}
	return h, ga, gb
}

// separated says that no finite slope fits best: one class lies on one side of the
// other, touching at most.
func separated(logits, shares, weights []float64) bool {
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for i, x := range logits {
		if !finite(x) {
			return true
		}
		for label, share := range [2]float64{1 - shares[i], shares[i]} {
			if share*weights[i] > 0 {
				low[label], high[label] = min(low[label], x), max(high[label], x)
			}
		}
	}
	return low[0] >= high[1] || low[1] >= high[0] || math.IsInf(low[0], 1) || math.IsInf(low[1], 1)
}

// softplus is log(1+exp(x)) without overflow.
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
