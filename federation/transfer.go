package federation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"connectrpc.com/connect"

	"github.com/coterie-fl/coterie/federation/wire"
)

// callTime is how long a short call may take.
const callTime = 30 * time.Second

// The waits between two attempts double, with jitter, so that a crowd does not come
// back all at once.
const (
	firstWait = 100 * time.Millisecond
	mostWait  = 20 * time.Second
)

// retry repeats a call until it succeeds, is refused for good, or ctx ends.
func retry[T any](ctx context.Context, log *slog.Logger, what string, call func(context.Context) (T, error)) (T, error) {
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		began := time.Now()
		reply, err := call(ctx)
		if err == nil {
			return reply, nil
		}
		err = fromWire(err)
		if ctx.Err() != nil {
			return reply, fmt.Errorf("%w: %w", ErrInterrupted, context.Cause(ctx))
		}
		if !passing(err) {
			return reply, fmt.Errorf("%s: %w", what, err)
		}
		if time.Since(began) > mostWait {
			wait = firstWait // it had been well for a while
		}
		pause := wait/2 + rand.N(wait/2) // jitter only; nothing is decided by it
		log.Warn("the server did not answer; trying again", "what", what, "wait", pause.Round(time.Millisecond).String(), "error", err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return reply, fmt.Errorf("%w: %w", ErrInterrupted, context.Cause(ctx))
		}
	}
}

// passing says whether it is worth trying again.
func passing(err error) bool {
	if errors.Is(err, ErrTurnedAway) || errors.Is(err, ErrStranger) {
		return false
	}
	switch reasonOf(err) {
	case ReasonBusy, ReasonDraining:
		return true
	case "":
	default:
		return false
	}
	switch connect.CodeOf(err) {
	case connect.CodePermissionDenied, connect.CodeUnauthenticated, connect.CodeInvalidArgument, connect.CodeUnimplemented:
		return false
	}
	return true
}

// A download has as long as its bytes take at the least rate, and a while to begin with.
// Both are public: how long a participant waits tells a server nothing.
const (
	leastRate   = 16 << 10 // bytes a second
	fetchLeeway = 2 * time.Minute
)

// fetchTime is how long bytes may take to come in.
func fetchTime(size int64) time.Duration {
	return fetchLeeway + time.Duration(float64(size)/leastRate*float64(time.Second))
}

// fetch gets bytes by their name, going on where an earlier attempt broke off. What
// does not have the size and the hash is never returned.
func fetch(ctx context.Context, client wire.FederationClient, log *slog.Logger, run string, c *wire.Content, most int64) ([]byte, error) {
	if c.GetSize() < 0 || c.GetSize() > most || len(c.GetSha256()) != sha256.Size {
		return nil, fmt.Errorf("the server announces %d bytes with a hash of %d; at most %d and 32 are expected", c.GetSize(), len(c.GetSha256()), most)
	}
	d := &download{client: client, run: run, content: c, all: make([]byte, 0, c.GetSize()), left: fetchTime(c.GetSize())}
	if _, err := retry(ctx, log, "fetch what the round begins with", d.attempt); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(d.all); string(sum[:]) != string(c.GetSha256()) {
		return nil, errors.New("the server sent other bytes than it announced")
	}
	return d.all, nil
}

// download is some content on its way in, over as many connections as it takes.
type download struct {
	client  wire.FederationClient
	run     string
	content *wire.Content
	all     []byte
	// left is the time that is left to it. Only time in which the server sends counts: a
	// server that is away is waited for.
	left  time.Duration
	since time.Time // the last attempt, if it brought something
}

// errSlow ends a download that takes longer than its bytes do at the least rate.
var errSlow = errors.New("too slow")

func (d *download) attempt(ctx context.Context) (none struct{}, err error) {
	began, before := time.Now(), len(d.all)
	if !d.since.IsZero() {
		d.left -= began.Sub(d.since)
		d.since = time.Time{}
	}
	if d.left <= 0 {
		return none, d.tooSlow()
	}
	limited, cancel := context.WithTimeoutCause(ctx, d.left, errSlow)
	defer cancel()
	err = d.receive(limited)
	if len(d.all) > before {
		d.since = began
	}
	if err != nil && errors.Is(context.Cause(limited), errSlow) {
		return none, d.tooSlow()
	}
	return none, err
}

func (d *download) tooSlow() error {
	return refuse(ReasonMalformed, "the server has sent %d of %d bytes in the %v that they may take at %d bytes a second: %w",
		len(d.all), d.content.GetSize(), fetchTime(d.content.GetSize()).Round(time.Second), leastRate, errSlow)
}

// receive takes what one connection brings.
func (d *download) receive(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A stream that stands still is given up, however long it may run.
	stall := time.AfterFunc(callTime, cancel)
	defer stall.Stop()
	in, err := d.client.Broadcast(ctx, &wire.BroadcastRequest{Run: d.run, Sha256: d.content.GetSha256(), Offset: int64(len(d.all))})
	if err != nil {
		return err
	}
	defer in.Close()
	for in.Receive() {
		stall.Reset(callTime)
		part := in.Msg()
		if err := checkPart(part); err != nil {
			return err
		}
		if at, n := int64(len(d.all)), int64(len(part.GetData())); n == 0 || part.GetOffset() != at || at+n > d.content.GetSize() {
			return refuse(ReasonMalformed, "the server sends %d bytes at %d, where %d of %d have come", n, part.GetOffset(), at, d.content.GetSize())
		}
		d.all = append(d.all, part.GetData()...)
	}
	if err := in.Err(); err != nil {
		return err
	}
	if int64(len(d.all)) != d.content.GetSize() {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// upload sends a release that the server has agreed to take, from an offset on, and
// returns the receipt.
func upload(ctx context.Context, client wire.FederationClient, slot *wire.Slot, all []byte, offset int64) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stall := time.AfterFunc(callTime, cancel)
	defer stall.Stop()
	out, err := client.Upload(ctx)
	if err != nil {
		return nil, err
	}
	for at := offset; at < int64(len(all)) || at == offset; {
		stall.Reset(callTime)
		piece := all[at:min(at+PartBytes, int64(len(all)))]
		// The server may have refused already: the reply says why.
		if err := out.Send(&wire.UploadPart{Slot: slot, Part: newPart(at, piece)}); err != nil {
			break
		}
		at += int64(len(piece))
		if len(piece) == 0 {
			break
		}
	}
	stall.Reset(2 * callTime) // the server makes it durable now
	reply, err := out.CloseAndReceive()
	if err != nil {
		return nil, err
	}
	return reply.GetReceipt(), nil
}
