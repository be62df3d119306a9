package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// Summary is what a ledger says to people.
type Summary struct {
	Identity    Hash          `json:"identity"`
	Founded     time.Time     `json:"founded"`
	Records     int           `json:"records"`
	Head        Hash          `json:"head"`
	Budgets     []BudgetSpend `json:"budgets"`
	Runs        []RunSpend    `json:"runs"`
	Federations []Membership  `json:"federations"` // with the keys that sign now
	// Successions are how they came to their keys, by federation and in their order.
	Successions []Succession `json:"successions"`
	Notes       []Note       `json:"notes"`
	// Torn is how many bytes were found behind the last whole record when the ledger
	// was read: a write that never ended, or the rest of a log that was cut.
	Torn int64 `json:"torn_bytes"`
	// Cuts is how often such bytes were removed before.
	Cuts int `json:"cuts"`
}

// Counts say how far releases have come. All of them are spent.
type Counts struct {
	Releases  int `json:"releases"`
	Reserved  int `json:"reserved"`
	Stored    int `json:"stored"`
	Committed int `json:"committed"`
	Abandoned int `json:"abandoned"`
	Attested  int `json:"attested"` // not enforced by us
}

func (c *Counts) add(e *Entry) {
	c.Releases++
	switch e.Status {
	case Reserved:
		c.Reserved++
	case Stored:
		c.Stored++
	case Committed:
		c.Committed++
	case Abandoned:
		c.Abandoned++
	}
	if e.Enforcement == Attested {
		c.Attested++
	}
}

// BudgetSpend is a ceiling, and what all releases under it cost.
type BudgetSpend struct {
	event.Statement
	Counts
	Ceiling event.Number `json:"ceiling"`
	// CeilingSwitch bounds epsilon_switch; 0 where the claim is not metric.
	CeilingSwitch event.Number `json:"ceiling_switch"`
	// Used is the share of the ceiling that the filter has spent: when it is 1, nothing
	// more is released. FilterSpent of FilterBudget is the same in the filter's own
	// measure, a Rényi divergence at FilterOrder, or with order 0 rho; it is not a share
	// of Epsilon, which does not grow in proportion to what was released. Both are 0
	// under the relation metric, where Used is the largest share of Epsilon,
	// EpsilonAtDistance and EpsilonSwitch.
	Used         float64      `json:"used"`
	FilterSpent  event.Number `json:"filter_spent"`
	FilterBudget event.Number `json:"filter_budget"`
	FilterOrder  event.Number `json:"filter_order"`
	Filter       string       `json:"filter"`
	// Over: what was released does not fit the ceiling, and nothing more is.
	Over    bool `json:"over"`
	Amended bool `json:"amended"`
	// Distance and what two points that far apart lose; 0 if no distance is bounded.
	Distance          event.Number `json:"distance"`
	EpsilonAtDistance event.Number `json:"epsilon_at_distance"`
}

// RunSpend is what the releases of one run on one set of terms cost.
type RunSpend struct {
	Federation string `json:"federation"`
	Run        string `json:"run"`
	event.Statement
	Counts
	Last time.Time `json:"last"` // when the last of them was reserved
}

func (s *state) summary() (Summary, error) {
	sum := Summary{
		Identity: s.identity, Founded: s.founded, Records: s.records, Head: s.head, Cuts: s.cuts,
		Budgets: []BudgetSpend{}, Runs: []RunSpend{}, Federations: []Membership{}, Successions: []Succession{}, Notes: slices.Clone(s.notes),
	}
	if sum.Notes == nil {
		sum.Notes = []Note{}
	}
	counts, last := map[scope]*Counts{}, map[scope]time.Time{}
	for _, e := range s.order {
		for _, where := range scopes(&e.Charge) {
			if counts[where] == nil {
				counts[where] = &Counts{}
			}
			counts[where].add(e)
			last[where] = e.ReservedAt
		}
	}
	for terms, b := range s.budgets {
		if b.implied && s.released(terms) == 0 {
			continue // nobody has asked for it
		}
		one, err := b.summary(s.tallies[scope{terms: terms}])
		if err != nil {
			return Summary{}, err
		}
		if c := counts[scope{terms: terms}]; c != nil {
			one.Counts = *c
		}
		sum.Budgets = append(sum.Budgets, one)
	}
	for where, t := range s.tallies {
		if where.run == "" {
			continue
		}
		statement, err := t.statement(s.budgets[where.terms].ceiling)
		if err != nil {
			return Summary{}, fmt.Errorf("run %q: %w", where.run, err)
		}
		sum.Runs = append(sum.Runs, RunSpend{where.federation, where.run, statement, *counts[where], last[where]})
	}
	for _, m := range s.members {
		sum.Federations = append(sum.Federations, m)
		for _, n := range s.successions[m.Federation] {
			sum.Successions = append(sum.Successions, n.Succession)
		}
	}
	slices.SortFunc(sum.Budgets, func(a, b BudgetSpend) int { return compareTerms(a.Statement, b.Statement) })
	slices.SortFunc(sum.Runs, func(a, b RunSpend) int {
		return cmp.Or(cmp.Compare(a.Federation, b.Federation), cmp.Compare(a.Run, b.Run), compareTerms(a.Statement, b.Statement))
	})
	slices.SortFunc(sum.Federations, func(a, b Membership) int { return cmp.Compare(a.Federation, b.Federation) })
	slices.SortFunc(sum.Successions, func(a, b Succession) int {
		return cmp.Or(cmp.Compare(a.Federation, b.Federation), cmp.Compare(a.Number, b.Number))
	})
	return sum, nil
}

func compareTerms(a, b event.Statement) int {
	return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Relation, b.Relation), cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.Trust, b.Trust))
}

// summary says what is spent of a ceiling; t is nil if nothing is.
func (b *budget) summary(t *tally) (BudgetSpend, error) {
	c := b.ceiling
	one := BudgetSpend{Ceiling: c.Epsilon, CeilingSwitch: c.EpsilonSwitch, Used: b.used(), Filter: c.Filter, Amended: b.amended, Over: b.over, Distance: c.Distance}
	if f, ok := b.filter.(interface{ Meter() account.Meter }); ok && !b.over { // what did not fit is not on its meter
		m := f.Meter()
		one.FilterSpent, one.FilterBudget, one.FilterOrder = event.Number(m.Spent), event.Number(m.Budget), event.Number(m.Order)
	}
	if t == nil {
		var err error
		if t, err = newTally(c.Terms()); err != nil {
			return BudgetSpend{}, err
		}
	}
	var err error
	if one.Statement, err = t.statement(c); err != nil {
		return BudgetSpend{}, fmt.Errorf("%s: %w", describe(c.Terms()), err)
	}
	if c.Distance > 0 {
		one.EpsilonAtDistance = event.Number(t.metric.At(float64(c.Distance)))
	}
	if one.Filter == "" {
		one.Filter = "metric"
		if t.bare {
			one.Filter = "none"
		}
	}
	return one, nil
}
