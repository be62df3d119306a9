package metrics

import "math"

// recalibration is the logistic regression of a class on its logit (Cox 1958), with
// standard errors. What is not defined is NaN.
type recalibration struct{ intercept, slope, interceptError, slopeError float64 }

var noRecalibration = recalibration{math.NaN(), math.NaN(), math.NaN(), math.NaN()}

// asItIs is the line of answers that are calibrated: where fits begin.
var asItIs = recalibration{slope: 1}

// recalibrate fits groups of examples, a logit, the share of class 1 and a weight each,
// by Newton's method with halved steps, from a line that is near. There is no fit where
// one class is missing, where all logits are one, or where some logit separates the
// classes: the slope would be infinite.
func recalibrate(logits, shares, weights []float64, from recalibration) recalibration {
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
	at := func(a, b float64) lineFit { return fitAt(logits, shares, weights, mean, spread, a, b) }
	fit := at(from.intercept+from.slope*mean, from.slope*spread)
	for range 100 {
		da, db := fit.newton()
		if !finite(da) || !finite(db) {
			fit = at(0, 0) // too far out to see a slope: from the middle
			da, db = fit.newton()
		}
		// Nearer than the likelihood's rounding lets it be seen: one whole step more squares
		// what is left.
		last := da*fit.ga+db*fit.gb < 1e-9+1e-12*n
		next, step := at(fit.a+da, fit.b+db), 1.0
		for !last && step > 1e-10 && !(next.likelihood >= fit.likelihood) {
			step /= 2
			next = at(fit.a+step*da, fit.b+step*db)
		}
		if fit = next; last {
			break
		}
	}
	det := fit.aa*fit.bb - fit.ab*fit.ab
	va, vb, vab := fit.bb/det, fit.aa/det, -fit.ab/det
	shift := mean / spread
	r := recalibration{
		intercept: fit.a - fit.b*shift, slope: fit.b / spread,
		interceptError: math.Sqrt(va - 2*shift*vab + shift*shift*vb), slopeError: math.Sqrt(vb) / spread,
	}
	if !finite(r.intercept) || !finite(r.slope) {
		return noRecalibration
	}
	return r
}

// lineFit is the likelihood of a line a + b*x, its gradient, and its second derivatives
// with their signs turned.
type lineFit struct{ a, b, likelihood, ga, gb, aa, ab, bb float64 }

// newton is the step to where the gradient would be 0.
func (f lineFit) newton() (da, db float64) {
	det := f.aa*f.bb - f.ab*f.ab
	return (f.bb*f.ga - f.ab*f.gb) / det, (f.aa*f.gb - f.ab*f.ga) / det
}

func fitAt(logits, shares, weights []float64, mean, spread, a, b float64) lineFit {
	f := lineFit{a: a, b: b}
	for i, x := range logits {
		if weights[i] == 0 {
			continue
		}
		x = (x - mean) / spread
		z := a + b*x
		e := math.Exp(-math.Abs(z))
		p := 1 / (1 + e)
		if z < 0 {
			p = e / (1 + e)
		}
		f.likelihood += weights[i] * (shares[i]*z - max(z, 0) - math.Log1p(e))
		r, w := weights[i]*(shares[i]-p), weights[i]*e/((1+e)*(1+e))
		f.ga, f.gb = f.ga+r, f.gb+r*x
		f.aa, f.ab, f.bb = f.aa+w, f.ab+w*x, f.bb+w*x*x
	}
	return f
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
