package audit

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/rng"
)

// canaryAttack is the best test there is for what the server sees, the likelihood
// ratio, round by round.
type canaryAttack []canaryRound

// canaryRound is a round as charged. In units of the clip the server sees the sum of
// its steps: of noise, and of the canary in every step that draws it.
type canaryRound struct {
	steps   int
	rate    float64
	noise   float64
	nodes   int64     // that examples of one person are; 0: canaries are examples. Noise is in units of what one moves
	weights []float64 // log probability that so many steps draw the canary
}

// newCanaryAttack reads the rounds off what was charged for them.
func newCanaryAttack(charged []event.Release) (canaryAttack, error) {
	attack := make(canaryAttack, len(charged))
	for i, r := range charged {
		if i > 0 && fmt.Sprint(r) == fmt.Sprint(charged[i-1]) {
			attack[i] = attack[i-1]
			continue
		}
		round := canaryRound{rate: 1}
		if err := round.read(r.What, 1); err != nil {
			return nil, fmt.Errorf("canary: round %d: %w", i+1, err)
		}
		if round.steps < 1 || round.steps > 1<<20 {
			return nil, fmt.Errorf("canary: round %d was charged for %d noised steps; allowed: 1 to %d", i+1, round.steps, 1<<20)
		}
		round.settle()
		attack[i] = round
	}
	return attack, nil
}

// settle computes the weights.
func (r *canaryRound) settle() {
	n := float64(r.steps)
	all, _ := math.Lgamma(n + 1)
	r.weights = make([]float64, 0, r.steps+1)
	for k := 0.0; k <= n; k++ {
		in, _ := math.Lgamma(k + 1)
		out, _ := math.Lgamma(n - k + 1)
		r.weights = append(r.weights, all-in-out+xlogy(k, r.rate)+xlogy(n-k, 1-r.rate))
	}
}

// xlogy is x*log(y), and 0 where x is.
func xlogy(x, y float64) float64 {
	if x == 0 {
		return 0
	}
	return x * math.Log(y)
}

// read adds up an event's steps, which must all be of one kind.
func (r *canaryRound) read(e event.Event, times int64) error {
	switch e := e.(type) {
	case event.Composed:
		for _, part := range e.Parts {
			if err := r.read(part, times); err != nil {
				return err
			}
		}
		return nil
	case event.Repeated:
		return r.read(e.Of, times*e.Times)
	case event.Sampled:
		if n, ok := e.Of.(event.NodeSum); ok && e.Sampling == event.FullBatch {
			return r.moved(n, times)
		}
		g, ok := e.Of.(event.Gaussian)
		if !ok || e.Sampling != event.Poisson && e.Sampling != event.FullBatch {
			return notKnown(e)
		}
		rate := 1.0
		if e.Sampling == event.Poisson {
			rate = e.Rate
		}
		return r.add(rate, g.Noise, times)
	case event.Gaussian:
		return r.add(1, e.Noise, times)
	}
	return notKnown(e)
}

// notKnown is a charge that the attack cannot be held against.
func notKnown(e event.Event) error {
	return fmt.Errorf("%s: that was charged; the audit knows Gaussian noise on Poisson batches", event.Describe(e))
}

func (r *canaryRound) add(rate, noise float64, times int64) error {
	if r.steps > 0 && (r.rate != rate || r.noise != noise) {
		return fmt.Errorf("steps of several kinds were charged in one round, of noise %v and %v; the audit knows equal ones", r.noise, noise)
	}
	r.rate, r.noise = rate, noise
	r.steps += int(min(times, 1<<40))
	return nil
}

// logRatio is how much likelier x is with the canary, as charged: k of n steps draw
// it with a binomial probability, and then x is N(k, n*noise^2).
func (r *canaryRound) logRatio(x float64) float64 {
	variance := float64(r.steps) * r.noise * r.noise
	if r.steps == 1 {
		return r.stepRatio(x)
	}
	if r.rate == 1 {
		k := float64(r.steps)
		return (k*x - k*k/2) / variance
	}
	most, total := math.Inf(-1), 0.0
	at := func(k int) float64 { return r.weights[k] + (float64(k)*x-float64(k)*float64(k)/2)/variance }
	for k := range r.weights {
		most = max(most, at(k))
	}
	for k := range r.weights {
		total += math.Exp(at(k) - most)
	}
	return most + math.Log(total)
}

const (
	// mostPilots and pilotRounds bound how many runs of the mechanism as charged, drawn
	// without the pipeline, settle how the server guesses.
	mostPilots  = 100_000
	pilotRounds = 4_000_000
	// lessNoise is the fault that Power is about.
	lessNoise = 0.8
)

// pilots is how many runs settle how the server guesses.
func (a canaryAttack) pilots() int { return max(1000, min(mostPilots, pilotRounds/len(a))) }

// draw makes scores of the mechanism itself, with a share of the noise charged.
func (a canaryAttack) draw(share float64, runs int, seed uint64) canaryScores {
	family := rng.NewFamily(seed, "canary pilot")
	var scores canaryScores
	for side := range scores {
		s := family.Stream(0, side)
		scores[side] = make([]float64, runs)
		for i := range scores[side] {
			for j := range a {
				r, x := &a[j], 0.0
				if side == 1 {
					for range r.steps {
						if s.Float64() < r.rate {
							x++
						}
					}
				}
				x += share * r.noise * math.Sqrt(float64(r.steps)) * s.Normal()
				scores[side][i] += r.logRatio(x)
			}
		}
	}
	return scores
}

// above counts the scores of a side above a threshold.
func (c canaryScores) above(side int, threshold float64) int {
	count := 0
	for _, score := range c[side] {
		if score > threshold {
			count++
		}
	}
	return count
}

// rightGuesses counts them where the server takes scores above a threshold for the
// canary.
func (c canaryScores) rightGuesses(threshold float64) int {
	return c.above(1, threshold) + len(c[0]) - c.above(0, threshold)
}

// threshold is a good one for runs like these: 0, where both sides are equally likely
// as charged, or, for a silo that does something else, where both sides' errors are
// if scores are normal.
func (c canaryScores) threshold() float64 {
	without, spread0 := stat.MeanStdDev(c[0], nil)
	with, spread1 := stat.MeanStdDev(c[1], nil)
	between := (without*spread1 + with*spread0) / (spread0 + spread1)
	if c.rightGuesses(between) > c.rightGuesses(0) { // NaN is not
		return between
	}
	return 0
}

// guess counts right guesses of the runs that count, by the threshold of the others.
func (c canaryScores) guess(o CanaryOptions) int {
	n := o.learned()
	learned, counted := canaryScores{c[0][:n], c[1][:n]}, canaryScores{c[0][n:], c[1][n:]}
	return counted.rightGuesses(learned.threshold())
}

// curveFree is the bound that needs no curve, at a threshold.
func (c canaryScores) curveFree(threshold float64, o CanaryOptions) float64 {
	return curveFreeEpsilon(c.above(0, threshold), c.above(1, threshold), len(c[0]), o)
}

// bestThreshold is where the curve-free bound is largest if the runs fall as these.
func (c canaryScores) bestThreshold(o CanaryOptions) float64 {
	sorted := canaryScores{slices.Sorted(slices.Values(c[0])), slices.Sorted(slices.Values(c[1]))}
	n := len(sorted[0])
	threshold, most := 0.0, -1.0
	const candidates = 200
	for side := range sorted {
		for i := range candidates {
			t := sorted[side][(2*i+1)*n/(2*candidates)]
			var hits [2]int
			for k, s := range sorted {
				beyond := n - sort.SearchFloat64s(s, math.Nextafter(t, math.Inf(1)))
				hits[k] = int(math.Round(float64(beyond) / float64(n) * float64(o.Runs)))
			}
			if e := curveFreeEpsilon(hits[0], hits[1], o.Runs, o); e > most {
				threshold, most = t, e
			}
		}
	}
	return threshold
}
