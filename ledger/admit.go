package ledger

import (
	"bytes"
	"fmt"
)

// admit says why a record cannot follow, if it cannot. Budgets are not asked:
// what is in the ledger was spent, whether it fits or not.
func (s *state) admit(r record) error {
	if (r.Kind == kindFounded) != (s.records == 0) {
		return fmt.Errorf("a ledger is founded by its first record, and once")
	}
	switch r.Kind {
	case kindCeiling:
		return s.admitCeiling(r)
	case kindMember:
		if _, known := s.members[r.Membership.Federation]; known {
			return fmt.Errorf("%w: federation %q is known already", ErrConflict, r.Membership.Federation)
		}
		return r.Membership.validate()
	case kindSuccession:
		return s.admitSuccession(*r.Succession)
	case kindReserve:
		return s.admitReserve(*r.Charge)
	case kindStore:
		return s.admitStore(r)
	case kindCommit:
		return s.admitCommit(*r.Slot, *r.Receipt)
	case kindAbandon:
		e, err := s.entry(*r.Slot)
		if err == nil && e.Status != Reserved && e.Status != Stored {
			err = fmt.Errorf("%w: %s is %s", ErrConflict, r.Slot, e.Status)
		}
		return err
	}
	return nil
}

func (s *state) entry(slot Slot) (*Entry, error) {
	e, ok := s.entries[slot]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrUnknownSlot, slot)
	}
	return e, nil
}

func (s *state) admitCeiling(r record) error {
	if err := r.Ceiling.wellFormed(); err != nil {
		return err
	}
	terms := r.Ceiling.Terms()
	b, known := s.budgets[terms]
	if !known || s.released(terms) == 0 || r.Reason != "" {
		return nil
	}
	how := "coterie ledger amend changes it, with a reason"
	if s.tallies[scope{terms: terms}].metric.open > 0 {
		how += "; releases under it were recorded without the spread of their hypotheses and count as unbounded unless an assumed spread is given"
	}
	return fmt.Errorf("%w: %s: %v is recorded, not %v: %s", ErrPolicy, describe(terms), b.ceiling, *r.Ceiling, how)
}

// released is how often something was released on these terms.
func (s *state) released(t Terms) int {
	if all, ok := s.tallies[scope{terms: t}]; ok {
		return all.releases
	}
	return 0
}

func (s *state) admitReserve(c Charge) error {
	if err := c.Slot.validate(); err != nil {
		return err
	}
	if err := checkEnforcement(c.Enforcement); err != nil {
		return err
	}
	if c.Plan == (Hash{}) {
		return fmt.Errorf("the hash of the plan is missing")
	}
	if _, taken := s.entries[c.Slot]; taken {
		return fmt.Errorf("%w: %s", ErrConflict, c.Slot)
	}
	if _, known := s.members[c.Slot.Federation]; !known {
		return fmt.Errorf("%w: federation %q", ErrStranger, c.Slot.Federation)
	}
	_, err := s.budget(termsOf(c.Release))
	return err
}

// budget is the one that a release would be paid from.
func (s *state) budget(t Terms) (*budget, error) {
	b, ok := s.budgets[t]
	if !ok {
		return nil, uncovered(t)
	}
	return b, nil
}

func (s *state) admitStore(r record) error {
	e, err := s.entry(*r.Slot)
	if err != nil {
		return err
	}
	if e.Status != Reserved {
		return fmt.Errorf("%w: %s is %s", ErrConflict, r.Slot, e.Status)
	}
	if want := s.counters[r.Slot.Federation] + 1; r.Content.Counter != want || r.Content.Size < 0 {
		return fmt.Errorf("release %d of the federation, with %d bytes, cannot come after release %d", r.Content.Counter, r.Content.Size, want-1)
	}
	return nil
}

// admitCommit accepts only the slot's own draft, signed with the pinned key.
func (s *state) admitCommit(slot Slot, r SignedReceipt) error {
	e, err := s.entry(slot)
	if err != nil {
		return err
	}
	if e.draft == nil || e.Status == Committed {
		return fmt.Errorf("%w: %s is %s", ErrConflict, slot, e.Status)
	}
	return s.checkReceipt(e, r)
}

func (s *state) checkReceipt(e *Entry, r SignedReceipt) error {
	if err := s.checkSigner(e, r.Key); err != nil {
		return err
	}
	if err := r.Verify(); err != nil {
		return err
	}
	got, err := r.Receipt.Canonical()
	if err != nil {
		return err
	}
	if want, err := e.draft.Canonical(); err != nil || !bytes.Equal(got, want) {
		return fmt.Errorf("%w: it is not about what this ledger released in %s", ErrReceipt, e.Slot)
	}
	return nil
}
