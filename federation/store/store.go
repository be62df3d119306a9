// Package store is the federation server's durable state: runs, rounds, updates and receipts, in SQLite or PostgreSQL.
//
// A large update's bytes go to a file in the spool first, so that an upload can go on
// after a broken connection or a crash. The row in the database makes it accepted:
// the bytes are on disk before the row, and the row before the acknowledgement. A
// file without a row is an upload that may go on; a row without its file cannot be.
//
// With SQLite the bytes stay in that file: a write-ahead log would write them twice.
// With PostgreSQL they move into the database in the same transaction as the row:
// who chooses it wants a server on another machine to be able to take the run over,
// and that one does not have the first one's disk. Either way they are given up when
// the round ends.
//
// A small update needs none of that: its bytes lie in the database, in the transaction
// that makes it accepted, and updates that come at once share one (group.go).
package store

import (
	"context"
	"errors"
	"time"
)

// What callers branch on. Every other error means that the store could not be read or
// written: try again. Nothing was recorded then, unless the connection broke just when
// a database had done so: who tries again must expect to find it done.
var (
	// ErrNotFound: there is no such run, round, state or receipt.
	ErrNotFound = errors.New("not found")
	// ErrExists: it is there already, and differs from what was given.
	ErrExists = errors.New("exists already")
	// ErrRoundClosed: the round is closed, abandoned or was never opened.
	ErrRoundClosed = errors.New("the round is not open")
	// ErrNotAssigned: the participant has no part in the round.
	ErrNotAssigned = errors.New("the participant is not assigned to the round")
	// ErrEquivocation: other bytes came for a slot that is taken. They are recorded
	// and refused.
	ErrEquivocation = errors.New("other bytes were accepted for this slot")
	// ErrAnswered: the participant has released or declined already.
	ErrAnswered = errors.New("the participant has answered this round")
	// ErrMismatch: the bytes do not have the size or the hash that was announced.
	ErrMismatch = errors.New("the bytes are not those announced")
	// ErrReceiptOrder: a receipt does not follow the participant's latest one.
	ErrReceiptOrder = errors.New("the receipt does not follow the latest one")
	// ErrBusy: another server holds the store.
	ErrBusy = errors.New("another server holds the store")
	// ErrDamaged: bytes are not on disk as they were recorded.
	ErrDamaged = errors.New("the store is damaged")
	// ErrSuperseded: another server has taken the store over; this one must stop.
	ErrSuperseded = errors.New("another server has taken the store over")
)

// Store is the server's memory. Every method that changes it is one transaction:
// when it has returned nil, the change survives a power loss; when the process is
// killed before, nothing of it is there. Methods may be called from many
// goroutines. One server at a time holds a store.
type Store interface {
	// CreateRun records a run. The same run again is no change; another run file
	// under the same ID is ErrExists.
	CreateRun(ctx context.Context, r Run) error
	// Run is the run with this ID, or ErrNotFound.
	Run(ctx context.Context, id string) (Run, error)
	// Runs are all runs, oldest first.
	Runs(ctx context.Context) ([]Run, error)
	// SetRunStatus records how a run stands; detail is for people.
	SetRunStatus(ctx context.Context, id string, status RunStatus, detail string) error

	// AddParticipant gives a participant its place in a run. With index -1 it gets
	// the lowest free one. The same name again returns its place; a place that
	// somebody else has, or another place for the same name, is ErrExists.
	AddParticipant(ctx context.Context, run, name string, index int) (Participant, error)
	// AddParticipants gives everybody in a list its place there, in one transaction.
	AddParticipants(ctx context.Context, run string, names []string) error
	// Participants are those of a run, by index.
	Participants(ctx context.Context, run string) ([]Participant, error)
	// Seen records that a participant was heard of.
	Seen(ctx context.Context, run, name string, at time.Time) error

	// OpenRound records a round, whom it asks, and the sampler's state after the
	// draw, together. A round that is there already is ErrExists.
	OpenRound(ctx context.Context, r Round) error
	// Round is one round of a run, or ErrNotFound.
	Round(ctx context.Context, run string, number int) (Round, error)
	// LatestRound is the one with the highest number, or ErrNotFound.
	LatestRound(ctx context.Context, run string) (Round, error)
	// Rounds are all rounds of a run, in order.
	Rounds(ctx context.Context, run string) ([]Round, error)
	// CloseRound records the state after the round and closes it, together. The
	// round's update bytes are given up: aggregate before.
	CloseRound(ctx context.Context, run string, number int, state []byte, at time.Time) error
	// AbandonRound closes the round without a new state. Who had answered stays
	// recorded: what participants spent stays visible.
	AbandonRound(ctx context.Context, run string, number int, reason string, at time.Time) error
	// LatestState is the state of the last closed round and that round's number, or
	// ErrNotFound before the first.
	LatestState(ctx context.Context, run string) (number int, state []byte, err error)

	// Upload begins, or goes on with, the transfer of an update. An update that was
	// accepted already gives an upload that is complete: Commit repeats the
	// acknowledgement. Errors: ErrRoundClosed, ErrNotAssigned, ErrAnswered (declined
	// before), ErrEquivocation (recorded), ErrBusy (the same participant is
	// uploading the same update over another connection).
	Upload(ctx context.Context, u Update) (Upload, error)
	// Accept records an update of at most SmallBytes, its bytes and its receipt, together,
	// and returns when they are durable: Upload and Commit at once. Those who come at the
	// same time share a transaction and a sync; what is wrong with one of them is no harm
	// to the others. It has the errors and the repetitions of Upload and Commit.
	Accept(ctx context.Context, u Update, content []byte, receipt *Receipt) (repeated bool, err error)
	// Decline records that a participant keeps its data to itself this time. The
	// same again is no change; after a release it is ErrAnswered.
	Decline(ctx context.Context, run string, round, participant int, reason string, at time.Time) error
	// Answers are the assignments of a round and what came of them, by index.
	Answers(ctx context.Context, run string, round int) ([]Answer, error)
	// Answer is one participant's, or ErrNotFound if the round does not ask it.
	Answer(ctx context.Context, run string, round, participant int) (Answer, error)
	// SmallUpdates are the bytes of updates that Accept recorded, of those after an index,
	// by index, so many at most. An ended round has none.
	SmallUpdates(ctx context.Context, run string, round, after, most int) ([]Small, error)
	// OpenUpdate reads the bytes of an accepted update of an open round.
	OpenUpdate(ctx context.Context, run string, round, participant int) (Blob, error)
	// Equivocations are the refused attempts of a run to replace an update, the first
	// MostEquivocations of every participant.
	Equivocations(ctx context.Context, run string) ([]Equivocation, error)

	// LatestReceipt is the participant's receipt with the highest counter, over all
	// runs, or ErrNotFound.
	LatestReceipt(ctx context.Context, participant string) (Receipt, error)
	// Receipt is the one for a participant's release of a round, or ErrNotFound.
	Receipt(ctx context.Context, run string, round int, participant string) (Receipt, error)
	// Receipts are all of a run, by round and participant.
	Receipts(ctx context.Context, run string) ([]Receipt, error)

	// Ping says whether the store still answers and is still ours.
	Ping(ctx context.Context) error
	// Close lets go of the store.
	Close() error
}

// Upload is one update on its way in. It belongs to one goroutine. What was
// written survives Close: the next Upload of the same update goes on there.
type Upload interface {
	// Offset is how many bytes are there already.
	Offset() int64
	// Write appends; more bytes than announced are ErrMismatch.
	Write(p []byte) (int, error)
	// Commit checks size and hash, makes the bytes durable and records the update
	// and its receipt, together. Repeated is true if it had been accepted before;
	// then the receipt recorded at that time holds. Wrong bytes are forgotten:
	// ErrMismatch.
	Commit(ctx context.Context, receipt *Receipt) (repeated bool, err error)
	// Close ends the upload; without Commit it can be continued later.
	Close() error
}

// Blob is an update's bytes.
type Blob interface {
	Read(p []byte) (int, error)
	ReadAt(p []byte, offset int64) (int, error)
	Size() int64
	Close() error
}
