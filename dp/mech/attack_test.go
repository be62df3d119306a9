package mech

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/coterie-fl/coterie/internal/rng"
)

// An attack says whether an output could not have come from the neighbouring
// input: one such output reveals the input for certain.
type attack func(output float64) (impossible bool)

func countImpossible(n int, draw func() float64, a attack) int {
	count := 0
	for range n {
		if a(draw()) {
			count++
		}
	}
	return count
}

// naiveLaplace is textbook float noise of scale 1 on x.
func naiveLaplace(x float64, source *rand.Rand) func() float64 {
	return func() float64 {
		noise := math.Log(float64(1+source.Uint64N(1<<53)) * 0x1p-53)
		if source.Uint64()&1 == 1 {
			noise = -noise
		}
		return x + noise
	}
}

// notFromNaive is Mironov's attack (2012): it looks for any of the 2^53 uniform
// numbers that would take naive noise on x to the output.
func notFromNaive(x float64) attack {
	return func(y float64) bool {
		for _, sign := range []float64{1, -1} {
			near := int64(math.Exp(sign*(y-x)) * 0x1p53)
			const window = 64 // the logarithm is monotone up to a few ulps
			for k := max(1, near-window); k <= min(1<<53, near+window); k++ {
				if x+sign*math.Log(float64(k)*0x1p-53) == y {
					return false
				}
			}
		}
		return true
	}
}

// notFromCoarser is the granularity attack (Haney et al. 2022; for Gaussian noise
// Jin et al. 2021): float noise on 1 leaves multiples of 2^-54 between -1 and 2.
func notFromCoarser(y float64) bool {
	return math.Abs(y) < 0.5 && y*0x1p54 != math.Trunc(y*0x1p54)
}

// TestNaiveNoiseIsBroken is the positive control of the attacks.
func TestNaiveNoiseIsBroken(t *testing.T) {
	source := rand.New(rand.NewPCG(10, 10))
	const n = 5000
	if own := countImpossible(n, naiveLaplace(0, source), notFromNaive(0)); own != 0 {
		t.Errorf("the attack rejects %d of %d outputs of the true input", own, n)
	}
	if caught := countImpossible(n, naiveLaplace(0, source), notFromNaive(1)); caught < n/10 {
		t.Errorf("Mironov's attack tells only %d of %d naive outputs", caught, n)
	}
	gaussian := func() float64 { return 0 + rng.Normal(source) }
	if caught := countImpossible(n, gaussian, notFromCoarser); caught < n/10 {
		t.Errorf("the granularity attack tells only %d of %d naive outputs", caught, n)
	}
	shifted := func() float64 { return 1 + rng.Normal(source) }
	if own := countImpossible(n, shifted, notFromCoarser); own != 0 {
		t.Errorf("the granularity attack rejects %d of %d outputs of the true input", own, n)
	}
}

// TestLatticeNoiseResistsFloatAttacks: whatever the input, every output is a
// lattice point that the neighbouring input reaches as well. The inputs have
// all their low bits set.
func TestLatticeNoiseResistsFloatAttacks(t *testing.T) {
	l := Lattice{Step: 0x1p-20}
	e, q, y := keyed(130), make([]int64, 1), make([]float64, 1)
	point, neighbour := make([]int64, 1), make([]int64, 1)
	if err := l.Truncate(point, []float64{math.Pi / 4}); err != nil {
		t.Fatal(err)
	}
	if err := l.Truncate(neighbour, []float64{-1e-3 * math.E}); err != nil {
		t.Fatal(err)
	}
	for name, noise := range map[string]func() error{
		"gaussian": func() error { return e.DiscreteGaussian(q, 1<<20) },
		"laplace":  func() error { return e.LatticeLaplace(q, 1, l) },
	} {
		draw := func() float64 {
			if err := noise(); err != nil {
				t.Fatal(err)
			}
			q[0] += point[0]
			l.Float(y, q)
			return y[0]
		}
		// The neighbour needs the draw output-neighbour: an integer that the
		// sampler gives with positive probability for every sigma above 2^20/256.
		notReachable := func(y float64) bool {
			steps := y / l.Step
			return steps != math.Trunc(steps) || math.Abs(steps-float64(neighbour[0])) > 128*(1<<20)
		}
		if caught := countImpossible(draws()/2, draw, notReachable); caught != 0 {
			t.Errorf("%s: %d outputs tell the inputs apart", name, caught)
		}
		if caught := countImpossible(draws()/2, draw, notFromCoarser); caught != 0 {
			t.Errorf("%s: the granularity attack tells %d outputs", name, caught)
		}
	}
}
