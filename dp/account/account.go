package account

import (
	"errors"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
)

// Why an accountant refuses. A refused release leaves the accountant as it was.
var (
	ErrUnit        = errors.New("release of another unit")
	ErrRelation    = errors.New("release under another neighbour relation")
	ErrClaim       = errors.New("release of another claim")
	ErrSampling    = errors.New("sampling that does not fit the neighbour relation")
	ErrUnsupported = errors.New("what this accountant cannot bound")
	ErrParameter   = errors.New("parameter out of range")
	ErrBudget      = errors.New("budget would be exceeded")
	ErrUnreachable = errors.New("target cannot be reached")
)

// Terms are what all releases in one account share. Budgets on different terms
// are never added or compared.
type Terms struct {
	Unit     event.Unit
	Relation event.Relation
	Claim    event.Claim
}

// Accountant adds up releases on one set of terms.
type Accountant interface {
	// Compose adds a release, or refuses it and changes nothing.
	Compose(event.Release) error
	// Guarantee is what all releases together cost at this delta.
	Guarantee(delta float64) (Guarantee, error)
}

// TermsOf are the terms of a release.
func TermsOf(r event.Release) Terms { return Terms{r.Unit, r.Relation, r.Claim} }

// String names the terms to people.
func (t Terms) String() string {
	return fmt.Sprintf("claim %s, unit %s, relation %s", t.Claim, t.Unit, t.Relation)
}

// validate refuses terms on which no (epsilon, delta) can stand: distances are
// the metric account's business.
func (t Terms) validate() error {
	switch {
	case t.Unit == event.UnitNeighbourhood:
		return fmt.Errorf("%w: %q has a metric account, not an (epsilon, delta) account", ErrUnit, t.Unit)
	case t.Relation == event.Metric:
		return fmt.Errorf("%w: %q has a metric account, not an (epsilon, delta) account", ErrRelation, t.Relation)
	case t.Claim == event.ClaimMetric:
		return fmt.Errorf("%w: %q has a metric account, not an (epsilon, delta) account", ErrClaim, t.Claim)
	}
	blank := event.Release{Unit: t.Unit, Relation: t.Relation, Claim: t.Claim, Trust: event.TrustLocal, What: event.Unprotected{}}
	if err := blank.Validate(); err != nil {
		return fmt.Errorf("%w: terms of the account: %w", ErrParameter, err)
	}
	return nil
}

// admit checks a release against the terms.
func (t Terms) admit(r event.Release) error {
	if err := r.Validate(); err != nil {
		return misfit{err}
	}
	switch {
	case r.Unit != t.Unit:
		return fmt.Errorf("%w: it protects %q, the account %q", ErrUnit, r.Unit, t.Unit)
	case r.Relation != t.Relation:
		return fmt.Errorf("%w: it holds under %q, the account under %q", ErrRelation, r.Relation, t.Relation)
	case r.Claim != t.Claim:
		return fmt.Errorf("%w: it is %q, the account %q", ErrClaim, r.Claim, t.Claim)
	}
	return nil
}

// factor is the relation's sensitivity in units of the clip bound: one term more
// or less moves a sum by C, one term replaced by 2C (DESIGN, erratum 11).
func (t Terms) factor() float64 {
	if t.Relation == event.ReplaceOne {
		return 2
	}
	return 1
}

// account is what the accountants share: terms, costs, and what to print beside
// the number.
type account struct {
	terms    Terms
	trust    event.Trust
	costs    []counted
	sampling []event.Sampling
	tuned    bool // by a secret number of trials
	counted  bool // tuned by a fixed number of trials, which are all charged
	exact    bool // the noise is drawn on a lattice
}

// weigh checks a release and lists its costs; it changes nothing.
func (a *account) weigh(r event.Release) ([]counted, error) {
	if err := a.terms.admit(r); err != nil {
		return nil, err
	}
	costs, err := flatten(r.What, a.terms, 1)
	if err == nil && a.exact {
		costs = onLattice(costs)
	}
	return costs, err
}

// record adds costs that weigh returned for r.
func (a *account) record(r event.Release, costs []counted) {
	for _, c := range costs {
		a.costs = addCost(a.costs, c)
	}
	if trustRank(r.Trust) > trustRank(a.trust) {
		a.trust = r.Trust
	}
	noteSampling(r.What, a)
}

// addCost merges equal mechanisms, so that ten thousand equal steps are one line.
func addCost(costs []counted, c counted) []counted {
	for i := range costs {
		if costs[i].of == c.of {
			costs[i].times += c.times
			return costs
		}
	}
	return append(costs, c)
}

// trustRank orders the trust that releases ask for; an account asks for the most.
func trustRank(t event.Trust) int {
	return slices.Index([]event.Trust{event.TrustLocal, event.TrustHolder, event.TrustServer, event.TrustNobody}, t)
}

func noteSampling(e event.Event, a *account) {
	add := func(s event.Sampling) {
		if !slices.Contains(a.sampling, s) {
			a.sampling = append(a.sampling, s)
		}
	}
	switch e := e.(type) {
	case event.Sampled:
		add(e.Sampling)
	case event.Repeated:
		noteSampling(e.Of, a)
	case event.Composed:
		for _, part := range e.Parts {
			noteSampling(part, a)
		}
	case event.Tuning:
		if e.Distribution == event.NaiveTrials {
			a.counted = true
		} else {
			a.tuned = true
		}
		noteSampling(e.Of, a)
	case event.NodeGaussian:
		add(event.WithoutReplacement)
	default:
		add(event.FullBatch)
	}
}

// misfit is an event whose values are out of range, as a caller's parameter: an
// ErrParameter that says so once.
type misfit struct{ error }

func (m misfit) Unwrap() []error { return []error{ErrParameter, m.error} }

// parameter is the error for a value that a caller must change.
func parameter(name string, value any, want string) error {
	return fmt.Errorf("%w: %s = %v, want %s", ErrParameter, name, value, want)
}
