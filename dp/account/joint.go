package account

import (
	"math"
)

// SplitJointNoise is proposition 1 of paper 001: two sums over the same batch,
// noised with S = nuG and S = nuQ relative to their own clip bounds, cost as much
// as one with S = nu if 1/nu^2 = 1/nuG^2 + 1/nuQ^2. Given nu and nuQ it returns
// nuG. nuQ must be above nu.
func SplitJointNoise(nu, nuQ float64) (nuG float64, err error) {
	if !(nu > 0) || math.IsInf(nu, 1) {
		return 0, parameter("nu", nu, "a finite number > 0")
	}
	if !(nuQ > nu) || math.IsInf(nuQ, 1) {
		return 0, parameter("nu_q", nuQ, "a finite number above nu: no share is left for the gradient otherwise")
	}
	// (nu^-2 - nuQ^-2)^(-1/2), in a form that neither overflows nor cancels.
	ratio := nu / nuQ
	return nu / math.Sqrt((1-ratio)*(1+ratio)) * (1 + 1e-15), nil
}

// JointNoise is the inverse: the S of the one mechanism that several on the same
// batch amount to.
func JointNoise(noises ...float64) (float64, error) {
	if len(noises) == 0 {
		return 0, parameter("noises", noises, "at least one")
	}
	least := math.Inf(1)
	for _, nu := range noises {
		if !(nu > 0) || math.IsInf(nu, 1) {
			return 0, parameter("noise", nu, "a finite number > 0")
		}
		least = math.Min(least, nu)
	}
	precision := 0.0
	for _, nu := range noises {
		precision += least / nu * (least / nu)
	}
	return least / math.Sqrt(precision), nil
}
