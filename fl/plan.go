package fl

import (
	"errors"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
)

// Target is what a participant asks for its own examples: (Epsilon, Delta) for one person
// with at most Records of them, over Runs runs like this one. Epsilon 0 asks for nothing.
type Target struct {
	Epsilon, Delta float64
	Records        int
	Runs           int // 0: one
}

// TargetOf is the participant's own target, or the run's.
func TargetOf(p config.Privacy, name string) Target {
	t := Target{p.Epsilon, p.Delta, max(1, p.RecordsPerPerson), p.Runs}
	for _, own := range p.Silos {
		if own.Name != name || name == "" {
			continue
		}
		if own.Epsilon > 0 {
			t.Epsilon = own.Epsilon
		}
		if own.Delta > 0 {
			t.Delta = own.Delta
		}
		if own.RecordsPerPerson > 0 {
			t.Records = own.RecordsPerPerson
		}
	}
	return t
}

// PublicSizeOf is how many examples, or persons, the participant is declared to have, or the
// run's number.
func PublicSizeOf(p config.Privacy, name string) int {
	for _, own := range p.Silos {
		if own.Name == name && name != "" && own.PublicSize > 0 {
			return own.PublicSize
		}
	}
	return p.PublicSize
}

// PerRecord is what single records must keep so that a person keeps the target.
// m steps of (e, d) are (m*e, d*(1 + exp(e) + … + exp((m-1)*e))) (Dwork and Roth
// 2014, lemma 2.2 applied step by step).
func (t Target) PerRecord() (epsilon, delta float64) {
	if t.Records <= 1 {
		return t.Epsilon, t.Delta
	}
	epsilon = t.Epsilon / float64(t.Records)
	if epsilon == 0 { // the noise is given, or there is none: no target decides
		return 0, t.Delta / float64(t.Records)
	}
	return epsilon, t.Delta * math.Expm1(epsilon) / math.Expm1(t.Epsilon)
}

// Person is what a person keeps whose every record keeps (epsilon, delta): PerRecord
// upward. A delta of 1 promises nothing.
func (t Target) Person(epsilon, delta float64) (float64, float64) {
	m := float64(max(1, t.Records))
	switch ratio := math.Expm1(m*epsilon) / math.Expm1(epsilon); {
	case epsilon == 0:
		delta *= m
	case m > 1 && !(delta*ratio < 1): // an infinite epsilon makes it NaN
		delta = 1
	default:
		delta *= ratio
	}
	return m * epsilon, math.Min(1, delta)
}

// Plan is what follows from a participant's target and size before training begins.
// Nothing of it depends on an example's content.
type Plan struct {
	Target   Target
	Examples int
	Batch    int     // examples of a step, and what sums are divided by
	Steps    int     // in a round that are paid for
	Local    int     // in a round in all; the same, but where only the sum of updates is noised
	Rate     float64 // of Poisson batches; in paper mode of the batches' accounting
	Noise    float64 // standard deviation of the noise, divided by the clip
	Choice   float64 // epsilon of one choice of a cluster
	Moments  float64 // noise of the features' moments, divided by their bound; 0: none are paid for
	Weight   float64 // declared to the server
	StepSize float64 // of a step
	Clip     float64 // of an example's gradient, at the start
	Clipping mech.ClipRule
	Drawn    event.Sampling
	Terms    account.Terms
	Trust    event.Trust
	Lattice  *account.Lattice // of exact noise; nil: the noise is simulated
	Nodes    int              // examples that change at most when a person goes; 0: examples are protected
	Keep     float64          // share of contacts that every step keeps, anew; 0: they are not thinned
	Epochs   int              // in a round
	Pass     int              // steps of one pass
	// Uncovered: something was done to the examples, or a cluster was chosen by them,
	// that no accounting covers, so nothing is proved about single ones.
	Uncovered bool
}

// Rule is how the participant's steps are drawn and priced.
func (p *Plan) Rule() mech.StepRule {
	return mech.StepRule{Clip: p.Clip, Clipping: p.Clipping, Noise: p.Noise, Sampling: p.Drawn, Rate: p.Rate, Batch: p.Batch, Examples: p.Examples, Nodes: p.Nodes, Keep: p.Keep}
}

// Variance is that of the noise in a coordinate of one round's update.
func (p *Plan) Variance() float64 {
	step := p.StepSize * p.Noise * p.Clip / float64(p.Batch)
	return float64(p.Steps) * step * step
}

// Private says whether the participant adds noise at all.
func (p *Plan) Private() bool { return p.Noise > 0 }

// Training is so many rounds and choices, and the moments if the plan has any, as it
// accounts for them.
func (p *Plan) Training(rounds, choices int, moments bool) account.Training {
	t := account.Training{
		Terms: p.Terms, Trust: p.Trust, Sampling: p.Drawn, Noise: p.Noise, Steps: int64(rounds) * int64(p.Steps),
		Lattice: p.Lattice, Nodes: int64(p.Nodes), Keep: p.Keep,
	}
	switch {
	case p.Terms.Unit == event.UnitClient:
		t.Sampling = event.FullBatch
	case p.Drawn == event.FullBatch:
	case p.Nodes > 0:
		t.Batch, t.Examples = int64(p.Batch), int64(p.Examples)
	case p.Drawn == event.Poisson || p.Drawn == event.Shuffle:
		// The papers account for shuffled batches as if they were Poisson samples.
		t.Sampling, t.Rate = event.Poisson, p.Rate
	default:
		t.Batch, t.Examples = int64(p.Batch), int64(p.Examples)
	}
	if choices > 0 {
		t.Also = append(t.Also, event.Repeated{
			Times: int64(choices), Of: event.Selection{Mechanism: event.Exponential, Epsilon: p.Choice},
		})
	}
	if moments && p.Moments > 0 {
		t.Also = append(t.Also, mech.Gaussian{Multiplier: p.Moments}.Event())
	}
	return t
}

// Release is one round.
func (p *Plan) Release(choosing, moments bool) (event.Release, error) {
	if !p.Private() {
		return event.Release{
			Unit: p.Terms.Unit, Relation: p.Terms.Relation, Claim: event.ClaimNone, Trust: event.TrustNobody,
			What: event.Unprotected{},
		}, nil
	}
	choices := 0
	if choosing {
		choices = 1
	}
	return p.Training(1, choices, moments).Release()
}

// shared is the same as Training with the moments, over all runs that share the target.
func (p *Plan) shared(rounds, choices int) account.Training {
	t := p.Training(rounds, choices, true)
	t.Runs = int64(p.Target.Runs)
	return t
}

// Calibrate finds the least noise that keeps the target over the whole run, and over all
// runs that share it.
func (p *Plan) Calibrate(rounds, choices int) error {
	epsilon, delta := p.Target.PerRecord()
	t, _, err := p.shared(rounds, choices).WithNoiseFor(account.MethodRDP, epsilon, delta)
	if errors.Is(err, account.ErrUnreachable) && choices > 0 {
		err = fmt.Errorf("%w%s", err, p.cheaperChoices(choices))
	}
	if err != nil {
		return fmt.Errorf("noise for epsilon %v at delta %v: %w", epsilon, delta, err)
	}
	p.Noise = t.Noise
	return nil
}

// cheaperChoices says at which share of epsilon choices would leave something for the
// steps, if there is one.
func (p *Plan) cheaperChoices(choices int) string {
	epsilon, delta := p.Target.PerRecord()
	without := *p
	without.Noise = 1 // of no steps
	most, err := account.LeastNoise(epsilon, func(parts float64) (float64, error) {
		without.Choice = p.Target.Epsilon / parts
		g, err := without.shared(0, choices).Guarantee(account.MethodRDP, delta)
		return g.Epsilon, err
	})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("; %d choices do at an algorithm.selection.epsilon_share below %.4g", choices, 1/most)
}

// recordDelta is the delta at which a record's epsilon is told: where the noise is
// given and a person has several records, the one with which the person keeps the
// target's delta (docs/proofs/group-of-records.md).
func (p *Plan) recordDelta(t account.Training) (float64, error) {
	_, delta := p.Target.PerRecord()
	if p.Target.Records <= 1 || p.Target.Epsilon > 0 {
		return delta, nil
	}
	keeps := func(log float64) (bool, error) {
		g, err := t.Guarantee(account.MethodRDP, math.Exp(log))
		_, person := p.Target.Person(g.Epsilon, g.Delta)
		return person <= p.Target.Delta, err
	}
	high := math.Log(delta) // the person's delta is never below so many times the record's
	low, kept := high, false
	for step := 1.0; !kept; step *= 2 {
		if low = high - step; low < -650 {
			return delta, nil // the noise is too small to promise a person anything
		}
		var err error
		if kept, err = keeps(low); err != nil {
			return 0, err
		}
	}
	for high-low > 1e-4 {
		middle := (low + high) / 2
		kept, err := keeps(middle)
		if err != nil {
			return 0, err
		}
		if kept {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Exp(low), nil
}

// Spend is what the participant has spent on its records, at the target's delta; and, where
// that number is heuristic, what is proved for the same releases (nil otherwise).
func (p *Plan) Spend(paid Paid) (account.Guarantee, *account.Guarantee, error) {
	_, delta := p.Target.PerRecord()
	if paid == (Paid{}) || !p.Private() {
		g := account.Guarantee{
			Claim: p.Terms.Claim, Unit: p.Terms.Unit, Relation: p.Terms.Relation, Trust: p.Trust,
			Delta: delta, Sampling: string(p.Drawn),
		}
		if !p.Private() {
			g.Claim, g.Trust, g.Epsilon = event.ClaimNone, event.TrustNobody, math.Inf(1)
			g.NotCovered = []string{"everything: no noise is added"}
		}
		return g, nil, nil
	}
	spent, proved := p.Trainings(paid)
	delta, err := p.recordDelta(spent)
	if err != nil {
		return account.Guarantee{}, nil, err
	}
	g, err := spent.Guarantee(account.MethodRDP, delta)
	if p.Drawn == event.Shuffle {
		g.Sampling = ShuffledAsPoisson
		if p.Nodes > 0 {
			g.Sampling = ShuffledAsDrawn
		}
	}
	if err != nil || proved == nil {
		return g, nil, err
	}
	sound, err := proved.Guarantee(p.ProvedBy(paid), delta)
	return g, &sound, err
}

// ShuffledAsPoisson is said of shuffled batches that are accounted for as the papers do.
const ShuffledAsPoisson = "shuffle, accounted as poisson"

// ShuffledAsDrawn is said of shuffled batches of persons, which the thesis accounts for as if
// each were drawn afresh.
const ShuffledAsDrawn = "shuffle, accounted as without-replacement"

// Trainings are what was paid for as it is accounted for, and, where that is heuristic for
// its batches alone, what is proved of the same releases (nil otherwise).
func (p *Plan) Trainings(paid Paid) (account.Training, *account.Training) {
	spent := p.Training(paid.Rounds, paid.Choices, paid.Moments > 0)
	if p.Drawn != event.Shuffle || p.Uncovered {
		return spent, nil
	}
	proved := spent
	// A shuffled epoch is one release without amplification (DESIGN, erratum 10). The
	// sizes are public, so that a neighbour has another example in the same place.
	proved.Terms = account.Terms{Unit: p.Terms.Unit, Relation: event.ReplaceOne, Claim: event.ClaimProved}
	proved.Sampling, proved.Rate = event.Shuffle, 0
	proved.Batch, proved.Examples, proved.Steps = int64(p.Batch), int64(p.Examples), int64(paid.Rounds)*int64(p.Epochs)
	return spent, &proved
}

// ProvedBy is the accountant of what is proved for shuffled batches.
func (p *Plan) ProvedBy(paid Paid) account.Method {
	switch {
	case paid.Choices > 0:
		return account.MethodRDP
	case p.Lattice != nil:
		return account.MethodBest // exact noise has a term of its own, which may be too large
	}
	return account.MethodPLD // exact here
}

// Purse is a durable record of what a participant may still release.
type Purse interface {
	// Reserve pays for a release of a round. It is called after the update is
	// clipped and before any noise is drawn. An error that wraps ErrRefused means
	// that the participant declines; any other one ends the round for it.
	Reserve(round int, r event.Release) error
}
