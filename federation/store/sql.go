package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// sqlStore is both backends: they differ in the driver, in how rows are locked and
// in where bytes are kept.
type sqlStore struct {
	db       *sql.DB
	postgres bool
	options  Options
	blobs    blobs
	epoch    int64
	commit   func(*sql.Tx) error
	release  func() error // of the lock against a second server
	held     *sql.Conn    // that holds PostgreSQL's lock
	holding  sync.Mutex   // guards held
	scratch  string       // folder that ends with the store

	mu      sync.Mutex
	active  map[slot]bool           // uploads on their way
	seen    map[[2]string]time.Time // what Seen last recorded, by run and name
	further map[slot]int            // equivocations that were counted only, by run and participant
	// counters are of participants' latest receipts, as far as they are known: nobody else
	// writes any while this server holds the store.
	counters map[string]uint64
	known    statements
	queue    queue // small updates that wait to be recorded
}

// change runs edit as one transaction, and only while this server holds the store.
func (s *sqlStore) change(ctx context.Context, what string, edit func(tx *sql.Tx) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
	}()
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing happens after a commit
	if err := s.mine(ctx, tx); err != nil {
		return err
	}
	if err := edit(tx); err != nil {
		return err
	}
	return s.commit(tx)
}

// query is what a transaction and the database have in common.
type query interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// mine fails if another server has taken the store over.
func (s *sqlStore) mine(ctx context.Context, q query) error {
	var epoch int64
	if err := q.QueryRowContext(ctx, "SELECT epoch FROM holder WHERE one = 1"+s.share()).Scan(&epoch); err != nil {
		return err
	}
	if epoch != s.epoch {
		return ErrSuperseded
	}
	return nil
}

// share keeps others from changing a row that was read, until the transaction
// ends. SQLite has one writer: nobody could.
func (s *sqlStore) share() string {
	if s.postgres {
		return " FOR SHARE"
	}
	return ""
}

func (s *sqlStore) Ping(ctx context.Context) error {
	err := s.mine(ctx, s.db)
	if err == nil && s.postgres {
		err = s.keepLock(ctx)
	}
	if err != nil {
		return fmt.Errorf("the store does not answer: %w", err)
	}
	return nil
}

func (s *sqlStore) Close() error {
	var errs []error
	if s.release != nil {
		if s.postgres {
			errs = append(errs, s.release()) // its connection comes from the pool
		}
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	if s.release != nil && !s.postgres {
		errs = append(errs, s.release()) // the file is no longer in use
	}
	if s.scratch != "" {
		errs = append(errs, os.RemoveAll(s.scratch))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the store: %w", err)
	}
	return nil
}

// one turns a missing row into ErrNotFound.
func one(err error, what string, args ...any) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf(what+": %w", append(args, ErrNotFound)...)
	}
	return fmt.Errorf("read the store: %w", err)
}

// list reads all rows of a query.
func list[T any](ctx context.Context, q query, scan func(*sql.Rows) (T, error), text string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("read the store: %w", err)
	}
	defer rows.Close()
	all := []T{}
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("read the store: %w", err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the store: %w", err)
	}
	return all, nil
}

// changeOne changes exactly one row, or says that there was none.
func changeOne(ctx context.Context, tx *sql.Tx, text string, args ...any) (changed bool, err error) {
	r, err := tx.ExecContext(ctx, text, args...)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n == 1, err
}

// Times are kept as nanoseconds, zero as 0.
func fromTime(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func toTime(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// some makes the drivers agree: one of them reads no bytes as nil.
func some(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

func toSum(b []byte) (sum [32]byte) {
	copy(sum[:], b)
	return sum
}
