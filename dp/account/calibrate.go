package account

import (
	"errors"
	"fmt"
	"math"
)

// Calibrations return the best value on the safe side: epsilon at the result is
// never above the target.

// LeastNoise is the least noise at which epsilon is at most target, to a relative
// 1e-8; at must fall with the noise.
func LeastNoise(target float64, at func(noise float64) (float64, error)) (float64, error) {
	if !(target > 0) || math.IsInf(target, 1) {
		return 0, parameter("epsilon", target, "a finite number > 0")
	}
	return leastNoise(target, search{start: 1, factor: 3, close: 1e-9}, at)
}

func leastNoise(target float64, s search, at func(noise float64) (float64, error)) (float64, error) {
	s.least, s.most = 1e-9, 1e15
	x, err := s.crossing(target, at)
	if errors.Is(err, ErrUnreachable) {
		// What is left at endless noise are choices, scores and moments, which have none.
		if least, fault := at(s.most); fault == nil {
			return 0, tooDear(target, least)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("noise for epsilon %v: %w", target, err)
	}
	return x, nil
}

// tooDear is a target that what has no noise of its own exceeds alone.
func tooDear(target, least float64) error {
	return fmt.Errorf("%w: epsilon %v cannot be had by any noise: what is released beside the noised steps (choices, moments, scores) costs %s by itself, and must cost less than epsilon",
		ErrUnreachable, target, Upward(least))
}

// MostRate is the largest sampling rate at which epsilon is at most target; at
// must rise with the rate.
func MostRate(target float64, at func(rate float64) (float64, error)) (float64, error) {
	if !(target > 0) || math.IsInf(target, 1) {
		return 0, parameter("epsilon", target, "a finite number > 0")
	}
	if e, err := at(1); err != nil || e <= target {
		return 1, err
	}
	// 1/rate plays the part of the noise.
	s := search{start: 100, least: 1, most: 1e15, factor: 3, close: 1e-9}
	x, err := s.crossing(target, func(x float64) (float64, error) { return at(1 / x) })
	if errors.Is(err, ErrUnreachable) {
		if least, fault := at(1 / s.most); fault == nil {
			return 0, fmt.Errorf("%w: epsilon %v cannot be had by any rate: at rate %g it is still %s; add noise", ErrUnreachable, target, 1/s.most, Upward(least))
		}
	}
	if err != nil {
		return 0, fmt.Errorf("rate for epsilon %v: %w", target, err)
	}
	return 1 / x, nil
}

// MostSteps is the largest number of steps at which epsilon is at most target; at
// must rise with the steps. It is 0 if one step is too much.
func MostSteps(target float64, at func(steps int64) (float64, error)) (int64, error) {
	if !(target > 0) || math.IsInf(target, 1) {
		return 0, parameter("epsilon", target, "a finite number > 0")
	}
	const limit = int64(1) << 50
	low, high := int64(0), int64(1) // low is kept, high is not known to be
	for {
		e, err := at(high)
		if err != nil {
			return 0, fmt.Errorf("steps for epsilon %v: %w", target, err)
		}
		if e > target {
			break
		}
		if high >= limit {
			return 0, fmt.Errorf("%w: epsilon stays below %v for %d steps and more", ErrUnreachable, target, high)
		}
		low, high = high, high*4
	}
	for high-low > 1 {
		middle := low + (high-low)/2
		e, err := at(middle)
		if err != nil {
			return 0, fmt.Errorf("steps for epsilon %v: %w", target, err)
		}
		if e <= target {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// search says where to look for a crossing: from start, in steps of factor, within
// [least, most], until epsilon is within a share close below the target.
type search struct{ start, least, most, factor, close float64 }

// crossing finds the smallest x with at(x) <= target, at falling. It brackets and
// then closes in by false position on logarithms, halving the weight of an end that
// stays (the Illinois rule).
func (s search) crossing(target float64, at func(float64) (float64, error)) (float64, error) {
	size := func(x float64) (float64, error) {
		e, err := at(x)
		if err != nil {
			return 0, err
		}
		if math.IsNaN(e) {
			return 0, fmt.Errorf("%w: epsilon is not a number at %v", ErrParameter, x)
		}
		// log(e/target), cut where it would be infinite.
		return math.Max(-20, math.Min(20, math.Log(e/target))), nil
	}
	low, high := s.start, s.start
	yLow, err := size(s.start)
	if err != nil {
		return 0, err
	}
	yHigh := yLow
	for yHigh > 0 {
		if high >= s.most {
			return 0, fmt.Errorf("%w: epsilon is still above %v at %g", ErrUnreachable, target, high)
		}
		low, yLow = high, yHigh
		high = math.Min(s.most, high*s.factor)
		if yHigh, err = size(high); err != nil {
			return 0, err
		}
	}
	for yLow <= 0 {
		if low <= s.least {
			return low, nil
		}
		high, yHigh = low, yLow
		low = math.Max(s.least, low/s.factor)
		if yLow, err = size(low); err != nil {
			return 0, err
		}
	}
	return s.closeIn(low, high, yLow, yHigh, size)
}

// closeIn narrows a bracket with yLow > 0 >= yHigh and returns its high end.
func (s search) closeIn(low, high, yLow, yHigh float64, size func(float64) (float64, error)) (float64, error) {
	l, h := math.Log(low), math.Log(high)
	weightLow, weightHigh := yLow, yHigh
	for i := 0; i < 200 && h-l > 1e-8 && yHigh < -s.close; i++ {
		x := l + (h-l)*weightLow/(weightLow-weightHigh)
		// Stay inside, and aim a little to the safe side so that the high end moves.
		x = math.Min(h-1e-3*(h-l), math.Max(l+1e-3*(h-l), x+s.close/3))
		if i%3 == 2 {
			x = l + (h-l)/2
		}
		y, err := size(math.Exp(x))
		if err != nil {
			return 0, err
		}
		if y > 0 {
			l, weightLow = x, y
			weightHigh /= 2
		} else {
			h, yHigh, weightHigh = x, y, y
			weightLow /= 2
		}
	}
	return math.Exp(h), nil
}
