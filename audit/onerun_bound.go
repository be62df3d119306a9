package audit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// OneRunBound is what one training proves (Steinke, Nasr and Jagielski 2023, theorem
// 5.2): of so many canaries, each trained on if its own fair coin said so, the attacker
// guessed some, and so many of these guesses were right. An (epsilon, delta)-private
// training would have allowed that with a probability below 1-confidence for every
// epsilon up to the one returned. Guesses may depend on one another; their number must be
// fixed beforehand.
func OneRunBound(canaries, guesses, right int, delta, confidence float64) (float64, error) {
	switch {
	case guesses < 1 || guesses > canaries || canaries > mostCanaries:
		return 0, fmt.Errorf("one run: %d guesses about %d canaries; allowed: 1 to the number of canaries, at most %d", guesses, canaries, mostCanaries)
	case right < 0 || right > guesses:
		return 0, fmt.Errorf("one run: %d of %d guesses right; allowed: 0 to %d", right, guesses, guesses)
	case !(delta >= 0 && delta < 1):
		return 0, fmt.Errorf("one run: delta %v; allowed: 0 or more, below 1", delta)
	case !(confidence >= 0.5 && confidence <= 1-1e-9):
		return 0, fmt.Errorf("one run: confidence %v; allowed: 0.5 to 0.999999999", confidence)
	}
	g := guessing{canaries: canaries, right: right, delta: delta, ways: waysOf(guesses)}
	level := 1 - confidence
	if g.chance(0) >= level {
		return 0, nil
	}
	low, high := 0.0, 1.0
	for g.chance(high) < level { // ends: near infinity everything is guessed right
		low, high = high, 2*high
	}
	for high-low > 1e-9*high {
		if middle := (low + high) / 2; g.chance(middle) < level {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// OneRunCeiling is what the bound cannot exceed, whatever the training leaks: every guess
// was right.
func OneRunCeiling(canaries, guesses int, delta, confidence float64) (float64, error) {
	return OneRunBound(canaries, guesses, guesses, delta, confidence)
}

// mostCanaries is what fits: one parameter each, and a bound in seconds.
const mostCanaries = 1_000_000

// guessing is what happened, to be held against one epsilon after another.
type guessing struct {
	canaries int
	right    int
	delta    float64
	ways     []float64 // log binomial coefficients of the guesses
}

// waysOf are log(n choose k) for all k.
func waysOf(n int) []float64 {
	ways := make([]float64, n+1)
	all, _ := math.Lgamma(float64(n) + 1)
	for k := range ways {
		in, _ := math.Lgamma(float64(k) + 1)
		out, _ := math.Lgamma(float64(n-k) + 1)
		ways[k] = all - in - out
	}
	return ways
}

// chance is what so many right guesses have at most under (epsilon, delta). Without
// delta a guess is right with e^epsilon/(1+e^epsilon) at most, and so many of them with
// the binomial tail beta. Delta lifts the tail's edge: by 2*canaries*delta times the
// largest mean weight, alpha, of the i values right below it.
func (g *guessing) chance(epsilon float64) float64 {
	n := len(g.ways) - 1
	yes := -math.Log1p(math.Exp(-epsilon))
	no := yes - epsilon
	at := func(k int) float64 { return math.Exp(g.ways[k] + float64(k)*yes + float64(n-k)*no) }
	beta := 0.0
	for k := n; k >= g.right; k-- {
		beta += at(k)
	}
	if g.delta == 0 {
		return beta
	}
	alpha, below := 0.0, 0.0
	for i := 1; i <= g.right; i++ {
		below += at(g.right - i)
		alpha = max(alpha, below/float64(i))
	}
	return beta + 2*float64(g.canaries)*g.delta*alpha
}

// guessByRank takes the canaries with the highest scores, half of all guesses, for
// trained on and those with the lowest for not, and counts how often that is right. An
// odd guess goes to the highest. Equal scores fall by place, which says nothing.
func guessByRank(scores []float64, in []bool, guesses int) (right int) {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	low := guesses / 2
	for _, i := range order[:guesses-low] {
		if in[i] {
			right++
		}
	}
	for _, i := range order[len(order)-low:] {
		if !in[i] {
			right++
		}
	}
	return right
}
