package transfer

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"connectrpc.com/connect"

	"github.com/coterie-fl/coterie/federation/identity"
)

// Reason is why a server refuses a request, for a program to branch on.
type Reason string

// The reasons.
const (
	ReasonForeign      Reason = "foreign"      // the caller has no part in this run
	ReasonStale        Reason = "stale"        // another run or plan: join again
	ReasonLate         Reason = "late"         // the round is over
	ReasonEarly        Reason = "early"        // the round was not opened yet: keep the release
	ReasonNotAsked     Reason = "not-asked"    // the round does not ask the caller
	ReasonAnswered     Reason = "answered"     // the caller declined this round
	ReasonMalformed    Reason = "malformed"    // wrong size, hash, number or statement
	ReasonEquivocation Reason = "equivocation" // other bytes were accepted for the slot
	ReasonNotOffered   Reason = "not-offered"  // the server has no offer: offer again
	ReasonBusy         Reason = "busy"         // another connection is at it: try again
	ReasonDraining     Reason = "draining"     // the server is about to stop: try again
	ReasonInternal     Reason = "internal"     // the server's own fault: try again
)

// reasonHeader carries the reason beside the message.
const reasonHeader = identity.ReasonHeader

// Refusal is a request that a server refuses, and why.
type Refusal struct {
	Reason  Reason
	Message string
	err     error
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s (%s)", r.Message, r.Reason) }

// Unwrap is what caused it.
func (r *Refusal) Unwrap() error { return r.err }

// Refuse makes a refusal. An error that the format wraps is its cause.
func Refuse(reason Reason, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Refusal{Reason: reason, Message: err.Error(), err: errors.Unwrap(err)}
}

var codes = map[Reason]connect.Code{
	ReasonForeign: connect.CodePermissionDenied, ReasonStale: connect.CodeFailedPrecondition,
	ReasonLate: connect.CodeFailedPrecondition, ReasonEarly: connect.CodeFailedPrecondition, ReasonNotAsked: connect.CodeFailedPrecondition,
	ReasonAnswered: connect.CodeFailedPrecondition, ReasonMalformed: connect.CodeInvalidArgument,
	ReasonEquivocation: connect.CodeAlreadyExists, ReasonNotOffered: connect.CodeFailedPrecondition,
	ReasonBusy: connect.CodeUnavailable, ReasonDraining: connect.CodeUnavailable, ReasonInternal: connect.CodeInternal,
}

// Reasons are all of them, in order.
func Reasons() []Reason { return slices.Sorted(maps.Keys(codes)) }

// ToWire is an error as the network carries it. The inside of the server's own
// failures stays in its log.
func ToWire(err error) error {
	if err == nil {
		return nil
	}
	var r *Refusal
	if !errors.As(err, &r) {
		r = &Refusal{Reason: ReasonInternal, Message: "the server could not do it; its log says why"}
	}
	out := connect.NewError(codes[r.Reason], errors.New(r.Message))
	out.Meta().Set(reasonHeader, string(r.Reason))
	return out
}

// FromWire is a refusal as it was before it travelled, if err is one.
func FromWire(err error) error {
	if ReasonOf(err) != "" {
		return err // made here, perhaps around one that has travelled
	}
	var wire *connect.Error
	if !errors.As(err, &wire) {
		return err
	}
	reason := Reason(wire.Meta().Get(reasonHeader))
	if _, known := codes[reason]; !known || reason == ReasonInternal {
		return err
	}
	return &Refusal{Reason: reason, Message: wire.Message(), err: err}
}

// ReasonOf is the reason of a refusal, or empty.
func ReasonOf(err error) Reason {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Reason
	}
	return ""
}
