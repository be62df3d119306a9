package account

import "math"

// ratioGrid holds the nodes of a trapezoid rule over z ~ N(0,1), shared by all
// orders: u = q*(e^w - 1) with w = z/s - 1/(2 s^2), and log(1+u).
type ratioGrid struct {
	step  float64
	u     []float64
	log1p []float64
	half  []float64 // -z^2/2
}

// maxNodes bounds the quadrature's work; noise so small that it needs more gets
// the chord between integer orders.
const maxNodes = 1 << 14

// gridLeft is where the nodes start; the mass below it is under 1e-23.
const gridLeft = -10

// logMomentFractional integrates f(u) = (1+u)^order - 1 - order*u, which is A - 1
// since E[u] = 0, and has no negative values to cancel. The integrand is analytic
// in a strip around the real line, so the trapezoid rule's error falls as
// e^(-2 pi a/h) with the strip's half width a.
func (c *poissonCurve) logMomentFractional(order float64) (float64, bool) {
	right := math.Max(order, 2)/c.noise + math.Sqrt(2*(order*math.Ln2+50))
	if !c.grid.extend(right, c.rate, c.noise) {
		return 0, false
	}
	count := int((right-gridLeft)/c.grid.step) + 1
	small := 0.03 / order
	linear, logs := 0.0, logSum{}
	for i := 0; i < count; i++ {
		u, y := c.grid.u[i], order*c.grid.log1p[i]
		switch {
		case math.Abs(u) < small:
			linear += math.Exp(c.grid.half[i]) * binomialExcess(order, u)
		case y < 40:
			linear += math.Exp(c.grid.half[i]) * (math.Expm1(y) - order*u)
		default:
			logs.add(y + c.grid.half[i]) // leaves out -order*u: never lower
		}
	}
	logs.add(math.Log(atLeastSmallest(linear)))
	log := logs.log() + math.Log(c.grid.step) - 0.5*math.Log(2*math.Pi)
	// Close to order 1 expm1(y) - order*u cancels to (order-1) of its size.
	return roundUp(log1pExp(log)) * (1 + 1e-14/(order-1)), true
}

// extend makes the grid reach right, or says that it would be too large.
func (g *ratioGrid) extend(right, rate, noise float64) bool {
	if g.step == 0 {
		// In the strip |Im z| < a <= pi*s/2 the ratio keeps a positive real part.
		a := math.Min(math.Pi*noise/2, 9)
		g.step = 2 * math.Pi * a / (44 + a*a/2 + math.Log1p(noise*noise))
	}
	count := (right-gridLeft)/g.step + 2
	if !(count < maxNodes) {
		return false
	}
	inverse := 1 / noise
	for i := len(g.u); i < int(count); i++ {
		z := gridLeft + float64(i)*g.step
		w := z*inverse - inverse*inverse/2
		u := rate * math.Expm1(w)
		log := math.Log1p(u)
		if w > 700 {
			scaled := w + math.Log(rate)
			u, log = math.Exp(scaled), log1pExp(scaled) // 1 for 1-q: never lower
		}
		g.u = append(g.u, u)
		g.log1p = append(g.log1p, log)
		g.half = append(g.half, -z*z/2)
	}
	return true
}

// binomialExcess is (1+u)^a - 1 - a*u for small |a*u|, by its Taylor series.
func binomialExcess(a, u float64) float64 {
	s := 1.0
	for k := 14.0; k >= 3; k-- {
		s = 1 + (a-k+1)/k*u*s
	}
	return a * (a - 1) / 2 * u * u * s
}
