package federation

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
)

// Ledger is what a participant needs of its privacy ledger; *ledger.Ledger is one.
type Ledger interface {
	Reconcile(ledger.Membership, *ledger.SignedReceipt) error
	Entry(ledger.Slot) (ledger.Entry, bool)
	Check(...event.Release) error
	Reserve(ledger.Charge) error
	Store(ledger.Slot, []byte) error
	Load(ledger.Slot) ([]byte, error)
	Draft(ledger.Slot) (ledger.Receipt, error)
	Commit(ledger.Slot, ledger.SignedReceipt) error
	Abandon(ledger.Slot, string) error
}

// purse pays for one slot from the ledger.
type purse struct {
	ledger      Ledger
	policy      Policy
	slot        ledger.Slot
	plan        ledger.Hash
	enforcement ledger.Enforcement
	log         *slog.Logger // nil: nothing is said
	paid        bool
	release     event.Release // that was paid for
	refused     error         // why the ledger would not pay
}

// Reserve is durable when it returns nil.
func (p *purse) Reserve(round int, r event.Release) error {
	if round != p.slot.Round {
		return fmt.Errorf("a release of round %d is to be paid in round %d", round+1, p.slot.Round+1)
	}
	if p.paid { // the round is made once more, without the data
		if !reflect.DeepEqual(r, p.release) {
			return fmt.Errorf("round %d was paid for %+v, not for %+v", round+1, p.release, r)
		}
		return nil
	}
	if err := p.policy.AllowsRelease(r); err != nil {
		p.refused = err
		return err
	}
	err := p.ledger.Reserve(ledger.Charge{Slot: p.slot, Plan: p.plan, Release: r, Enforcement: p.enforcement})
	if errors.Is(err, ledger.ErrRefused) {
		p.refused = err
		return fmt.Errorf("%w: %w", fl.ErrRefused, err)
	}
	if err != nil && !errors.Is(err, ledger.ErrConflict) {
		return fmt.Errorf("%w: %w", errPersist, err) // fail closed
	}
	p.paid, p.release = err == nil, r
	if p.paid && p.log != nil {
		p.log.Info("paid for a release", append([]any{"round", round + 1}, spelled(r)...)...)
	}
	return err
}
