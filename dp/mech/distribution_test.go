package mech

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

func gaussians(t *testing.T, seed byte, n int, sigma uint64) []int64 {
	t.Helper()
	x := make([]int64, n)
	if err := keyed(seed).DiscreteGaussian(x, sigma); err != nil {
		t.Fatal(err)
	}
	return x
}

// TestDiscreteGaussianSmallSigma compares every value's count with its exact
// probability, where each step shows.
func TestDiscreteGaussianSmallSigma(t *testing.T) {
	for i, sigma := range []uint64{1, 2, 3, 7, 8, 9, 17, 100, 1024} {
		x := gaussians(t, byte(i), draws()/4, sigma)
		if err := checkPoints(x, float64(sigma)); err != nil {
			t.Errorf("sigma %d: %v", sigma, err)
		}
	}
}

// checkPoints is the chi-square test against P(v) ~ exp(-v^2/(2 sigma^2)).
func checkPoints(x []int64, sigma float64) error {
	reach := int64(6*sigma + 3)
	weight := func(v int64) float64 { return math.Exp(-float64(v) * float64(v) / (2 * sigma * sigma)) }
	total := 0.0
	for v := -20 * reach; v <= 20*reach; v++ {
		total += weight(v)
	}
	counts := make([]int, 2*reach+1)
	for _, v := range x {
		counts[min(max(v+reach, 0), 2*reach)]++
	}
	return checkCounts(counts, func(i int) float64 { return weight(int64(i)-reach) / total })
}

// TestDiscreteGaussianLargeSigma covers powers of two and others, the 32-bit and
// the 64-bit positions, and the largest sigma.
func TestDiscreteGaussianLargeSigma(t *testing.T) {
	for i, sigma := range []uint64{1 << 20, 1<<20 + 12345, 1<<31 + 1, 1<<40 - 7, MaxSigma} {
		x := gaussians(t, byte(20+i), draws(), sigma)
		if err := checkNormal(x, float64(sigma)); err != nil {
			t.Errorf("sigma %d: %v", sigma, err)
		}
	}
}

// TestPositionsAreUnbiased: 2^32 is not a multiple of this strip's width; without
// the rejection of a few words, remainders by 3 would be 3 % apart.
func TestPositionsAreUnbiased(t *testing.T) {
	counts := make([]int, 3)
	for _, v := range gaussians(t, 29, draws()/2, 8*3<<26) {
		counts[magnitude(v)%3]++
	}
	if err := checkCounts(counts, func(int) float64 { return 1.0 / 3 }); err != nil {
		t.Error(err)
	}
}

// TestDiscreteGaussianTail: beyond the staircase another branch draws.
func TestDiscreteGaussianTail(t *testing.T) {
	const sigma = 1 << 20
	x := gaussians(t, 30, draws(), sigma)
	for _, edge := range []float64{3, 3.25, 3.5, 4, 4.5} {
		hits := 0
		for _, v := range x {
			if math.Abs(float64(v)) >= edge*sigma {
				hits++
			}
		}
		p := 2 * distuv.UnitNormal.Survival(edge)
		want := p * float64(len(x))
		if low, high := atLeast(hits, len(x), falseAlarm/2), atMost(hits, len(x), falseAlarm/2); p < low || p > high {
			t.Errorf("beyond %v sigma: %d draws, expected %.1f", edge, hits, want)
		}
	}
}

// TestPlantedScaleErrorIsCaught: the checks above must see a wrong scale.
func TestPlantedScaleErrorIsCaught(t *testing.T) {
	small := 0.005
	if *soak {
		small = 0.002
	}
	for _, scale := range []float64{0.5, 0.9, 0.95, 1 - small, 1 + small} {
		sigma := uint64(math.Round((1 << 20) * scale))
		if err := checkNormal(gaussians(t, 40, draws(), sigma), 1<<20); err == nil {
			t.Errorf("scale %v passed", scale)
		}
	}
	if err := checkPoints(gaussians(t, 41, draws()/4, 9), 10); err == nil {
		t.Error("sigma 9 passed for 10")
	}
}

// TestPlantedDullLowBitsAreCaught: noise that was rounded to even steps.
func TestPlantedDullLowBitsAreCaught(t *testing.T) {
	x := gaussians(t, 42, draws(), 1<<20)
	for i := range x {
		x[i] &^= 1
	}
	if err := checkNormal(x, 1<<20); err == nil {
		t.Error("even values passed")
	}
}

// laplaceNorm draws norms of lattice Laplace noise in units of 1/epsilon.
func laplaceNorms(t *testing.T, seed byte, n, count int, epsilon float64, l Lattice) []float64 {
	t.Helper()
	e, dst, norms := keyed(seed), make([]int64, n), make([]float64, count)
	for i := range norms {
		if err := e.LatticeLaplace(dst, epsilon, l); err != nil {
			t.Fatal(err)
		}
		var square float64
		for _, v := range dst {
			square += float64(v) * float64(v)
		}
		norms[i] = math.Sqrt(square) * l.Step * epsilon
	}
	return norms
}

// TestLatticeLaplaceNorm: the norm of noise of density ~ exp(-epsilon*|x|) has
// the distribution Gamma(n, 1/epsilon).
func TestLatticeLaplaceNorm(t *testing.T) {
	for i, n := range []int{1, 2, 11, 1000} {
		count := min(draws()/n, 200_000)
		norms := laplaceNorms(t, byte(50+i), n, count, 0.7, Lattice{Step: 0x1p-20})
		gamma := distuv.Gamma{Alpha: float64(n), Beta: 1}
		if err := checkKolmogorov(norms, gamma.CDF); err != nil {
			t.Errorf("n = %d: %v", n, err)
		}
		for j := range norms {
			norms[j] *= 1.05
		}
		if err := checkKolmogorov(norms, gamma.CDF); err == nil {
			t.Errorf("n = %d: a scale error of 5 %% passed", n)
		}
	}
}

// TestLatticeLaplaceLarge looks at one vector of the FEMNIST network's size: its
// norm, and its coordinates given the norm.
func TestLatticeLaplaceLarge(t *testing.T) {
	const epsilon = 1100
	l := Lattice{Step: 0x1p-20}
	x := make([]int64, femnist)
	if err := keyed(60).LatticeLaplace(x, epsilon, l); err != nil {
		t.Fatal(err)
	}
	var square float64
	for _, v := range x {
		square += float64(v) * float64(v)
	}
	norm := math.Sqrt(square) * l.Step * epsilon
	if z := (norm - femnist) / math.Sqrt(femnist); math.Abs(z) > zLimit { // Gamma(n): mean n, variance n
		t.Errorf("norm %.0f, expected %d, z = %.1f", norm, femnist, z)
	}
	if err := checkNormal(x, math.Sqrt(square/femnist)); err != nil {
		t.Error(err)
	}
}

// TestLatticeLaplaceDirection: directions are uniform; in the plane the angle is.
func TestLatticeLaplaceDirection(t *testing.T) {
	const sectors = 64
	e, dst, counts := keyed(61), make([]int64, 2), make([]int, sectors)
	for range draws() / 4 {
		if err := e.LatticeLaplace(dst, 1, Lattice{Step: 0x1p-20}); err != nil {
			t.Fatal(err)
		}
		turn := math.Atan2(float64(dst[1]), float64(dst[0]))/(2*math.Pi) + 0.5
		counts[min(int(turn*sectors), sectors-1)]++
	}
	if err := checkCounts(counts, func(int) float64 { return 1.0 / sectors }); err != nil {
		t.Error(err)
	}
}

// TestMixingSigma compares the integer s with P(s) ~ s^n exp(-(fine*s)^2/2).
func TestMixingSigma(t *testing.T) {
	for i, n := range []int{1, 2, 11, 200} {
		plan, err := planMixture(n, 1, Lattice{Step: 1.0 / 64})
		if err != nil {
			t.Fatal(err)
		}
		e := keyed(byte(70 + i))
		logWeight := func(s int) float64 {
			x := float64(s)
			return float64(n)*math.Log(x/float64(plan.mode)) - (x*x-float64(plan.mode*plan.mode))/(2*64*64)
		}
		reach := int(plan.mode) + 600
		total := 0.0
		for s := 1; s < 2*reach; s++ {
			total += math.Exp(logWeight(s))
		}
		counts := make([]int, reach+1)
		for range draws() / 4 {
			s, err := e.mixingSigma(&plan)
			if err != nil {
				t.Fatal(err)
			}
			counts[min(int(s), reach)]++
		}
		p := func(shift int) func(int) float64 {
			return func(s int) float64 {
				if s+shift <= 0 {
					return 0
				}
				return math.Exp(logWeight(s+shift)) / total
			}
		}
		if err := checkCounts(counts, p(0)); err != nil {
			t.Errorf("n = %d: %v", n, err)
		}
		if err := checkCounts(counts, p(2)); err == nil {
			t.Errorf("n = %d: a shift by two steps passed", n)
		}
	}
}

// TestMixingDecisionsAreExact replays the same bits through the float filter and
// through exact arithmetic, near the edge where they would differ.
func TestMixingDecisionsAreExact(t *testing.T) {
	source := rand.New(rand.NewPCG(4, 4))
	e := keyed(80)
	for range 3000 {
		n := 1 + source.IntN(1<<source.IntN(22))
		step := math.Ldexp(1, -10-source.IntN(20))
		plan, err := planMixture(n, 1+source.Float64(), Lattice{Step: step})
		if err != nil {
			t.Fatal(err)
		}
		k, err := e.gaussian(&plan.proposal)
		if err != nil {
			t.Fatal(err)
		}
		if source.IntN(8) == 0 { // small s, where a logarithm is most delicate
			k = 1 + source.Int64N(100) - int64(plan.mode)
		}
		if k <= -int64(plan.mode) {
			continue
		}
		_, hi := plan.acceptance(k, 64)
		if hi.BitLen() > 64 {
			t.Fatalf("n %d, fine %v, k %d: acceptance probability above 1", n, plan.fine, k)
		}
		u := hi.Uint64() + (uint64(source.IntN(3))-1)*source.Uint64N(1<<source.IntN(40))
		more := source.Uint64()
		e.Reset(words(more))
		fast, err := e.acceptSigma(&plan, k, u)
		if err != nil {
			t.Fatal(err)
		}
		e.Reset(words(more))
		exact, err := e.below(u, 64, func(prec uint) (lo, hi *big.Int) { return plan.acceptance(k, prec) })
		if err != nil {
			t.Fatal(err)
		}
		if fast != exact {
			t.Fatalf("n %d, fine %v, k %d, u %#x: %t, exact %t", n, plan.fine, k, u, fast, exact)
		}
	}
}

// TestLatticeLaplaceTheorem computes the lattice density itself, for an epsilon
// per step as coarse as is allowed, and holds its log-ratios against theorem 2
// of docs/proofs/laplace-mixture.md.
func TestLatticeLaplaceTheorem(t *testing.T) {
	for _, fine := range []float64{1.0 / 64, 1.0 / 100, 1.0 / 512} {
		for _, n := range []int{1, 2, 11, 1000} {
			logDensity := latticeLaplaceDensity(n, fine)
			for _, r := range []float64{0, 1, math.Sqrt2, 2, 5, 20, 64, 300, float64(n) / fine, 3 * float64(n) / fine} {
				for _, d := range []float64{1, math.Sqrt2, 3, 10, 64, 1000} {
					loss := logDensity(r) - logDensity(r+d)
					if bound := fine * (d*(1+4*fine*fine) + 2); loss < 0 || loss > bound {
						t.Errorf("n %d, fine %v: loss %v from %v to %v, bound %v", n, fine, loss, r, r+d, bound)
					}
					if r >= 20 && math.Abs(loss/(fine*d)-1) > 0.01 {
						t.Errorf("n %d, fine %v: loss per step %v, expected about %v", n, fine, loss/d, fine)
					}
				}
			}
		}
	}
}

// latticeLaplaceDensity is the logarithm of the sum over s of
// s^n exp(-(fine*s)^2/2) * (Z_s)^-n * exp(-r^2/(2 s^2)), up to a constant.
func latticeLaplaceDensity(n int, fine float64) func(r float64) float64 {
	most := int(60/fine + 2*math.Sqrt(float64(n))/fine)
	logs := make([]float64, most)
	for s := 1; s < most; s++ {
		z := 1.0 // Z_s/(sqrt(2 pi) s) by Poisson summation
		for m := 1; m <= 3; m++ {
			z += 2 * math.Exp(-2*math.Pi*math.Pi*float64(s)*float64(s)*float64(m)*float64(m))
		}
		logs[s] = -math.Pow(fine*float64(s), 2)/2 - float64(n)*math.Log(z)
	}
	return func(r float64) float64 {
		top := -fine * r
		sum := 0.0
		for s := 1; s < most; s++ {
			sum += math.Exp(logs[s] - r*r/(2*float64(s)*float64(s)) - top)
		}
		return top + math.Log(sum)
	}
}

func TestLatticeLaplaceRefuses(t *testing.T) {
	dst := make([]int64, 3)
	for _, c := range []struct{ epsilon, step float64 }{
		{0, 1}, {-1, 1}, {math.NaN(), 1}, {math.Inf(1), 1}, {1, 1}, {1, 0.3}, {1, 0}, {1e-30, 1}, {1, 0x1p-60},
	} {
		if err := keyed(1).LatticeLaplace(dst, c.epsilon, Lattice{Step: c.step}); err == nil {
			t.Errorf("epsilon %v on a lattice of %v was taken", c.epsilon, c.step)
		}
	}
	if err := keyed(1).LatticeLaplace(nil, 1, Lattice{Step: 0x1p-20}); err != nil {
		t.Errorf("no coordinates: %v", err)
	}
}

func ExampleLatticeLaplaceLoss() {
	// Eleven parameters, epsilon 2 per unit of distance, points 0.5 apart.
	lattice, _ := LatticeFor(math.Sqrt(12) / 2)
	loss, _ := LatticeLaplaceLoss(11, 2, lattice, 0.5)
	fmt.Printf("%.5f\n", loss)
	// Output: 1.00001
}
