package certificate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/audit/membership"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/sim"
)

// Format is the first line of every certificate.
const Format = "coterie certificate 1"

// Verdict is what became of the claim, in a word.
type Verdict string

// The verdicts.
const (
	Refuted    Verdict = "refuted"
	NotRefuted Verdict = "not refuted"
	NotTested  Verdict = "not tested" // no bound applies
)

// Certificate is what was found about a run. Its keys are stable: docs/json.md.
type Certificate struct {
	Format   string    `json:"format"`
	Made     time.Time `json:"made"`
	Identity Identity  `json:"identity"`
	// Claim is the run's own, and Theorems what it rests on.
	Claim    event.Statement `json:"claim"`
	Assumes  []string        `json:"assumes"`
	Theorems []Theorem       `json:"theorems"`
	Plan     Plan            `json:"plan"`
	Bounds   []Bound         `json:"bounds"`
	// Membership and Inversion are attacks on the model and on an update; null: not tried.
	Membership *membership.Found `json:"membership"`
	Inversion  *audit.Inspection `json:"inversion"`
	NotTried   []Left            `json:"not_tried"`
	Verdict    Verdict           `json:"verdict"`
	Why        string            `json:"why"`
	Says       []string          `json:"says"`
	// Page is the hash of the page that was written beside it.
	Page string `json:"page_sha256"`
}

// Bound is a lower bound on epsilon, and what it was held against.
type Bound struct {
	Audit string `json:"audit"`
	// Confidence is its share of the plan's.
	Confidence float64      `json:"confidence"`
	AtLeast    event.Number `json:"epsilon_at_least"`
	// Ceiling is what the audit could have shown at most; null: it has none.
	Ceiling *event.Number `json:"epsilon_ceiling"`
	// Charged is what the played steps cost by the run's own accountant.
	Charged event.Statement `json:"charged"`
	// Power is the chance that the claim is exceeded where the noise is 0.8 of what was
	// charged, HalfPower where it is half, FalseAlarm where it is as charged; null: not known.
	Power      *event.Number `json:"power"`
	HalfPower  *event.Number `json:"power_at_half"`
	FalseAlarm *event.Number `json:"false_alarm"`
	Exceeds    bool          `json:"exceeds"`
	// Suspicious: less noise than was charged is proved, though not as little as the claim
	// allows.
	Suspicious bool     `json:"suspicious"`
	Verdict    string   `json:"verdict"`
	Assumes    []string `json:"assumes"`
}

// audits play; tests put others in their place.
type audits struct {
	mechanism func(context.Context, Subject, Planned, uint64, func(int)) (Bound, error)
	canary    func(context.Context, Subject, Planned, uint64, func(int)) (Bound, error)
	oneRun    func(context.Context, Subject, *data.Folder, Planned, uint64, func(int)) (Bound, error)
}

// Tick says how far a part of a certificate is, from 0 to 1.
type Tick func(audit string, share float64)

// Make plays what a plan says and writes down what was found. The clock gives the date.
func Make(ctx context.Context, s Subject, folder *data.Folder, p Plan, o membership.Options, now time.Time, tick Tick) (Certificate, error) {
	return audits{mechanism, canary, oneRun}.make(ctx, s, folder, p, o, now, tick)
}

func (a audits) make(ctx context.Context, s Subject, folder *data.Folder, p Plan, o membership.Options, now time.Time, tick Tick) (Certificate, error) {
	claim := s.Result.Privacy
	c := Certificate{
		Format: Format, Made: now.UTC().Truncate(time.Second), Identity: s.Identity, Claim: claim.Statement, Assumes: append([]string{}, claim.Assumes...),
		Theorems: theorems(s.Target.Run, claim.Statement), Plan: p, Bounds: []Bound{}, NotTried: append([]Left{}, p.NotTried...),
	}
	for _, one := range p.Bounds {
		rounds := float64(s.Target.Run.Algorithm.Rounds)
		done := func(n int) { tick(one.Audit, float64(n)/rounds) }
		var b Bound
		var err error
		switch one.Audit {
		case Mechanism:
			b, err = a.mechanism(ctx, s, one, p.Seed, done)
		case Canary:
			b, err = a.canary(ctx, s, one, p.Seed, func(runs int) { tick(one.Audit, float64(runs)/float64(one.Canaries)) })
		case OneRun:
			b, err = a.oneRun(ctx, s, folder, one, p.Seed, done)
		}
		var not *notPossible
		switch {
		case errors.As(err, &not):
			c.NotTried = append(c.NotTried, Left{one.Audit, not.Error()})
		case errors.Is(err, audit.ErrCanary):
			// The game ended early: what carries no noise gave the canary away.
			c.Bounds = append(c.Bounds, Bound{Audit: one.Audit, Confidence: one.Confidence, AtLeast: event.Number(inf), Charged: claim.Statement, Exceeds: true, Verdict: err.Error(), Assumes: []string{}})
		case err != nil:
			return c, fmt.Errorf("certificate: %s: %w", one.Audit, err)
		default:
			c.Bounds = append(c.Bounds, b)
		}
	}
	for _, name := range p.Attacks {
		if err := c.attack(ctx, name, s, folder, p, o, tick); err != nil {
			return c, fmt.Errorf("certificate: %s: %w", name, err)
		}
	}
	c.judge(s)
	return c, nil
}

// attack makes one of those that describe.
func (c *Certificate) attack(ctx context.Context, name string, s Subject, folder *data.Folder, p Plan, o membership.Options, tick Tick) error {
	switch name {
	case Membership:
		o.Unit, o.References, o.Seed, o.Neighbours = membership.UnitExample, p.References, p.Seed, 10
		o.Level = membership.Level{Delta: 1e-5, Confidence: 0.95}
		if s.Result.Privacy.Unit == event.UnitClient {
			o.Unit = membership.UnitClient
		}
		tick(name, 0)
		o.Tick = func(_ string, m sim.Moment) { tick(name, float64(m.Round)/float64(max(1, m.Rounds))) }
		found, err := membership.Measure(ctx, s.Target, folder, o)
		if errors.Is(err, membership.ErrNotThere) {
			c.NotTried = append(c.NotTried, Left{name, err.Error()})
			return nil
		}
		c.Membership = &found
		return err
	case Inversion:
		tick(name, 0)
		run := s.Target.Run
		found, err := audit.Inspect(ctx, run, folder, audit.InspectOptions{OneExample: true, Evaluations: 300, Restarts: 3})
		if err != nil && ctx.Err() == nil {
			c.NotTried = append(c.NotTried, Left{name, err.Error()})
			return nil
		}
		c.Inversion = &found
		return err
	}
	return fmt.Errorf("no such attack")
}

// judge says what became of the claim.
func (c *Certificate) judge(s Subject) {
	c.Says = append([]string{}, always...)
	if made, planned := s.Result.Rounds, s.Target.Run.Algorithm.Rounds; made != planned && len(c.Bounds) > 0 {
		c.Says = append(c.Says, fmt.Sprintf("the run ended after %d of %d rounds, and its claim is of those; the bounds are of all", made, planned))
	}
	best := -1
	c.Verdict = NotTested
	if c.Why = "no audit that bounds epsilon from below applies to this run, or all were left out"; c.Claim.Claim == event.ClaimNone {
		c.Why = "nothing is claimed: there is nothing to refute"
	}
	for i, b := range c.Bounds {
		if best < 0 || b.AtLeast > c.Bounds[best].AtLeast {
			best = i
		}
		switch {
		case b.Exceeds, c.claims(s) && b.AtLeast > c.Claim.Epsilon:
			c.Verdict, c.Why = Refuted, fmt.Sprintf("%s: %s", b.Audit, b.Verdict)
			return
		case c.claims(s) && b.Charged.Delta == c.Claim.Delta && float64(b.Charged.Epsilon) > float64(c.Claim.Epsilon)*(1+1e-9):
			c.Verdict, c.Why = Refuted, fmt.Sprintf("%s: the result claims %s, but its own run file costs %s", b.Audit, terms(c.Claim), terms(b.Charged))
			return
		}
	}
	if best >= 0 {
		b := c.Bounds[best]
		c.Verdict = NotRefuted
		c.Why = fmt.Sprintf("epsilon is at least %.4g at confidence %.4g (%s, delta %v, by %s), and %.4g is claimed; that does not show that the claim holds",
			float64(b.AtLeast), c.Plan.Confidence, unitOf(b.Charged), float64(b.Charged.Delta), b.Audit, float64(c.Claim.Epsilon))
		for _, b := range c.Bounds {
			if b.Suspicious {
				c.Why = fmt.Sprintf("%s: %s", b.Audit, b.Verdict)
			}
		}
	}
}

// claims says whether the run made all its rounds under a proved claim of examples, which
// is what the bounds are of.
func (c *Certificate) claims(s Subject) bool {
	return c.Claim.Claim == event.ClaimProved && c.Claim.Unit == event.UnitExample && s.Result.Rounds == s.Target.Run.Algorithm.Rounds
}

// Err says that the claim is refuted.
func (c *Certificate) Err() error {
	if c.Verdict == Refuted {
		return fmt.Errorf("%w: %s", audit.ErrCanary, c.Why)
	}
	return nil
}

// terms is an epsilon with what it is of.
func terms(s event.Statement) string {
	return fmt.Sprintf("epsilon %.6g (%s, %s, delta %v)", float64(s.Epsilon), s.Claim, unitOf(s), float64(s.Delta))
}

func unitOf(s event.Statement) string { return fmt.Sprintf("unit %s, relation %s", s.Unit, s.Relation) }

// always is what every certificate says.
var always = []string{
	"an attack that fails proves nothing: another may succeed; what is protected is said by the claim and its theorem alone",
	"bounds by canaries are of the program and these settings, played anew; they certify no model that was trained before",
	"attacks on the model and on updates describe what was found; they bound nothing, and their figures on real members are unpaid releases of those members",
	"whoever asks for certificates again and again until one passes has none: the seed follows from model and run file, but noise from the system is new each time",
	"planted gradients have known lengths: whether a network's own gradients are measured rightly before they are clipped is the business of the program's tests, not of these audits",
	"the signature says who looked; it does not make what was found truer",
}

// notPossible is an audit that a run is not made for, which shows only when it is played.
type notPossible struct{ error }

func (n *notPossible) Unwrap() error { return n.error }

// refused turns what a run cannot be asked for into notPossible.
func refused(err error) error {
	if errors.Is(err, fl.ErrRefused) {
		return &notPossible{err}
	}
	return err
}
