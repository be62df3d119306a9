package ledger

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
)

// state is what the records say, and nothing else: the same records give the same
// state. A record is first admitted, which changes nothing, then written, then
// applied.
type state struct {
	head        Hash
	records     int
	identity    Hash
	founded     time.Time
	budgets     map[Terms]*budget
	members     map[string]Membership         // with the key that signs now
	successions map[string][]SignedSuccession // of that key, by federation
	entries     map[Slot]*Entry
	order       []*Entry // as they were reserved
	tallies     map[scope]*tally
	counters    map[string]int64 // stored releases by federation
	waiting     map[Hash]int     // slots whose bytes must be kept, by content
	notes       []Note
	cuts        int // torn records that were removed
}

// Note is something that a reader of the ledger should know.
type Note struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

func newState() state {
	return state{
		head: origin(), budgets: map[Terms]*budget{}, members: map[string]Membership{}, successions: map[string][]SignedSuccession{},
		entries: map[Slot]*Entry{}, tallies: map[scope]*tally{}, counters: map[string]int64{}, waiting: map[Hash]int{},
	}
}

// newIdentity tells this ledger from every other one.
func newIdentity() (Hash, error) {
	var id Hash
	_, err := rand.Read(id[:])
	return id, err
}

// apply moves the state on by a record that was admitted; at is its chain value.
func (s *state) apply(r record, at Hash) error {
	switch r.Kind {
	case kindFounded:
		s.identity, s.founded = *r.Identity, r.At
	case kindCeiling:
		if err := s.setCeiling(r); err != nil {
			return err
		}
	case kindMember:
		s.members[r.Membership.Federation] = *r.Membership
	case kindSuccession:
		s.succeed(*r.Succession)
	case kindReserve:
		if err := s.spend(r); err != nil {
			return err
		}
	case kindStore:
		s.store(r, at)
	case kindCommit:
		e := s.entries[*r.Slot]
		s.release(e)
		e.Status, e.Receipt = Committed, r.Receipt
	case kindAbandon:
		e := s.entries[*r.Slot]
		s.release(e)
		e.Status, e.Reason = Abandoned, r.Reason
	case kindCut:
		s.cuts++
		s.notes = append(s.notes, Note{r.At, fmt.Sprintf("%d bytes of a record that was never completed were removed", r.Bytes)})
	}
	s.head = at
	s.records++
	return nil
}

// setCeiling puts a ceiling in the place of the one before. Ceilings that were
// recorded before trust was one of the terms held for everybody's noise: such a one
// becomes a ceiling for each trust, and releases count by the trust that they name.
// Whether a trust may be used at all the policy of every Open says anew.
func (s *state) setCeiling(r record) error {
	c := *r.Ceiling
	if c.Trust != "" || c.Claim == event.ClaimNone {
		return s.setBudget(c, r, false)
	}
	for _, trust := range []event.Trust{event.TrustLocal, event.TrustServer, event.TrustNobody} {
		c.Trust = trust
		if err := s.setBudget(c, r, trust != event.TrustLocal); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) setBudget(c Ceiling, r record, implied bool) error {
	b, err := newBudget(c)
	if err != nil {
		return err
	}
	b.implied = implied
	terms := c.Terms()
	if before, known := s.budgets[terms]; known && s.released(terms) > 0 {
		b.amended = true
		s.notes = append(s.notes, Note{r.At, fmt.Sprintf("the ceiling for %s was changed after releases, from %v to %v: %s",
			describe(terms), before.ceiling, c, r.Reason)})
	}
	for _, e := range s.order {
		if termsOf(e.Release) != terms {
			continue
		}
		if err := b.spend(e.counted); err != nil {
			return err
		}
	}
	s.budgets[terms] = b
	return nil
}

func (s *state) spend(r record) error {
	c := *r.Charge
	b, err := s.budget(termsOf(c.Release))
	if err != nil {
		return err
	}
	counted := c.Release
	if c.Release.Claim == event.ClaimMetric && b.ceiling.EpsilonSwitch == 0 { // written before spreads were recorded
		counted = spreadUnrecorded(c.Release)
	}
	if err := b.spend(counted); err != nil {
		return err
	}
	for _, where := range scopes(&c) {
		t, ok := s.tallies[where]
		if !ok {
			if t, err = newTally(where.terms); err != nil {
				return err
			}
			s.tallies[where] = t
		}
		release := counted
		if where.run == "" && where.federation != "" { // receipts are made from it
			release, _ = withhold(release)
		}
		if err := t.add(release); err != nil {
			return err
		}
	}
	e := &Entry{Charge: c, Status: Reserved, ReservedAt: r.At, counted: counted}
	s.entries[c.Slot] = e
	s.order = append(s.order, e)
	return nil
}

func (s *state) store(r record, at Hash) {
	e := s.entries[*r.Slot]
	e.Status, e.Content, e.Size = Stored, r.Content.Hash, r.Content.Size
	e.generation = len(s.successions[r.Slot.Federation])
	release, withheld := withhold(e.Release)
	e.draft = &Receipt{
		Version: receiptVersion, Participant: s.members[r.Slot.Federation].Participant, Slot: *r.Slot,
		Plan: e.Plan, Content: e.Content, Size: e.Size,
		Release: release, RadiusWithheld: withheld, Enforcement: e.Enforcement,
		Spent: r.Content.Spent, Counter: r.Content.Counter, Head: at,
	}
	s.counters[r.Slot.Federation] = r.Content.Counter
	s.waiting[e.Content]++
}

// release lets go of a slot's bytes; other slots may hold the same.
func (s *state) release(e *Entry) {
	if e.Status != Stored {
		return
	}
	if s.waiting[e.Content]--; s.waiting[e.Content] == 0 {
		delete(s.waiting, e.Content)
	}
}

// spentSoFar is what the federation's releases on the charge's terms cost.
func (s *state) spentSoFar(c Charge) (event.Statement, error) {
	terms := termsOf(c.Release)
	b, err := s.budget(terms)
	if err != nil {
		return event.Statement{}, err
	}
	return s.tallies[scope{terms, c.Slot.Federation, ""}].statement(b.ceiling)
}

// check says whether releases fit together; it changes nothing.
func (s *state) check(releases ...event.Release) error {
	together := map[Terms]event.Release{}
	for _, r := range releases {
		if err := r.Validate(); err != nil {
			return err
		}
		terms := termsOf(r)
		if before, ok := together[terms]; ok {
			r.What = event.Composed{Parts: []event.Event{before.What, r.What}}
		}
		together[terms] = r
	}
	for terms, r := range together {
		b, err := s.budget(terms)
		if err != nil {
			return err
		}
		if err := b.check(r); err != nil {
			return err
		}
	}
	return nil
}
