package account

import "math"

// withoutReplacement is the Gaussian mechanism on batches of fixed size, each
// drawn afresh, under replace-one; noise is relative to the replace-one
// sensitivity 2C.
type withoutReplacement struct{ rate, noise float64 }

func (withoutReplacement) comparableMechanism() {}

func (m withoutReplacement) curve([]float64) Curve {
	return &withoutReplacementCurve{withoutReplacement: m}
}

// withoutReplacementCurve is theorem 27 of Wang, Balle and Kasiviswanathan 2018:
//
//	log(1 + C(a,2) q^2 min(4(e^r(2)-1), 2 e^r(2))
//	      + sum over j >= 3 of C(a,j) q^j min(4 sqrt(B(2 floor(j/2)) B(2 ceil(j/2))), 2 e^((j-1) r(j)))) / (a-1)
//
// with r(j) = j/(2 s^2) and B(l) = E[(ratio-1)^l] of the Gaussian pair.
type withoutReplacementCurve struct {
	withoutReplacement
	central []float64 // log B(2i) at index i; NaN means not computed yet
}

func (c *withoutReplacementCurve) RDP(order float64) float64 {
	whole := gaussian{c.noise}.rho() * order
	if c.rate == 1 || order > maxSeries || math.IsInf(whole, 1) {
		return whole
	}
	low := math.Floor(order)
	log := c.logMoment(low)
	if low != order {
		// log of the moment is convex in the order (corollary 10 there).
		log = (low+1-order)*log + (order-low)*c.logMoment(low+1)
	}
	return atLeastSmallest(math.Min(whole, log/(order-1)))
}

func (c *withoutReplacementCurve) logMoment(order float64) float64 {
	if order == 1 {
		return 0
	}
	half := gaussian{c.noise}.rho()
	logQ := math.Log(c.rate)
	n := int(order)
	var total logSum
	for j := 2; j <= n; j++ {
		bound := math.Ln2 + float64(j)*float64(j-1)*half
		if j == 2 {
			bound = math.Min(bound, math.Log(4)+math.Log(atLeastSmallest(math.Expm1(2*half))))
		} else if !c.centralIsLarge(j, half) {
			bound = math.Min(bound, math.Log(4)+(c.logCentral(j/2)+c.logCentral((j+1)/2))/2)
		}
		total.add(logBinomial(n, j) + float64(j)*logQ + bound)
	}
	return roundUp(log1pExp(total.log()))
}

// centralIsLarge says that 4B is certainly above 2 e^((j-1)r(j)), so that B need
// not be computed: by Jensen B(l) >= e^((l-1)r(l)) (1 - e^(-(l-1)/s^2))^l.
func (c *withoutReplacementCurve) centralIsLarge(j int, half float64) bool {
	even := float64(j &^ 1)
	return even*math.Log1p(-math.Exp(-(even-1)*2*half)) > -math.Ln2
}

// logCentral is log B(2i) = log E[(e^w - 1)^(2i)] with w = z/s - 1/(2s^2), z
// standard normal. Forward differences would cancel; the integrand is positive
// and entire, so the trapezoid rule is exact to rounding at this step.
func (c *withoutReplacementCurve) logCentral(i int) float64 {
	for len(c.central) <= i {
		c.central = append(c.central, math.NaN())
	}
	if !math.IsNaN(c.central[i]) {
		return c.central[i]
	}
	const step = 0.2
	power := float64(2 * i)
	inverse := 1 / c.noise
	reach := math.Sqrt(2*power) + 10
	var total logSum
	for z := -reach; z < power*inverse+reach; z += step {
		w := z*inverse - inverse*inverse/2
		log := w
		if w < 40 {
			log = math.Log(atLeastSmallest(math.Abs(math.Expm1(w))))
		}
		total.add(power*log - z*z/2)
	}
	c.central[i] = total.log() + math.Log(step) - 0.5*math.Log(2*math.Pi) + 1e-11
	return c.central[i]
}
