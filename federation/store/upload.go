package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// slot is where one participant's release of one round goes.
type slot struct {
	run         string
	round       int
	participant int
}

func (u Update) slot() slot { return slot{u.Run, u.Round, u.Participant} }

func (u Update) String() string {
	return fmt.Sprintf("update of participant %d for round %d of run %s", u.Participant, u.Round, u.Run)
}

// upload writes to a file at the update's key. The row in the database, not the
// file, is what makes an update accepted.
type upload struct {
	store    *sqlStore
	update   Update
	file     *os.File // nil if it had been accepted before
	hash     hash.Hash
	offset   int64
	released bool // the slot is free for another upload
}

func (s *sqlStore) Upload(ctx context.Context, u Update) (Upload, error) {
	if u.Size < 0 {
		return nil, fmt.Errorf("%v: %w: a size of %d", u, ErrMismatch, u.Size)
	}
	// The slot first, then the question how it stands: whoever has the slot may
	// remove other files there.
	s.mu.Lock()
	busy := s.active[u.slot()]
	s.active[u.slot()] = true
	s.mu.Unlock()
	if busy {
		return nil, fmt.Errorf("%v: %w: it is being sent over another connection", u, ErrBusy)
	}
	up := &upload{store: s, update: u, hash: sha256.New()}
	if err := up.start(ctx); err != nil {
		up.Close()
		return nil, err
	}
	return up, nil
}

func (up *upload) start(ctx context.Context) error {
	s, u := up.store, up.update
	var v verdict
	err := s.change(ctx, u.String(), func(tx *sql.Tx) (err error) {
		v, err = s.judge(ctx, tx, u)
		return err
	})
	switch {
	case err != nil:
		return err
	case v == equivocation:
		return fmt.Errorf("%v: %w", u, ErrEquivocation)
	case v == repetition:
		up.offset = u.Size
		return nil
	}
	if err := up.openFile(); err != nil {
		return fmt.Errorf("%v: %w", u, err)
	}
	return nil
}

// openFile goes on with what is there of this update, and removes what is there of
// others for the slot: a participant has room for one.
func (up *upload) openFile() error {
	spool, key := up.store.options.Spool, updateKey(up.update)
	if err := makeFolder(spool, path.Dir(key)); err != nil {
		return err
	}
	full := filepath.Join(spool, filepath.FromSlash(key))
	others, err := os.ReadDir(filepath.Dir(full))
	if err != nil {
		return err
	}
	mine := fmt.Sprintf("%d-", up.update.Participant)
	for _, other := range others {
		if name := other.Name(); strings.HasPrefix(name, mine) && name != filepath.Base(full) {
			if err := os.Remove(filepath.Join(filepath.Dir(full), name)); err != nil {
				return err
			}
		}
	}
	if up.file, err = os.OpenFile(full, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	up.offset, err = io.Copy(up.hash, up.file)
	if err == nil && up.offset > up.update.Size {
		err = up.startAnew()
	}
	return err
}

func (up *upload) startAnew() error {
	up.offset = 0
	up.hash.Reset()
	_, err := up.file.Seek(0, io.SeekStart)
	return errors.Join(err, up.file.Truncate(0))
}

func (up *upload) Offset() int64 { return up.offset }

func (up *upload) Write(p []byte) (int, error) {
	if int64(len(p)) > up.update.Size-up.offset {
		return 0, fmt.Errorf("%v: %w: more than %d bytes", up.update, ErrMismatch, up.update.Size)
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := up.file.Write(p)
	up.hash.Write(p[:n])
	up.offset += int64(n)
	if err != nil {
		return n, fmt.Errorf("%v: %w", up.update, err)
	}
	return n, nil
}

func (up *upload) Commit(ctx context.Context, receipt *Receipt) (repeated bool, err error) {
	if up.file == nil {
		return true, nil
	}
	u := up.update
	if up.offset != u.Size {
		return false, fmt.Errorf("%v: %w: %d bytes of %d", u, ErrMismatch, up.offset, u.Size)
	}
	if toSum(up.hash.Sum(nil)) != u.SHA256 {
		return false, errors.Join(fmt.Errorf("%v: %w: their SHA-256 differs", u, ErrMismatch), up.startAnew())
	}
	settled := up.store.blobs.settle(up.file)
	var v verdict
	err = up.store.change(ctx, u.String(), func(tx *sql.Tx) error {
		var err error
		if v, err = up.store.judge(ctx, tx, u); err != nil || v != fresh {
			return err
		}
		if settled != nil {
			return settled
		}
		return up.store.accept(ctx, tx, u, up.file, receipt)
	})
	if receipt != nil {
		up.store.forget(receipt.Participant)
	}
	if err == nil && v == equivocation {
		err = fmt.Errorf("%v: %w", u, ErrEquivocation)
	}
	if err == nil && up.store.postgres {
		os.Remove(up.file.Name()) // the database has it; a leftover is swept away later
	}
	return v == repetition, err
}

func (up *upload) Close() error {
	if up.released {
		return nil
	}
	up.released = true
	up.store.mu.Lock()
	delete(up.store.active, up.update.slot())
	up.store.mu.Unlock()
	if up.file == nil {
		return nil
	}
	return up.file.Close()
}
