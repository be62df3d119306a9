package server

import (
	"context"
	"time"

	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
)

// A small release needs no transfer of its own: it comes with its offer, or in one part,
// and is recorded with others that come at the same time.

// isSmall says whether a release is one.
func (c *Coordinator) isSmall(size int64) bool { return size <= c.small }

// offerSmall takes the offer of a small release that the open round waits for, and the
// release if it came along. The gate is held.
func (c *Coordinator) offerSmall(ctx context.Context, name string, o offer, release []byte) (standing, error) {
	if len(release) == 0 { // it comes by itself
		c.round.offered(o)
		return standing{}, nil
	}
	receipt, err := c.takeSmall(ctx, c.round, name, o, release)
	return standing{Offset: o.update.Size, Receipt: receipt}, err
}

// takeSmall makes a small release part of its round. The gate is held.
func (c *Coordinator) takeSmall(ctx context.Context, r *openRound, name string, o offer, release []byte) ([]byte, error) {
	i := o.update.Participant
	if !r.begins(i) {
		return nil, transfer.Refuse(transfer.ReasonBusy, "the release of round %d is being sent over another connection", r.number+1)
	}
	defer r.ends(i)
	if int64(len(release)) != o.update.Size {
		return nil, transfer.Refuse(transfer.ReasonMalformed, "a release of %d bytes where %d were announced", len(release), o.update.Size)
	}
	_, bounds := c.expected(r.number)
	if err := checkBounds(release, 0, bounds); err != nil {
		return nil, err
	}
	c.metrics.received(len(release))
	signed, err := c.sign(o)
	if err != nil {
		return nil, err
	}
	// What has arrived is recorded, even if the caller is gone by now.
	ctx = context.WithoutCancel(ctx)
	began := time.Now()
	repeated, err := c.direct.Accept(ctx, o.update, release, signed.record(name))
	if err != nil {
		return nil, fromStore(err)
	}
	c.metrics.recorded(began)
	return c.accepted(ctx, r, name, o, signed, repeated)
}

// begins says whether nobody else is at a participant's small release.
func (r *openRound) begins(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taking[i] {
		return false
	}
	r.taking[i] = true
	return true
}

func (r *openRound) ends(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.taking, i)
}

// offered notes an offer.
func (r *openRound) offered(o offer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offers[o.update.Participant] = o
}

// readAhead is how many small releases are read from the store at once.
const readAhead = 256

// ahead are small releases that were read before they are wanted, by participant.
type ahead struct {
	next  []store.Small
	after int // those up to this participant were read
	all   bool
}

func newAhead() *ahead { return &ahead{after: -1} }

// readSmall is a participant's release if it lies among the small ones. Participants come
// in ascending order.
func (c *Coordinator) readSmall(ctx context.Context, round, participant int, a *ahead) (content []byte, found bool, err error) {
	for {
		for len(a.next) > 0 && a.next[0].Participant < participant {
			a.next = a.next[1:]
		}
		if len(a.next) > 0 || a.all {
			break
		}
		more, err := c.store.SmallUpdates(ctx, c.plan.Run, round, max(a.after, participant-1), readAhead)
		if err != nil {
			return nil, false, err
		}
		a.next, a.all = more, len(more) < readAhead
		if len(more) > 0 {
			a.after = more[len(more)-1].Participant
		}
	}
	if len(a.next) == 0 || a.next[0].Participant != participant {
		return nil, false, nil
	}
	return a.next[0].Bytes, true, nil
}
