package account

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
)

// Values to 20 digits: integer orders by the binomial sum, fractional ones by the
// trapezoid rule, both in decimal arithmetic of 60 digits, the latter equal to 1e-38
// for two step sizes.
var exactPoisson = []struct{ rate, noise, order, want float64 }{
	{1e-6, 3, 7, 4.11316991751869236797e-13},
	{1e-9, 50, 2, 4.00080010667733424991e-22},
	{0.3, 0.4, 5, 1.41200339946330863938e+01},
	{0.0085, 1.1, 40, 1.16389880654914339431e+01},
	{0.9, 2, 3, 3.16515749015624014984e-01},
	{1e-4, 0.5, 12, 1.39523559578441656015e+01},
	{0.5, 0.8, 200, 1.55553369667778952135e+02},
	{1e-6, 3, 2.5, 1.46898844897148804685e-13},
	{0.01, 1, 1.5, 1.27253743327449827345e-04},
	{0.3, 0.5, 1.1, 3.72948433054694161726e-01},
	{1e-4, 8, 2.3, 1.81098734729712867215e-10},
	{0.0085, 0.84, 3.5, 4.29458664912313813847e-04},
	{0.7, 5, 20.25, 2.32891763085947889333e-01},
	{1e-3, 1, 1.0001, 8.56932153721801308951e-07},
	{0.2, 0.3, 6.7, 3.53304267812909102986e+01},
}

func TestPoissonExact(t *testing.T) {
	for _, c := range exactPoisson {
		got := poissonGaussian{c.rate, c.noise}.curve(nil).RDP(c.order)
		if got < c.want {
			t.Errorf("%+v: %v is below the truth by %.1e", c, got, 1-got/c.want)
		}
		if apart(got, c.want) > 1e-9 {
			t.Errorf("%+v: %v is %.1e apart", c, got, apart(got, c.want))
		}
	}
}

// logMomentByQuadrature is log E[(P/Q)^order] under Q by Gauss-Legendre panels: an
// independent way, good to some 1e-12 of the moment.
func logMomentByQuadrature(order float64, logRatio func(z float64) float64, low, high float64) float64 {
	top := math.Inf(-1)
	f := func(z float64) float64 { return order*logRatio(z) - z*z/2 }
	for z := low; z <= high; z += 0.01 {
		top = math.Max(top, f(z))
	}
	total := 0.0
	for z := low; z < high; z += 0.25 {
		total += quad.Fixed(func(z float64) float64 { return math.Exp(f(z) - top) }, z, z+0.25, 20, quad.Legendre{}, 0)
	}
	return top + math.Log(total) - 0.5*math.Log(2*math.Pi)
}

func TestPoissonAgainstQuadrature(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		rate := math.Exp(-6 * r.Float64())
		noise := math.Exp(math.Log(0.35) + 3.5*r.Float64())
		order := 1 + math.Exp(-2+5.5*r.Float64())
		if r.IntN(3) == 0 {
			order = math.Ceil(order)
		}
		ratio := func(z float64) float64 {
			return math.Log1p(rate * math.Expm1(z/noise-1/(2*noise*noise)))
		}
		got := poissonGaussian{rate, noise}.curve(nil).RDP(order)
		want := logMomentByQuadrature(order, ratio, -14, order/noise+14) / (order - 1)
		slack := 1e-10 + 1e-12/(want*(order-1))
		if got < want*(1-slack) || got > want*(1+1e-9+slack) {
			t.Errorf("rate %v noise %v order %v: %v, by quadrature %v", rate, noise, order, got, want)
		}
		// The other direction, E under the mixture of (Q/P)^order, is not larger.
		back := logMomentByQuadrature(1-order, ratio, -14, order/noise+14) / (order - 1)
		if back > got*(1+slack) {
			t.Errorf("rate %v noise %v order %v: reverse direction %v is above %v", rate, noise, order, back, got)
		}
	}
}

func TestPoissonIsMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		rate, noise, order := math.Exp(-8*r.Float64()), math.Exp(-2+5*r.Float64()), 1+math.Exp(-5+10*r.Float64())
		at := func(rate, noise, order float64) float64 { return poissonGaussian{rate, noise}.curve(nil).RDP(order) }
		base := at(rate, noise, order)
		if more := at(rate*0.99, noise, order); more > base {
			t.Errorf("rate %v noise %v order %v: a smaller rate costs more: %v > %v", rate, noise, order, more, base)
		}
		if more := at(rate, noise*1.01, order); more > base {
			t.Errorf("rate %v noise %v order %v: more noise costs more: %v > %v", rate, noise, order, more, base)
		}
		// Chords between integers, at tiny noise, are above the curve: allow it.
		if less := at(rate, noise, 1+1.01*(order-1)); noise > 0.2 && less < base*(1-1e-9) {
			t.Errorf("rate %v noise %v order %v: a higher order costs less: %v < %v", rate, noise, order, less, base)
		}
		if whole := order / 2 / noise / noise; base > whole*(1+1e-15) {
			t.Errorf("rate %v noise %v order %v: %v is above the unsampled %v", rate, noise, order, base, whole)
		}
	}
}

// Every corner gives a number, or infinity, and never NaN or a negative one.
func TestPoissonCorners(t *testing.T) {
	for _, rate := range []float64{1e-300, 1e-12, 0.5, math.Nextafter(1, 0), 1} {
		for _, noise := range []float64{1e-300, 1e-100, 1e-3, 0.05, 1, 1e3, 1e100, 1e300} {
			curve := poissonGaussian{rate, noise}.curve(nil)
			for _, order := range []float64{math.Nextafter(1, 2), 1 + 1e-9, 1.5, 2, 64.5, 1e4 + 0.5, 1e5, 1e9, math.Inf(1)} {
				got := curve.RDP(order)
				if !(got > 0) {
					t.Errorf("rate %v noise %v order %v: %v", rate, noise, order, got)
				}
				if whole := 0.5 / noise / noise * order; got > math.Max(whole*(1+1e-9), 1e-300) {
					t.Errorf("rate %v noise %v order %v: %v is above the unsampled %v", rate, noise, order, got, whole)
				}
			}
		}
	}
}

func TestWithoutReplacementCorners(t *testing.T) {
	for _, rate := range []float64{1e-12, 0.5, 0.999, 1} {
		for _, noise := range []float64{1e-300, 1e-3, 0.05, 1, 1e3, 1e100, 1e300} {
			curve := withoutReplacement{rate, noise}.curve(nil)
			for _, order := range []float64{math.Nextafter(1, 2), 1.5, 2, 64.5, 600, 1e9, math.Inf(1)} {
				if got := curve.RDP(order); !(got > 0) {
					t.Errorf("rate %v noise %v order %v: %v", rate, noise, order, got)
				}
			}
		}
	}
}

// Theorem 27 must be above a pair that sampling without replacement can produce:
// the replaced example adds +1/2 on one side and -1/2 on the other, all others
// nothing.
func TestWithoutReplacementIsAboveARealPair(t *testing.T) {
	for _, m := range []withoutReplacement{{0.01, 0.7}, {0.1, 1}, {0.3, 2}, {0.6, 0.5}, {0.05, 5}} {
		mixture := func(z, centre float64) float64 {
			// log density relative to N(0,1) of (1-q)N(0,1) + qN(centre/s,1) at z.
			c := centre / m.noise
			return math.Log1p(m.rate * math.Expm1(c*z-c*c/2))
		}
		curve := m.curve(nil)
		for _, order := range []float64{1.5, 2, 3, 5.5, 8, 20} {
			f := func(z float64) float64 { return (order*mixture(z, 0.5) + (1-order)*mixture(z, -0.5)) / order }
			real := logMomentByQuadrature(order, f, -14-order/m.noise, 14+order/m.noise) / (order - 1)
			if got := curve.RDP(order); got < real*(1-1e-9) {
				t.Errorf("%+v order %v: %v is below a real pair's %v", m, order, got, real)
			}
		}
	}
}
