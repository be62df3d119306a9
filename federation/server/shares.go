package server

import (
	"context"
	"math"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/transfer"
)

// What one participant may have of the server at once. An honest one has one or two
// requests under way; a connection that broke without a word may hold some for a
// while longer.
const (
	mostRequests = 24
	mostUploads  = 2
)

// How often one participant may ask: the first so many at once, then one in so long.
var (
	requestPace = pace{burst: 200, every: 10 * time.Millisecond}
	renewalPace = pace{burst: 5, every: 10 * time.Second}
)

// shares keep one participant from using up what all of them need.
type shares struct {
	mu sync.Mutex
	of map[string]*share // by the name in an admitted certificate
}

type share struct {
	requests, uploads int
	asked, renewed    bucket
}

func newShares() *shares { return &shares{of: map[string]*share{}} }

// change looks at a participant's share, or changes it.
func (s *shares) change(name string, edit func(*share)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[name] == nil {
		s.of[name] = new(share)
	}
	edit(s.of[name])
}

// refusalPause keeps a participant that does not heed refusals from asking on and on.
const refusalPause = 250 * time.Millisecond

// request begins a request: it waits while the participant asks too often, and is
// refused if too many of them wait.
func (s *shares) request(ctx context.Context, name string) (end func(), err error) {
	var late time.Duration
	s.change(name, func(sh *share) {
		if sh.requests >= mostRequests {
			err = transfer.Refuse(transfer.ReasonBusy, "%d requests of %s are under way, which is the most; wait for their answers", sh.requests, name)
			return
		}
		sh.requests++
		late = sh.asked.take(requestPace, time.Now())
	})
	if err != nil {
		_ = transfer.Wait(ctx, nil, refusalPause)
		return nil, err
	}
	end = func() { s.change(name, func(sh *share) { sh.requests-- }) }
	if late > 0 && transfer.Wait(ctx, nil, late) != nil {
		end()
		return nil, ctx.Err()
	}
	return end, nil
}

// upload begins an upload.
func (s *shares) upload(name string) (end func(), err error) {
	s.change(name, func(sh *share) {
		if sh.uploads >= mostUploads {
			err = transfer.Refuse(transfer.ReasonBusy, "%d releases of %s are on their way, which is the most", sh.uploads, name)
			return
		}
		sh.uploads++
	})
	return func() { s.change(name, func(sh *share) { sh.uploads-- }) }, err
}

// renewal allows another certificate, or says when to come back.
func (s *shares) renewal(name string) (err error) {
	s.change(name, func(sh *share) {
		now := time.Now()
		if wait := sh.renewed.wait(renewalPace, now); wait > 0 {
			err = transfer.Refuse(transfer.ReasonBusy, "%s has renewed its certificate %d times just now; the next one is given in %v", name, int(renewalPace.burst), wait.Round(time.Second))
			return
		}
		sh.renewed.take(renewalPace, now)
	})
	return err
}

// pace is how often something may happen.
type pace struct {
	burst float64
	every time.Duration
}

// bucket is what is used up of a pace.
type bucket struct {
	used float64
	at   time.Time
}

// wait is how long until the next one may happen.
func (b *bucket) wait(p pace, now time.Time) time.Duration {
	b.used = math.Max(0, b.used-float64(now.Sub(b.at))/float64(p.every))
	b.at = now
	return time.Duration((b.used + 1 - p.burst) * float64(p.every))
}

// take one, and say how long it has to wait.
func (b *bucket) take(p pace, now time.Time) time.Duration {
	wait := b.wait(p, now)
	b.used++
	return wait
}

// WrapUnary gives every request its share.
func (s *shares) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, q connect.AnyRequest) (connect.AnyResponse, error) {
		if p, ok := identity.PeerFrom(ctx); ok {
			end, err := s.request(ctx, p.Name)
			if err != nil {
				return nil, transfer.ToWire(err)
			}
			defer end()
		}
		return next(ctx, q)
	}
}

// WrapStreamingHandler gives every stream its share.
func (s *shares) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, stream connect.StreamingHandlerConn) error {
		if p, ok := identity.PeerFrom(ctx); ok {
			end, err := s.request(ctx, p.Name)
			if err != nil {
				return transfer.ToWire(err)
			}
			defer end()
		}
		return next(ctx, stream)
	}
}

// WrapStreamingClient has nothing to do: this is a server.
func (s *shares) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}
