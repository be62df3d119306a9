package participant

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"connectrpc.com/connect"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/ledger"
)

// callTime is how long a short call may take.
const callTime = 30 * time.Second

// The waits between two attempts double, with jitter, so that a crowd does not come
// back all at once.
const (
	firstWait = 100 * time.Millisecond
	mostWait  = 20 * time.Second
)

// Retry repeats a call until it succeeds, is refused for good, or ctx ends.
func Retry[T any](ctx context.Context, log *slog.Logger, what string, call func(context.Context) (T, error)) (T, error) {
	for most := firstWait; ; most = min(2*most, mostWait) {
		began := time.Now()
		reply, err := call(ctx)
		if err == nil {
			return reply, nil
		}
		err = transfer.FromWire(err)
		if ctx.Err() != nil {
			return reply, fmt.Errorf("%w: %w", transfer.ErrInterrupted, context.Cause(ctx))
		}
		if !passing(err) {
			return reply, fmt.Errorf("%s: %w", what, err)
		}
		if time.Since(began) > mostWait {
			most = firstWait // it had been well for a while
		}
		pause := most/2 + rand.N(most/2) // jitter only; nothing is decided by it
		log.Warn("the server did not answer; trying again", "what", what, "wait", pause.Round(time.Millisecond).String(), "error", err)
		if err := transfer.Wait(ctx, nil, pause); err != nil {
			return reply, err
		}
	}
}

// passing says whether it is worth trying again.
func passing(err error) bool {
	if errors.Is(err, ErrTurnedAway) || errors.Is(err, ErrStranger) || errors.Is(err, identity.ErrSuccession) {
		return false
	}
	switch transfer.ReasonOf(err) {
	case transfer.ReasonBusy, transfer.ReasonDraining:
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
	d := &download{client: client, run: run, content: c, all: c.GetData(), left: fetchTime(c.GetSize())}
	if int64(len(d.all)) != c.GetSize() || len(d.all) > transfer.EnclosedBytes { // it did not come along
		d.all = make([]byte, 0, c.GetSize())
		if _, err := Retry(ctx, log, "fetch what the round begins with", d.attempt); err != nil {
			return nil, err
		}
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
	return transfer.Refuse(transfer.ReasonMalformed, "the server has sent %d of %d bytes in the %v that they may take at %d bytes a second: %w",
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
		if err := transfer.CheckPart(part); err != nil {
			return err
		}
		if at, n := int64(len(d.all)), int64(len(part.GetData())); n == 0 || part.GetOffset() != at || at+n > d.content.GetSize() {
			return transfer.Refuse(transfer.ReasonMalformed, "the server sends %d bytes at %d, where %d of %d have come", n, part.GetOffset(), at, d.content.GetSize())
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

// sendAfter holds a release back until the participant's public answer time, so that
// how long training took does not show in when the answer comes.
func (p *Participant) sendAfter(ctx context.Context, s *session, slot ledger.Slot, asked time.Time) error {
	if left := time.Until(asked.Add(p.o.AnswerAfter)); left > 0 {
		if err := transfer.Wait(ctx, nil, left); err != nil {
			return err
		}
	} else if p.o.AnswerAfter > 0 {
		p.o.Log.Warn("the answer took longer than answer_seconds: the server can tell; choose more",
			"round", slot.Round+1, "seconds", time.Since(asked).Seconds(), "answer_seconds", p.o.AnswerAfter.Seconds())
	}
	return p.send(ctx, s, slot)
}

// send brings a stored release to the server: always the same bytes.
func (p *Participant) send(ctx context.Context, s *session, slot ledger.Slot) error {
	noised, err := p.o.Ledger.Load(slot)
	if err != nil {
		return err
	}
	receipt, err := p.deliver(ctx, s, slot, noised)
	switch transfer.ReasonOf(err) {
	case transfer.ReasonLate, transfer.ReasonNotAsked, transfer.ReasonAnswered:
		p.report.Late++
		p.o.Log.Warn("the release came too late; what it cost stays spent", "round", slot.Round+1, "error", err)
		return p.o.Ledger.Abandon(slot, err.Error())
	case transfer.ReasonEarly:
		p.o.Log.Warn("the server has not come to this round, as one that was restored from a backup: the release is kept until it asks for it", "round", slot.Round+1, "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	signed, err := ledger.ParseSignedReceipt(receipt)
	if err != nil {
		return err
	}
	if err := p.succeed(ctx); err != nil {
		return err
	}
	if err := p.o.Ledger.Commit(slot, signed); err != nil {
		return err
	}
	p.report.Released++
	p.o.Log.Info("release accepted", "round", slot.Round+1)
	return nil
}

// deliver offers and uploads until the server has signed or refused.
func (p *Participant) deliver(ctx context.Context, s *session, slot ledger.Slot, noised []byte) ([]byte, error) {
	draft, err := p.o.Ledger.Draft(slot)
	if err != nil {
		return nil, err
	}
	statement, err := json.Marshal(draft)
	if err != nil {
		return nil, fmt.Errorf("write the statement: %w", err)
	}
	sum := sha256.Sum256(noised)
	name := &wire.Slot{Run: s.plan.Run, PlanSha256: s.sum[:], Round: int64(slot.Round)}
	offer := &wire.OfferRequest{
		Slot: name, Content: &wire.Content{Size: int64(len(noised)), Sha256: sum[:]}, Statement: statement,
	}
	if len(noised) <= transfer.EnclosedBytes {
		offer.Release = noised // a server of before asks for it all the same
	}
	return Retry(ctx, p.o.Log, "send the release", func(ctx context.Context) ([]byte, error) {
		short, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		standing, err := p.o.Client.Offer(short, offer)
		if err != nil {
			return nil, err
		}
		if standing.GetAccepted() {
			return standing.GetReceipt(), nil
		}
		if at := standing.GetOffset(); at < 0 || at > int64(len(noised)) {
			return nil, fmt.Errorf("the server says that it has %d of %d bytes", at, len(noised))
		}
		receipt, err := upload(ctx, p.o.Client, name, noised, standing.GetOffset())
		if transfer.ReasonOf(transfer.FromWire(err)) == transfer.ReasonNotOffered {
			return nil, transfer.Refuse(transfer.ReasonBusy, "the server was started anew: %w", err)
		}
		return receipt, err
	})
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
		piece := all[at:min(at+transfer.PartBytes, int64(len(all)))]
		// The server may have refused already: the reply says why.
		if err := out.Send(&wire.UploadPart{Slot: slot, Part: transfer.NewPart(at, piece)}); err != nil {
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

// settleEarlier finds out what became of a release whose acknowledgement was lost.
func (p *Participant) settleEarlier(ctx context.Context, s *session, round int) error {
	for r := s.settled; r < round; r++ {
		slot := s.slot(r)
		if e, ok := p.o.Ledger.Entry(slot); ok && e.Status == ledger.Stored {
			if err := p.send(ctx, s, slot); err != nil {
				return err
			}
		}
	}
	s.settled = round
	return nil
}

// decline tells the server that nothing will come. If it cannot be told, it finds
// out at the deadline.
func (p *Participant) decline(ctx context.Context, s *session, round int64, whole bool, code string) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := p.o.Client.Decline(ctx, &wire.DeclineRequest{
		Slot: &wire.Slot{Run: s.plan.Run, PlanSha256: s.sum[:], Round: round}, WholeRun: whole, Code: code,
	})
	if err != nil {
		p.o.Log.Warn("the server could not be told that this participant declines", "error", err)
	}
}
