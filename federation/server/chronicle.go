package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/ledger"
)

// chronicle is what a coordinator remembers of its run for those who watch it. All of it
// is in the store as well: whoever looks every second must not cost it anything.
type chronicle struct {
	mu        sync.Mutex
	waiting   bool // for participants
	closed    int  // rounds of training
	abandoned int
	lasted    []time.Duration // closed rounds of training
	people    []deeds
	recent    []RoundEnd // of training, in order
}

// deeds are one participant's.
type deeds struct {
	released int // accepted releases
	spent    []Spending
	lastSeen time.Time // joined, before this server was started
}

// Spending is what a participant says that it has spent, in a receipt.
type Spending struct {
	RunID   string          `json:"run_id"`
	Round   int             `json:"round"` // from 1: it said so when it released there
	Privacy event.Statement `json:"privacy"`
	// Enforcement is whether the program itself kept to the limits, or a trainer says so.
	Enforcement ledger.Enforcement `json:"enforcement"`
}

func spendingOf(r ledger.Receipt) Spending {
	return Spending{RunID: r.Slot.Run, Round: r.Slot.Round + 1, Privacy: r.Spent, Enforcement: r.Enforcement}
}

func newChronicle(participants int) *chronicle {
	return &chronicle{people: make([]deeds, participants)}
}

// waits notes whether the server waits for participants.
func (h *chronicle) waits(now bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = now
}

// ended notes the end of a round of training.
func (h *chronicle) ended(abandoned bool, lasted time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if abandoned {
		h.abandoned++
		return
	}
	h.closed++
	h.lasted = append(h.lasted, lasted)
}

// released notes an accepted release.
func (h *chronicle) released(i int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.people[i].released++
}

// says notes what a participant says that it has spent: of every kind of terms the last
// word stands.
func (h *chronicle) says(i int, s Spending) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := &h.people[i]
	spent := slices.DeleteFunc(slices.Clone(p.spent), func(old Spending) bool { return sameTerms(old.Privacy, s.Privacy) })
	p.spent = append(spent, s) // a copy: readers keep the old one
}

// seen says whether a participant had joined before this server was started.
func (h *chronicle) seen(i int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.people[i].lastSeen.IsZero()
}

// median is how long a closed round took; 0 before the first.
func (h *chronicle) median() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.lasted) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(h.lasted))
	return sorted[len(sorted)/2]
}

// recall reads from the store who did what before the server was killed: nobody waits
// for those who had left.
func (c *Coordinator) recall(ctx context.Context) error {
	known, err := c.store.Participants(ctx, c.plan.Run)
	if err != nil {
		return err
	}
	for _, p := range known {
		c.chronicle.people[c.index[p.Name]].lastSeen = p.LastSeen
	}
	rounds, err := c.store.Rounds(ctx, c.plan.Run)
	if err != nil {
		return err
	}
	last := map[lastOf]int{}
	for _, r := range rounds {
		if !c.isEvaluation(r.Number) && r.Status != store.RoundOpen {
			c.chronicle.ended(r.Status == store.RoundAbandoned, r.Ended.Sub(r.Opened))
		}
		answers, err := c.store.Answers(ctx, c.plan.Run, r.Number)
		if err != nil {
			return err
		}
		end := RoundEnd{Round: r.Number + 1, Seconds: r.Ended.Sub(r.Opened).Seconds(), Abandoned: r.Status == store.RoundAbandoned}
		for _, a := range answers {
			end.count(a.Kind)
			if a.Kind == store.Declined && a.Reason == leftRun {
				c.presence.leaves(a.Participant)
			} else if a.Kind != store.Waiting {
				c.presence.joined(a.Participant)
			}
			if a.Kind == store.Released {
				c.chronicle.released(a.Participant)
				last[lastOf{a.Participant, c.isEvaluation(r.Number)}] = r.Number
			}
		}
		if !c.isEvaluation(r.Number) && r.Status != store.RoundOpen {
			c.chronicle.remember(end)
		}
	}
	for i, name := range c.names {
		if err := c.recallSpending(ctx, i, name, last); err != nil {
			return err
		}
	}
	return nil
}

// lastOf names a participant's last release, of training or of the evaluation.
type lastOf struct {
	participant int
	evaluation  bool
}

// recallSpending reads what a participant said last: in this run, or else in any.
func (c *Coordinator) recallSpending(ctx context.Context, i int, name string, last map[lastOf]int) error {
	var receipts []store.Receipt
	for _, evaluation := range []bool{false, true} {
		round, released := last[lastOf{i, evaluation}]
		if !released {
			continue
		}
		r, err := c.store.Receipt(ctx, c.plan.Run, round, name)
		if err != nil {
			return err
		}
		receipts = append(receipts, r)
	}
	if len(receipts) == 0 {
		r, err := c.store.LatestReceipt(ctx, name)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		receipts = append(receipts, r)
	}
	for _, r := range receipts {
		signed, err := ledger.ParseSignedReceipt(r.Signed)
		if err != nil {
			return err
		}
		c.chronicle.says(i, spendingOf(signed.Receipt))
	}
	return nil
}
