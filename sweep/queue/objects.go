package queue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// objects is the object store. What others are to find lies under the hash of what it
// holds.
type objects struct {
	store jetstream.ObjectStore
	// sending is whoever sends a file just now.
	sending *sync.Mutex
	log     func(format string, args ...any)
}

// chunk is how much of a file is in a message. The client has up to 4,000 of them under way
// before it waits for an answer, and servers refuse more than 128 MiB that they have not
// written yet: so one file at a time of each process stays below that.
const chunk = 16 << 10

// crowded says that servers have more to write than they take.
func crowded(err error) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && refused.Code == http.StatusTooManyRequests
}

// Put stores content under its hash, unless it is there. Content that has another hash is
// an error, and not kept. Where too many send at once it is sent again, later.
func (o objects) Put(ctx context.Context, content io.ReadSeeker, want string) error {
	o.sending.Lock()
	defer o.sending.Unlock()
	for wait := time.Second; ; wait = min(2*wait, 30*time.Second) {
		err := o.put(ctx, content, want)
		if !crowded(err) {
			return err
		}
		o.log("a file cannot be sent now (%v): trying again", err)
		if err := pause(ctx, wait); err != nil {
			return err
		}
		if _, err := content.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("object store: %w", err)
		}
	}
}

func (o objects) put(ctx context.Context, content io.Reader, want string) error {
	if info, err := o.store.GetInfo(ctx, want); err == nil && !info.Deleted {
		return nil
	}
	h := sha256.New()
	meta := jetstream.ObjectMeta{Name: want, Opts: &jetstream.ObjectMetaOptions{ChunkSize: chunk}}
	if _, err := o.store.Put(ctx, meta, io.TeeReader(content, h)); err != nil {
		return fmt.Errorf("object store: %w", err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return errors.Join(fmt.Errorf("object store: a file changed while it was sent: its hash was %.12s and is %.12s", want, got), o.store.Delete(ctx, want))
	}
	return nil
}

// Get writes what lies under a hash; what holds something else is an error.
func (o objects) Get(ctx context.Context, want string, to io.Writer) error {
	r, err := o.store.Get(ctx, want)
	if err != nil {
		return fmt.Errorf("object store: %.12s: %w", want, err)
	}
	defer r.Close()
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, h), r); err != nil {
		return fmt.Errorf("object store: %.12s: %w", want, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("object store: what lies under %.12s has the hash %.12s: it was damaged or replaced", want, got)
	}
	return nil
}

// putBytes stores something under its hash, and says which that is.
func (o objects) putBytes(ctx context.Context, content []byte) (string, error) {
	name := hash(content)
	return name, o.Put(ctx, bytes.NewReader(content), name)
}
