package federation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
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
		if turnedAway(err) {
			return reply, fmt.Errorf("%s: the server does not accept this participant's certificate, which was revoked or has expired; ask for a new invitation: %w", what, err)
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

// turnedAway says whether the server ended the handshake: it does so when it has seen
// the certificate.
func turnedAway(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// passing says whether it is worth trying again.
func passing(err error) bool {
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

// fetch gets bytes by their name, going on where an earlier attempt broke off. What
// does not have the size and the hash is never returned.
func fetch(ctx context.Context, client wire.FederationClient, log *slog.Logger, run string, c *wire.Content, most int64) ([]byte, error) {
	if c.GetSize() < 0 || c.GetSize() > most || len(c.GetSha256()) != sha256.Size {
		return nil, fmt.Errorf("the server announces %d bytes with a hash of %d; at most %d and 32 are expected", c.GetSize(), len(c.GetSha256()), most)
	}
	all := make([]byte, 0, c.GetSize())
	_, err := retry(ctx, log, "fetch what the round begins with", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, fetchOnce(ctx, client, run, c, &all)
	})
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(all); string(sum[:]) != string(c.GetSha256()) {
		return nil, errors.New("the server sent other bytes than it announced")
	}
	return all, nil
}

func fetchOnce(ctx context.Context, client wire.FederationClient, run string, c *wire.Content, all *[]byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A stream that stands still is given up, however long it may run.
	stall := time.AfterFunc(callTime, cancel)
	defer stall.Stop()
	in, err := client.Broadcast(ctx, &wire.BroadcastRequest{Run: run, Sha256: c.GetSha256(), Offset: int64(len(*all))})
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
		if part.GetOffset() != int64(len(*all)) || int64(len(*all)+len(part.GetData())) > c.GetSize() {
			return refuse(ReasonMalformed, "the server sends %d bytes at %d, where %d of %d have come", len(part.GetData()), part.GetOffset(), len(*all), c.GetSize())
		}
		*all = append(*all, part.GetData()...)
	}
	if err := in.Err(); err != nil {
		return err
	}
	if int64(len(*all)) != c.GetSize() {
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
