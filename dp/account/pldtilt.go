package account

import "math"

// tilter holds rough loss distributions, to choose tilts and windows.
type tilter []weighted

type weighted struct {
	losses, logMasses []float64
	times             float64
}

func newWeighted(atoms []lossAtom, times float64) weighted {
	w := weighted{times: times}
	for _, a := range atoms {
		if a.mass > 0 {
			w.losses = append(w.losses, a.loss)
			w.logMasses = append(w.logMasses, math.Log(a.mass))
		}
	}
	return w
}

// window is the range of composed losses that a pass keeps. What lies outside is
// negligible, as Chernoff's bound shows with these tilts: topTilt for the loss
// above top, topShift and bottomShift for the tilted mass above and below.
type window struct{ bottom, bottomShift, top, topTilt, topShift float64 }

// cumulant is log E[e^(lambda*total loss)].
func (t tilter) cumulant(lambda float64) float64 {
	total := 0.0
	for _, w := range t {
		var s logSum
		for i, loss := range w.losses {
			s.add(w.logMasses[i] + lambda*loss)
		}
		total += w.times * s.log()
	}
	return total
}

// chernoff is the least (cumulant + cost)/lambda over lambda > 0, and its lambda.
func (t tilter) chernoff(cost float64) (value, lambda float64) {
	x, value := minimise(math.Log(1e-5), math.Log(1e6), func(x float64) float64 {
		l := math.Exp(x)
		return (t.cumulant(l) + cost) / l
	})
	return value, math.Exp(x)
}

// saddle is the tilt under which the total loss centres on epsilon.
func (t tilter) saddle(epsilon float64) float64 {
	x, _ := minimise(math.Log(1e-5), math.Log(1e6), func(x float64) float64 {
		l := math.Exp(x)
		return t.cumulant(l) - l*epsilon
	})
	return math.Exp(x)
}

// aim picks the window for a tilt, and a smaller tilt if that makes the window much
// narrower: near the order at which the moments explode the tilted mass lies in
// the far tail and not where delta is decided.
func (t tilter) aim(lambda, delta float64) (float64, window) {
	w := t.window(lambda, delta)
	for range 20 {
		smaller := t.window(0.7*lambda, delta)
		if smaller.top-smaller.bottom > 0.8*(w.top-w.bottom) {
			break
		}
		lambda, w = 0.7*lambda, smaller
	}
	return lambda, w
}

// window holds all but e^-20 of delta, and all but e^-25 of the tilted mass on
// either side.
func (t tilter) window(lambda, delta float64) window {
	var w window
	w.top, w.topTilt = t.chernoff(-math.Log(delta) + 20)
	at := t.cumulant(lambda)
	outside := func(sign float64) (edge, shift float64) {
		x, edge := minimise(math.Log(1e-5), math.Log(1e6), func(x float64) float64 {
			s := math.Exp(x)
			return (t.cumulant(lambda+sign*s) - at + 25) / s
		})
		return sign * edge, math.Exp(x)
	}
	var top float64
	top, w.topShift = outside(1)
	w.top = math.Max(w.top, top)
	w.bottom, w.bottomShift = outside(-1)
	w.bottom = math.Min(w.bottom, w.top)
	return w
}

// minimise is a golden-section search.
func minimise(l, h float64, f func(float64) float64) (x, y float64) {
	const golden = 0.6180339887498949
	x1, x2 := h-golden*(h-l), l+golden*(h-l)
	y1, y2 := f(x1), f(x2)
	for range 20 {
		if y1 <= y2 {
			h, x2, y2 = x2, x1, y1
			x1 = h - golden*(h-l)
			y1 = f(x1)
		} else {
			l, x1, y1 = x1, x2, y2
			x2 = l + golden*(h-l)
			y2 = f(x2)
		}
	}
	if y1 <= y2 {
		return x1, y1
	}
	return x2, y2
}
