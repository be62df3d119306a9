package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
)

// SmallBytes is the size up to which an update can be recorded by Accept: its bytes lie
// in the database, in the row beside its own.
const SmallBytes = 64 << 10

// Small is the bytes of a small update.
type Small struct {
	Participant int // index
	Bytes       []byte
}

func (s *sqlStore) Accept(ctx context.Context, u Update, content []byte, receipt *Receipt) (repeated bool, err error) {
	switch {
	case u.Size > SmallBytes || int64(len(content)) != u.Size:
		return false, fmt.Errorf("%v: %w: %d bytes of %d; at most %d can come at once", u, ErrMismatch, len(content), u.Size, SmallBytes)
	case sha256.Sum256(content) != u.SHA256:
		return false, fmt.Errorf("%v: %w: their SHA-256 differs", u, ErrMismatch)
	case receipt != nil && (receipt.Run != u.Run || receipt.Round != u.Round):
		return false, fmt.Errorf("%v: the receipt is for round %d of run %s", u, receipt.Round, receipt.Run)
	case ctx.Err() != nil:
		return false, ctx.Err()
	}
	if content == nil {
		content = []byte{} // and not NULL
	}
	a := &acceptance{update: u, content: content, receipt: receipt, done: make(chan struct{})}
	if s.queue.add(a) {
		go s.recordAll()
	}
	<-a.done // from here on it may be recorded at any moment: who asked is told what became of it
	return a.verdict == repetition, a.err
}

func (s *sqlStore) SmallUpdates(ctx context.Context, run string, round, after, most int) ([]Small, error) {
	return list(ctx, s.db, func(r *sql.Rows) (u Small, err error) { return u, r.Scan(&u.Participant, &u.Bytes) },
		"SELECT participant, bytes FROM small WHERE run = $1 AND round = $2 AND participant > $3 ORDER BY participant LIMIT $4", run, round, after, most)
}

// openSmall is an update that lies in the database, or nil: one that was accepted by
// Upload lies elsewhere.
func openSmall(ctx context.Context, q query, u Update) (Blob, error) {
	var content []byte
	err := q.QueryRowContext(ctx, "SELECT bytes FROM small WHERE run = $1 AND round = $2 AND participant = $3", u.Run, u.Round, u.Participant).Scan(&content)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	case int64(len(content)) != u.Size:
		return nil, fmt.Errorf("%w: it has %d bytes, %d were recorded", ErrDamaged, len(content), u.Size)
	}
	return smallBlob{bytes.NewReader(content)}, nil
}

type smallBlob struct{ *bytes.Reader }

// ReadAt reads nothing of nothing without an error, as a file does.
func (b smallBlob) ReadAt(p []byte, offset int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return b.Reader.ReadAt(p, offset)
}

func (smallBlob) Close() error { return nil }
