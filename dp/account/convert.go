package account

import (
	"fmt"
	"math"
)

// Conversion turns a Rényi bound at one order into epsilon at a delta.
type Conversion int

const (
	// Improved is equation 1.4 of paper 002 (Canonne, Kamath and Steinke 2020,
	// proposition 12), and epsilon 0 where delta covers the total variation.
	Improved Conversion = iota
	// Classical is Mironov 2017, proposition 3.
	Classical
)

// epsilon is never below zero; delta must be in (0, 1).
func (c Conversion) epsilon(order, rdp, delta float64) float64 {
	switch {
	case math.IsInf(rdp, 1):
		return math.Inf(1)
	case rdp == 0:
		return 0
	case math.IsInf(order, 1):
		return rdp
	case c == Classical:
		return rdp - math.Log(delta)/(order-1)
	case delta*delta+math.Expm1(-rdp) > 0:
		return 0 // delta covers the total variation
	}
	return math.Max(0, rdp+math.Log1p(-1/order)-(math.Log(delta)+math.Log(order))/(order-1))
}

// delta is the same bounds solved for delta.
func (c Conversion) delta(order, rdp, epsilon float64) float64 {
	switch {
	case math.IsInf(rdp, 1):
		return 1
	case rdp == 0:
		return 0
	case math.IsInf(order, 1):
		if rdp <= epsilon {
			return 0
		}
		return 1
	case c == Classical:
		return math.Min(1, math.Exp((order-1)*(rdp-epsilon)))
	}
	return math.Min(math.Exp(logDelta(order, rdp, epsilon)), totalVariation(rdp))
}

// logDelta is the logarithm of equation 1.4's delta, of which the best order can be
// searched: it falls and then rises. The least of it and of the total variation, which is
// least at the lowest order, has two valleys.
func logDelta(order, rdp, epsilon float64) float64 {
	return (order-1)*(rdp-epsilon+math.Log1p(-1/order)) - math.Log(order)
}

// totalVariation is Bretagnolle and Huber's bound: sqrt(1 - e^-KL), KL <= rdp.
func totalVariation(rdp float64) float64 { return math.Sqrt(-math.Expm1(-rdp)) }

// LeastDelta is the least delta beside 0: below 2.2e-308, where a float64 loses digits,
// math.Log is wrong by up to 35.
const LeastDelta = 1e-300

// checkDelta refuses what is no probability, 1 included: at delta = 1 nothing is
// promised.
func checkDelta(delta float64) error {
	if delta == 0 || delta >= LeastDelta && delta < 1 {
		return nil
	}
	return parameter("delta", delta, fmt.Sprintf("0 <= delta < 1, and 0 or at least %g", LeastDelta))
}

// checkPositiveDelta is checkDelta for what needs one above 0.
func checkPositiveDelta(delta float64) error {
	if delta >= LeastDelta && delta < 1 {
		return nil
	}
	return parameter("delta", delta, fmt.Sprintf("0 < delta < 1, and at least %g", LeastDelta))
}

func checkOrders(orders []float64) error {
	for _, a := range orders {
		if !(a > 1) {
			return fmt.Errorf("%w: order %v, want orders above 1", ErrParameter, a)
		}
	}
	return nil
}

// startOrders spread the search: with the default refinement the list only has
// to bracket the best order.
var startOrders = []float64{
	1.001, 1.003, 1.01, 1.03, 1.06, 1.1, 1.2, 1.35, 1.6, 2, 2.5, 3, 4, 5, 6, 8, 10, 13, 16, 20, 26, 32, 45,
	64, 90, 128, 256, 512, 1024, 2048, 4096, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 24, 1 << 30,
}

// startAt is the index of an order in the usual range, where the walk begins.
const startAt = 13

// bestOrder finds the order at which cost is least: over orders if there are
// any, else by a walk over startOrders and a refinement between the neighbours of
// the best. For a true Rényi curve (order-1)*epsilon is convex in the order, so
// epsilon falls and then rises and the walk cannot miss the minimum
// (docs/proofs/rdp.md); for a bound that is not, what is found is still a bound.
func bestOrder(orders []float64, cost func(order float64) float64) (order, least float64) {
	least = math.Inf(1)
	try := func(a float64) float64 {
		value := cost(a)
		if value < least || order == 0 {
			order, least = a, value
		}
		return value
	}
	if len(orders) > 0 {
		for _, a := range orders {
			try(a)
		}
		return order, least
	}
	// The bounds by total variation are best at the lowest order and make a
	// second valley there.
	if try(startOrders[0]) == 0 {
		return order, least
	}
	at := walk(try)
	low, high := startOrders[max(at-1, 0)], startOrders[min(at+1, len(startOrders)-1)]
	refine(low, high, try)
	return order, least
}

// walk goes downhill from startAt over startOrders and returns the best index.
func walk(try func(float64) float64) int {
	best := startAt
	least := try(startOrders[best])
	for _, direction := range []int{1, -1} {
		worse := 0
		for i := startAt + direction; i >= 0 && i < len(startOrders) && worse < 2; i += direction {
			// Flat or infinite stretches are crossed; two steps uphill end the walk.
			switch value := try(startOrders[i]); {
			case value < least:
				least, best, worse = value, i, 0
			case value > least && !math.IsInf(least, 1):
				worse++
			}
		}
		if least == 0 {
			break
		}
	}
	return best
}

// refine is a golden-section search in log(order-1).
func refine(low, high float64, try func(float64) float64) {
	const golden = 0.6180339887498949
	at := func(x float64) (float64, float64) {
		a := 1 + math.Exp(x)
		if a > 100 {
			a = math.Round(a) // integers are cheaper, and dense enough up here
		}
		return x, try(a)
	}
	l, h := math.Log(low-1), math.Log(high-1)
	x1, y1 := at(h - golden*(h-l))
	x2, y2 := at(l + golden*(h-l))
	// The minimum is flat: 1e-3 in the order is 1e-7 or less in epsilon.
	for h-l > 1e-3 {
		if y1 <= y2 {
			h, x2, y2 = x2, x1, y1
			x1, y1 = at(h - golden*(h-l))
		} else {
			l, x1, y1 = x1, x2, y2
			x2, y2 = at(l + golden*(h-l))
		}
	}
}
