package cells

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// Maker makes cells of one kind on a worker, from their Spec.
type Maker func(ctx context.Context, b Bench, spec json.RawMessage) (any, error)

// Bench is what a worker has for the cell that it makes.
type Bench struct {
	Data    string // folder of real data; empty: there is none
	Keep    Keeper
	Objects Objects
	Tell    func(words string) // says how far the cell has come
	// Made is what came of another cell; nil: nothing yet.
	Made func(ctx context.Context, kind string, identity any) (json.RawMessage, error)
}

// Keeper keeps a cell's checkpoints where another worker finds them. It is what sim.Finish
// asks for.
type Keeper interface {
	Load(id string) []byte
	Save(id string, rounds int, write func(w io.Writer) error)
	Every() time.Duration
}

// Objects is a store of files, by the SHA-256 of what they hold: what is too large for a
// message.
type Objects interface {
	Put(ctx context.Context, content io.ReadSeeker, sha256 string) error
	Get(ctx context.Context, sha256 string, to io.Writer) error
}

// ErrUnfit means that this worker cannot make a cell which another can: it lacks the data,
// or is another program. It gives the cell back and ends.
var ErrUnfit = errors.New("this worker is not fit for the queue's cells")

// Sender is what a runner has, beside Runner, that makes cells elsewhere: a place for the
// files that they read.
type Sender interface {
	Runner
	Objects() Objects
}
