package mech

import (
	"fmt"
	"math"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"gonum.org/v1/gonum/stat/distuv"
)

// checkEpsilon holds what a threshold test proves about a mechanism against its
// claim: never more, and at least share of it. happens draws one output on the
// first (false) or second (true) of two neighbouring inputs and says whether the
// event happened.
func checkEpsilon(claim, delta, share float64, trials int, happens func(second bool) (bool, error)) (float64, error) {
	var hits [2]int
	for side := range hits {
		for range trials {
			yes, err := happens(side == 1)
			if err != nil {
				return 0, err
			}
			if yes {
				hits[side]++
			}
		}
	}
	proven := provenEpsilon(hits[1], hits[0], trials, delta)
	if proven > claim {
		return proven, fmt.Errorf("epsilon is at least %.4f, but %v is claimed", proven, claim)
	}
	if proven < share*claim {
		return proven, fmt.Errorf("the test shows only %.4f of %v: it has lost its power", proven, claim)
	}
	return proven, nil
}

// laplaceEvent: noise on 0 or on 1 reaches 1; for epsilon 1 that is as telling as
// any event. scale is the planted bug.
func laplaceEvent(seed byte, scale float64) func(bool) (bool, error) {
	e, dst, l := keyed(seed), make([]int64, 1), Lattice{Step: 0x1p-20}
	return func(second bool) (bool, error) {
		err := e.LatticeLaplace(dst, 1/scale, l)
		if second {
			dst[0] += 1 << 20
		}
		return dst[0] >= 1<<20, err
	}
}

// gaussianEvent: a sum of nothing, or of one vector at its bound, passes 1.5
// standard deviations.
func gaussianEvent(t *testing.T, seed byte, scale float64) func(bool) (bool, error) {
	e, dst := keyed(seed), make([]int64, 1)
	sum, term := mustSum(t, 1, 1, Lattice{Step: 0x1p-20}), mustClip(t, 1, 7)
	return func(second bool) (bool, error) {
		sum.Reset()
		if second {
			if err := sum.Add(term); err != nil {
				return false, err
			}
		}
		_, err := Gaussian{Multiplier: scale}.Release(dst, sum, addRemove, e)
		return dst[0] >= 3<<19, err
	}
}

// gaussianDelta is delta(epsilon) of the Gaussian mechanism with multiplier 1
// (Balle and Wang 2018, theorem 8).
func gaussianDelta(epsilon float64) float64 {
	n := distuv.UnitNormal
	return n.CDF(0.5-epsilon) - math.Exp(epsilon)*n.CDF(-0.5-epsilon)
}

func TestEmpiricalEpsilonLaplace(t *testing.T) {
	claim, err := LatticeLaplaceLoss(1, 1, Lattice{Step: 0x1p-20}, 1)
	if err != nil {
		t.Fatal(err)
	}
	proven, err := checkEpsilon(claim, 0, 0.9, draws(), laplaceEvent(110, 1))
	if err != nil {
		t.Error(err)
	}
	t.Logf("proven %.4f of %.4f", proven, claim)
}

func TestEmpiricalEpsilonGaussian(t *testing.T) {
	proven, err := checkEpsilon(1, gaussianDelta(1), 0.9, draws(), gaussianEvent(t, 111, 1))
	if err != nil {
		t.Error(err)
	}
	t.Logf("proven %.4f of 1 at delta %.4f", proven, gaussianDelta(1))
}

// TestEmpiricalEpsilonSelection moves the two candidates' counts in opposite
// directions. Permute-and-flip and the exponential mechanism are tight here,
// noisy-max is not.
func TestEmpiricalEpsilonSelection(t *testing.T) {
	for i, c := range []struct {
		mechanism     string
		epsilon       float64
		first, second []int64
		share         float64
		trials        int
	}{
		{event.Exponential, 2, []int64{4, 0}, []int64{3, 1}, 0.9, draws()},
		{event.PermuteAndFlip, 1, []int64{2, 0}, []int64{1, 1}, 0.9, draws()},
		{event.NoisyMax, 1, []int64{8, 0}, []int64{7, 1}, 0.7, draws() / 4},
	} {
		e := keyed(byte(112 + i))
		choose := map[bool]func() (int, error){}
		for second, wrong := range map[bool][]int64{false: c.first, true: c.second} {
			scores, err := ErrorCounts(wrong)
			if err != nil {
				t.Fatal(err)
			}
			x := Selection{c.mechanism, c.epsilon}.exponents(scores)
			choose[second] = map[string]func() (int, error){
				event.Exponential:    func() (int, error) { return e.exponential(x) },
				event.PermuteAndFlip: func() (int, error) { return e.permuteAndFlip(x) },
				event.NoisyMax:       func() (int, error) { return e.noisyMax(scores, c.epsilon) },
			}[c.mechanism]
		}
		proven, err := checkEpsilon(c.epsilon, 0, c.share, c.trials, func(second bool) (bool, error) {
			choice, err := choose[second]()
			return choice == 0, err
		})
		if err != nil {
			t.Errorf("%s: %v", c.mechanism, err)
		}
		t.Logf("%s: proven %.4f of %v", c.mechanism, proven, c.epsilon)
	}
}

// TestPlantedScaleBreaksTheClaim: with too little noise the audit must pass the
// claim.
func TestPlantedScaleBreaksTheClaim(t *testing.T) {
	for _, scale := range []float64{0.9, 0.5} {
		if proven, err := checkEpsilon(1, 0, 0, draws()/2, laplaceEvent(120, scale)); err == nil {
			t.Errorf("Laplace at scale %v: %.4f passed", scale, proven)
		}
		if proven, err := checkEpsilon(1, gaussianDelta(1), 0, draws()/4, gaussianEvent(t, 121, scale)); err == nil {
			t.Errorf("Gaussian at scale %v: %.4f passed", scale, proven)
		}
	}
}
