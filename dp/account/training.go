package account

import (
	"errors"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/event"
)

// Method names an accountant.
type Method string

// The accountants of (epsilon, delta) for a whole release.
const (
	// MethodBest is the accountant with the smaller number where several are valid.
	MethodBest Method = "best"
	MethodRDP  Method = "rdp"
	MethodPLD  Method = "pld"
)

// Spend is what one release costs by itself, with continuous noise. Orders fix the
// Rényi orders and have no meaning for PLD.
func Spend(r event.Release, m Method, delta float64, orders ...float64) (Guarantee, error) {
	return spend(r, m, delta, nil, orders)
}

// SpendExact is what one release costs whose noise is exact.
func SpendExact(r event.Release, m Method, delta float64, l Lattice, orders ...float64) (Guarantee, error) {
	return spend(r, m, delta, &l, orders)
}

func spend(r event.Release, m Method, delta float64, l *Lattice, orders []float64, options ...PLDOption) (Guarantee, error) {
	if m == MethodBest {
		return best(r, delta, l, orders, options)
	}
	a, err := newAccountant(TermsOf(r), m, l, orders, options)
	if err != nil {
		return Guarantee{}, err
	}
	if err := a.Compose(r); err != nil {
		return Guarantee{}, err
	}
	return a.Guarantee(delta)
}

func newAccountant(t Terms, m Method, l *Lattice, orders []float64, options []PLDOption) (Accountant, error) {
	switch m {
	case MethodRDP:
		settings := []Option{WithOrders(orders...)}
		if l != nil {
			settings = append(settings, WithExactNoise())
		}
		return NewRDP(t, settings...)
	case MethodPLD:
		if len(orders) > 0 {
			return nil, parameter("orders", orders, "none with the PLD accountant")
		}
		if l != nil {
			options = append(options, WithLattice(*l))
		}
		return NewPLD(t, options...)
	}
	return nil, parameter("accountant", m, "best, rdp or pld")
}

// best is the smaller number of RDP, which bounds everything, and PLD, which does not:
// schedules are taken to be fixed in advance. With orders given there is no choice.
func best(r event.Release, delta float64, l *Lattice, orders []float64, options []PLDOption) (Guarantee, error) {
	renyi, err := spend(r, MethodRDP, delta, l, orders)
	if err != nil || len(orders) > 0 {
		return renyi, err
	}
	loss, err := spend(r, MethodPLD, delta, l, nil, options...)
	if errors.Is(err, ErrUnsupported) || errors.Is(err, ErrParameter) {
		return renyi, nil
	}
	if err != nil || loss.Epsilon < renyi.Epsilon {
		return loss, err
	}
	renyi.Optimistic = loss.Optimistic
	return renyi, nil
}

// Training is a plan of noised gradient steps. Noise is S = sigma/C.
type Training struct {
	Terms    Terms
	Trust    event.Trust
	Sampling event.Sampling
	Noise    float64
	Rate     float64       // Poisson
	Batch    int64         // the other samplings
	Examples int64         // the other samplings
	Steps    int64         // batches; epochs under Shuffle
	Runs     int64         // how often the whole is run, 0 for once: a grid that shares one budget
	Also     []event.Event // charged beside the steps, once a run
	Lattice  *Lattice      // of exact noise; nil: continuous noise
	// Nodes is how many examples change at most when a node of a graph goes; 0: examples are
	// protected, not nodes. Steps on batches are then those of the thesis's theorem, whichever
	// way batches are drawn.
	Nodes int64
	// Keep is the share of contacts that every step keeps, by a draw of its own: Nodes is then
	// one more than the contacts that nobody has more of. 0: they are not thinned.
	Keep float64
}

// Release is the plan as a release.
func (p Training) Release() (event.Release, error) {
	sampled := event.Sampled{Sampling: p.Sampling, Of: event.Gaussian{Noise: p.Noise}}
	switch {
	case p.Keep > 0:
		sampled.Of = event.NodeThinned{Degree: p.Nodes - 1, Keep: p.Keep, Noise: p.Noise}
	case p.Nodes > 0:
		sampled.Of = event.NodeSum{Examples: p.Nodes, Noise: p.Noise}
	}
	if p.Sampling == event.Poisson {
		sampled.Rate = p.Rate
	} else if p.Sampling != event.FullBatch {
		sampled.Batch, sampled.Examples = p.Batch, p.Examples
	}
	step := event.Event(sampled)
	if p.Nodes > 0 && p.Sampling != event.FullBatch {
		step = event.NodeGaussian{Nodes: p.Examples, Occurrences: p.Nodes, Batch: p.Batch, Noise: p.Noise, Formula: event.Theorem}
	}
	parts := append([]event.Event{event.Repeated{Times: p.Steps, Of: step}}, p.Also...)
	r := event.Release{
		Unit: p.Terms.Unit, Relation: p.Terms.Relation, Claim: p.Terms.Claim, Trust: p.Trust,
		What: event.Composed{Parts: parts},
	}
	if p.Runs != 0 {
		r.What = event.Repeated{Times: p.Runs, Of: r.What}
	}
	if err := r.Validate(); err != nil {
		return event.Release{}, misfit{err}
	}
	return r, nil
}

// Guarantee is what the plan costs.
func (p Training) Guarantee(m Method, delta float64, orders ...float64) (Guarantee, error) {
	r, err := p.Release()
	if err != nil {
		return Guarantee{}, err
	}
	return spend(r, m, delta, p.Lattice, orders)
}

// WithNoiseFor is the plan with the least noise that keeps (epsilon, delta), and
// what it costs. With Runs it is the noise of a grid that shares one budget
// (paper 001, section 3.7).
func (p Training) WithNoiseFor(m Method, epsilon, delta float64, orders ...float64) (Training, Guarantee, error) {
	if p.Steps == 0 || p.Sampling == event.Poisson && p.Rate == 0 {
		return p, Guarantee{}, fmt.Errorf("%w: a plan without steps or with rate 0 needs no noise", ErrParameter)
	}
	if err := checkBudget(epsilon, delta); err != nil {
		return p, Guarantee{}, err
	}
	if len(orders) > 0 && m == MethodBest {
		m = MethodRDP
	}
	if err := p.leavesRoom(epsilon, delta, orders); err != nil {
		return p, Guarantee{}, err
	}
	from := search{start: 1, factor: 3, close: 1e-9}
	if m != MethodRDP {
		// PLD is slower and a little below RDP, so RDP's answer is a good start.
		near, _, err := p.WithNoiseFor(MethodRDP, epsilon, delta)
		if err != nil {
			return p, Guarantee{}, err
		}
		from = search{start: near.Noise, factor: 1.2, close: 2e-7}
	}
	noise, err := leastNoise(epsilon, from, func(noise float64) (float64, error) {
		p.Noise = noise
		return p.epsilon(m, delta, orders)
	})
	if err != nil {
		return p, Guarantee{}, err
	}
	p.Noise = noise
	return p.checked(m, epsilon, delta, orders)
}

// leavesRoom says whether what is charged beside the steps costs less than epsilon: no
// noise in them makes up for it. Without it the search would go on to the very end.
func (p Training) leavesRoom(epsilon, delta float64, orders []float64) error {
	if len(p.Also) == 0 {
		return nil
	}
	p.Steps, p.Noise = 0, 1
	rest, err := p.Guarantee(MethodRDP, delta, orders...)
	if err == nil && rest.Epsilon > epsilon {
		err = tooDear(epsilon, rest.Epsilon)
	}
	return err
}

// WithStepsFor is the plan with the most steps that keep (epsilon, delta).
func (p Training) WithStepsFor(m Method, epsilon, delta float64, orders ...float64) (Training, Guarantee, error) {
	steps, err := MostSteps(epsilon, func(steps int64) (float64, error) {
		p.Steps = steps
		return p.epsilon(m, delta, orders)
	})
	if err != nil {
		return p, Guarantee{}, err
	}
	p.Steps = steps
	return p.checked(m, epsilon, delta, orders)
}

// WithRateFor is the plan with the largest Poisson rate that keeps (epsilon, delta).
func (p Training) WithRateFor(m Method, epsilon, delta float64, orders ...float64) (Training, Guarantee, error) {
	if p.Sampling != event.Poisson {
		return p, Guarantee{}, fmt.Errorf("%w: a rate can be solved for with Poisson sampling only", ErrSampling)
	}
	rate, err := MostRate(epsilon, func(rate float64) (float64, error) {
		p.Rate = rate
		return p.epsilon(m, delta, orders)
	})
	if err != nil {
		return p, Guarantee{}, err
	}
	p.Rate = rate
	return p.checked(m, epsilon, delta, orders)
}

func (p Training) epsilon(m Method, delta float64, orders []float64) (float64, error) {
	r, err := p.Release()
	if err != nil {
		return 0, err
	}
	g, err := spend(r, m, delta, p.Lattice, orders, quick)
	return g.Epsilon, err
}

// checked computes the solved plan's cost anew and holds it against the target.
func (p Training) checked(m Method, epsilon, delta float64, orders []float64) (Training, Guarantee, error) {
	g, err := p.Guarantee(m, delta, orders...)
	if err != nil {
		return p, g, err
	}
	if g.Epsilon > epsilon {
		return p, g, fmt.Errorf("%w: the plan that was solved for costs epsilon %v, above the target of %v", ErrUnreachable, g.Epsilon, epsilon)
	}
	return p, g, nil
}

// Epochs is the number of batches in a number of epochs: the last, smaller batch
// of an epoch counts.
func Epochs(epochs, batch, examples int64) (steps int64, err error) {
	if epochs < 0 || batch < 1 || examples < batch {
		return 0, fmt.Errorf("%w: epochs = %d, batch = %d, examples = %d, want epochs >= 0 and 1 <= batch <= examples", ErrParameter, epochs, batch, examples)
	}
	each := (examples + batch - 1) / batch
	if epochs > math.MaxInt64/each {
		return 0, fmt.Errorf("%w: %d epochs of %d steps are too many", ErrParameter, epochs, each)
	}
	return epochs * each, nil
}

// AsPaper rewrites a plan of shuffled epochs as the papers account for it: as if
// every batch had been a Poisson sample. No proof covers that, so the claim is
// heuristic and the relation add-remove; print the sound number beside it.
func (p Training) AsPaper() (Training, error) {
	if p.Sampling != event.Shuffle {
		return p, fmt.Errorf("%w: the papers' reading is of shuffled batches, not %q", ErrSampling, p.Sampling)
	}
	steps, err := Epochs(p.Steps, p.Batch, p.Examples)
	if err != nil {
		return p, err
	}
	p.Sampling, p.Steps, p.Rate = event.Poisson, steps, float64(p.Batch)/float64(p.Examples)
	p.Batch, p.Examples = 0, 0
	p.Terms.Relation, p.Terms.Claim = event.AddRemove, event.ClaimHeuristic
	return p, nil
}
