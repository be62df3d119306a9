package mech

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// Randomness is where noise comes from: exact noise on the lattice from entropy, or,
// for simulation, floats from a keyed source.
type Randomness struct {
	Exact *Entropy
	Keyed rand.Source
}

// StepRule says how noised gradient steps draw their batches and protect examples.
type StepRule struct {
	Clip     float64 // largest norm of an example's gradient; where a clip rule starts
	Noise    float64 // that a step is charged for: standard deviation divided by the clip
	Clipping ClipRule
	Sampling event.Sampling
	Rate     float64 // of Poisson batches; and of shuffled ones, as the papers account for them
	Batch    int     // examples of a step, but for Poisson
	Examples int     // how many there are, but for Poisson: a public number
	// Nodes is how many examples change at most when a node of a graph goes, where nodes are
	// protected; 0: examples are. Batches of such examples are drawn from Examples places, of
	// which the last may be empty: how many are not is private.
	Nodes int
	// Keep is the share of contacts that every step keeps, by a secret of its own; Nodes is
	// then one more than the contacts that nobody has more of. 0: they are not thinned.
	Keep float64
}

// Event is what one step costs. Where the claim is heuristic, shuffled batches are
// priced as the papers do, as if they were Poisson samples (DESIGN, erratum 10).
func (r StepRule) Event(claim event.Claim) event.Event {
	switch {
	case r.Keep > 0:
		return event.NodeThinned{Degree: int64(r.Nodes) - 1, Keep: r.Keep, Noise: r.Noise}
	case r.Nodes > 0 && r.Sampling != event.FullBatch:
		return event.NodeGaussian{Nodes: int64(r.Examples), Occurrences: int64(r.Nodes), Batch: int64(r.Batch), Noise: r.Noise, Formula: event.Theorem}
	case r.Nodes > 0:
		return event.NodeSum{Examples: int64(r.Nodes), Noise: r.Noise}
	}
	e := event.Sampled{Sampling: r.Sampling, Of: Gaussian{Multiplier: r.Noise}.Event()}
	switch {
	case r.Sampling == event.Poisson, r.Sampling == event.Shuffle && claim == event.ClaimHeuristic:
		e.Sampling, e.Rate = event.Poisson, r.Rate
	default:
		e.Batch, e.Examples = int64(r.Batch), int64(r.Examples)
	}
	return e
}

// Steps are the gradient steps that a release has paid for: they draw each batch, say
// what its gradients are clipped to, and noise their sum, all by the rule that was
// charged. A step more than was paid for is refused. Not safe for concurrent use.
type Steps struct {
	rule    StepRule
	noise   Gaussian // of the gradients' sum
	second  Gaussian // of what a clip rule goes by
	state   ClipState
	trace   *StepTrace // nil: nobody watches
	terms   Terms
	paid    *Paid
	at      int // where paid lists a step
	sampler Sampler
	secrets *Entropy // that contacts are thinned by; of batches, too
	secret  [16]byte // of the step that has begun
	from    Randomness
	begun   bool // a step's batch is out and not noised
	taken   []int
	signs   signs
}

// Open prepares to draw steps of a rule; it refuses a rule that was not paid for. A clip
// rule begins anew: Continue has it go on.
func (s *Steps) Open(paid *Paid, rule StepRule, batches *Entropy, from Randomness) error {
	charged := Gaussian{Multiplier: rule.Noise}
	if err := charged.check(); err != nil {
		return err
	}
	switch {
	case !(rule.Clip > 0) || math.IsInf(rule.Clip, 0):
		return fmt.Errorf("steps: clip %v must be positive and finite", rule.Clip)
	case from.Exact == nil && from.Keyed == nil:
		return fmt.Errorf("steps: no source to draw noise from")
	}
	if err := rule.Clipping.check(rule.Clip); err != nil {
		return fmt.Errorf("steps: %w", err)
	}
	step := rule.Event(paid.claim)
	if rule.Nodes > 0 && (rule.Sampling == event.Poisson || rule.Clipping.Signal != SignalNone) {
		return fmt.Errorf("steps: for nodes, on %s batches with a clip that is learned or not; known is every example in every step, or so many drawn without replacement, with a clip that is not learned", rule.Sampling)
	}
	if rule.Nodes > 0 && rule.Sampling == event.Shuffle && paid.claim != event.ClaimHeuristic {
		return fmt.Errorf("steps: for nodes, on batches of a shuffled order, with the claim %s; the theorem is of batches that are drawn afresh: allowed is %s", paid.claim, event.ClaimHeuristic)
	}
	if rule.Keep != 0 && rule.Sampling != event.FullBatch {
		return fmt.Errorf("steps: with thinned contacts, on %s batches; allowed: every example in every step", rule.Sampling)
	}
	if rule.Keep != 0 && (!(rule.Keep > 0 && rule.Keep <= 1) || rule.Nodes < 2) {
		return fmt.Errorf("steps: contacts thinned to a share of %v, with examples of %d at most that change; allowed: above 0 and at most 1, and 2 or more", rule.Keep, rule.Nodes)
	}
	if rule.Keep > 0 && paid.terms.Relation != event.Removal {
		return fmt.Errorf("steps: for nodes with thinned contacts, under %s; what is thinned is counted under %s alone", paid.terms.Relation, event.Removal)
	}
	if rule.Nodes > 0 && rule.Sampling != event.FullBatch && paid.terms.Relation == event.ReplaceOne {
		return fmt.Errorf("steps: for nodes, on batches, under %s; what changes was counted for a node that goes, and one that comes in its place changes others': allowed: %s, %s", event.ReplaceOne, event.OwnRecord, event.Removal)
	}
	if rule.Nodes > 0 && paid.terms.Relation == event.AddRemove {
		return fmt.Errorf("steps: for nodes, under %s, which does not say whose reports go with a node; allowed: %s, %s, %s", event.AddRemove, event.OwnRecord, event.Removal, event.ReplaceOne)
	}
	terms, what := paid.terms, event.Event(charged.Event())
	if rule.Nodes > 0 {
		what = step
	}
	if _, err := terms.release(what, false); err != nil {
		return fmt.Errorf("steps: %w", err)
	}
	if rule.Nodes > 0 {
		// What a node costs was just found among what was paid for. The sum is one of
		// clipped examples like any other.
		terms.Relation = event.AddRemove
	}
	at, err := paid.find(step)
	if err != nil {
		return fmt.Errorf("steps: %w", err)
	}
	if err := s.sampler.Open(rule.Sampling, rule.Rate, rule.Batch, batches); err != nil {
		return fmt.Errorf("steps: %w", err)
	}
	gradient, second := rule.Clipping.noises(rule.Noise)
	s.rule, s.noise, s.second, s.terms, s.paid, s.at, s.from, s.begun = rule, Gaussian{gradient}, Gaussian{second}, terms, paid, at, from, false
	s.secrets = batches
	s.state, s.trace = ClipState{Clip: rule.Clip, Pace: 1}, nil
	s.signs.reset()
	return nil
}

// Continue has the steps go on from where earlier ones, of the same rule, ended.
func (s *Steps) Continue(from *ClipState) {
	if from == nil || from.Steps == 0 || !s.rule.Clipping.moves() {
		return
	}
	s.state.Steps, s.state.Clip, s.state.Pace = from.Steps, from.Clip, from.Pace
	s.rule.Clipping.limit(&s.state)
	s.signs.load(from)
}

// Save sets to to where the steps have come, if their rule moves anything. What to held
// before can be gone back to until the steps are opened again: later its memory is theirs.
func (s *Steps) Save(to *ClipState) {
	if !s.rule.Clipping.moves() {
		return
	}
	to.Steps, to.Clip, to.Pace = s.state.Steps, s.state.Clip, s.state.Pace
	if s.signs.undrawn > 0 { // what is kept is what was released
		addNormals(s.signs.released.direction, s.signs.undrawn, s.from.Keyed)
		s.signs.undrawn, s.signs.bare = 0, s.signs.bare.empty()
	}
	s.signs.save(to)
}

// Watch has the steps count what they do: for simulations alone. See StepTrace.
func (s *Steps) Watch(t *StepTrace) { s.trace = t }

// Clip is what every example's gradient is clipped to in the next step.
func (s *Steps) Clip() float64 { return s.state.Clip }

// Pace is what the size of the next step is multiplied by.
func (s *Steps) Pace() float64 { return s.state.Pace }

// Deviation is that of the noise in the next step's sum.
func (s *Steps) Deviation() float64 { return s.noise.Multiplier * s.state.Clip }

// Exact says whether sums are integers on a lattice, with exact noise.
func (s *Steps) Exact() bool { return s.from.Exact != nil }

// Batch begins a step: it draws which of size examples are in it. Under samplings with
// a public number of examples size must be that number.
func (s *Steps) Batch(size int) ([]int, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	switch {
	case s.rule.Nodes > 0 && s.rule.Sampling != event.FullBatch:
		return s.fromPlaces(size)
	case s.rule.Sampling != event.Poisson && s.rule.Nodes == 0 && size != s.rule.Examples:
		return nil, fmt.Errorf("steps: %d examples, accounted were %d", size, s.rule.Examples)
	}
	return s.sampler.Batch(size)
}

// Ahead has the next step's batch, of as many examples, drawn meanwhile: see Sampler.Ahead.
// Nothing is begun by it, or paid for.
func (s *Steps) Ahead(size int) {
	if s.rule.Nodes == 0 {
		s.sampler.Ahead(size)
	}
}

// Settle ends that: see Sampler.Settle.
func (s *Steps) Settle() { s.sampler.Settle() }

// fromPlaces draws from as many places as were accounted, and leaves the empty ones out: so
// nothing that is drawn tells how many examples there are.
func (s *Steps) fromPlaces(size int) ([]int, error) {
	if size > s.rule.Examples {
		return nil, fmt.Errorf("steps: %d examples in %d places that were accounted", size, s.rule.Examples)
	}
	batch, err := s.sampler.Batch(s.rule.Examples)
	if err != nil || size == s.rule.Examples {
		return batch, err
	}
	taken := s.taken[:0]
	for _, i := range batch {
		if i < size {
			taken = append(taken, i)
		}
	}
	s.taken = taken
	return taken, nil
}

// Blank begins a step without any example: what is released is noise alone.
func (s *Steps) Blank() error { return s.begin() }

func (s *Steps) begin() error {
	if err := s.paid.take(s.at); err != nil {
		return fmt.Errorf("steps: %w", err)
	}
	if s.rule.Keep > 0 {
		if err := s.secrets.fillSecret(&s.secret); err != nil {
			return fmt.Errorf("steps: %w", err)
		}
	}
	s.begun = true
	return nil
}

// Thinning is what contacts are thinned by in the step that has begun: a secret that serves
// this step alone, and the share that was paid for. Keep 0: contacts are not thinned.
func (s *Steps) Thinning() (secret [16]byte, keep float64, err error) {
	switch {
	case s == nil || s.rule.Keep == 0:
		return secret, 0, nil
	case !s.begun:
		return secret, 0, fmt.Errorf("steps: %w: contacts of a step that has not begun", ErrUnpaid)
	}
	return s.secret, s.rule.Keep, nil
}

// end is asked right before noise is drawn: one noise a batch, on a sum with the
// rule's bound.
func (s *Steps) end(bound float64, signal ClipSignal) error {
	switch {
	case !s.begun:
		return fmt.Errorf("steps: %w: noise without a batch", ErrUnpaid)
	case bound != s.state.Clip:
		return fmt.Errorf("steps: a sum clipped to %v, accounted was %v", bound, s.state.Clip)
	case signal != s.rule.Clipping.Signal:
		return fmt.Errorf("steps: a sum that was not prepared for the clip rule")
	}
	s.begun = false
	return nil
}

// SimulateStep ends a step in a simulation: it sets dst to the sum with float noise, and
// moves the clip by what was released.
func SimulateStep[F float32 | float64](s *Steps, dst []F, sum *LaneSum[F]) error {
	if err := s.end(sum.bound, sum.signal); err != nil {
		return err
	}
	if s.rule.Clipping.Signal == SignalNone && s.trace == nil {
		_, err := SimulateLanes(s.noise, dst, sum, s.terms, s.from.Keyed)
		s.rule.Clipping.fall(&s.state)
		return err
	}
	if err := sum.parts(dst); err != nil {
		return fmt.Errorf("gaussian: %w", err)
	}
	s.watch(sum.counts)
	rule := &s.rule.Clipping
	switch rule.Signal {
	case SignalDirections:
		simulateDirections(s, dst, sum)
	default:
		addNormals(dst, s.noise.Multiplier*sum.bound, s.from.Keyed)
	}
	if rule.Signal == SignalCount {
		inside := []float64{sum.inside()}
		addNormals(inside, s.second.Multiplier/2, s.from.Keyed)
		rule.follow(&s.state, inside[0], s.rule.Batch)
	}
	rule.fall(&s.state)
	return nil
}

// simulateDirections adds the gradients' noise to dst, and moves the clip by both sums. All
// that happens to a block of coordinates happens while it is in the cache. The directions'
// noise is not drawn here: see signs.undrawn.
func simulateDirections[F float32 | float64](s *Steps, dst []F, sum *LaneSum[F]) {
	n := len(dst)
	released, bare := s.release(n), bareProducts{}
	noise := newNormals(s.noise.Multiplier*sum.bound, s.from.Keyed, n)
	if s.trace != nil {
		bare = s.signs.withoutNoise(n, released.last, noise)
	}
	s.signs.undrawn = s.second.Multiplier
	for from := 0; from < n; from += blockLength {
		gradient, direction := dst[from:min(from+blockLength, n)], sum.pointed[from:min(from+blockLength, n)]
		kernel.Axpy(F(sum.bound), direction, gradient)
		if s.trace != nil {
			addBare(&bare, from, gradient)
		}
		addFrom(noise, gradient)
		replaceBy(&released, from, gradient, direction)
	}
	s.turnBy(&released, &bare)
}

// watch counts what a step's sum has seen, if somebody wants to know.
func (s *Steps) watch(counts []laneCount) {
	if s.trace == nil {
		return
	}
	s.trace.Made++
	for i := range counts {
		s.trace.Inside, s.trace.Beyond = s.trace.Inside+counts[i].inside, s.trace.Beyond+counts[i].beyond
		for j, n := range counts[i].norms {
			s.trace.Norms[j] += n
		}
	}
}
