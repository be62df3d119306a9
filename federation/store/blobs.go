package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"github.com/coterie-fl/coterie/internal/durable"
)

// blobs keeps the bytes of states and updates: with SQLite in files, since a
// write-ahead log would write them twice and map none of them; with PostgreSQL in
// the database, so that a server on another machine can take the run over.
type blobs interface {
	// prepare makes bytes durable before the transaction that refers to them.
	prepare(key string, content []byte) error
	// settle does so for an upload's file, which lies at the key already.
	settle(f *os.File) error
	// attach makes them durable with the transaction.
	attach(ctx context.Context, tx *sql.Tx, key string, content io.ReaderAt, size int64) error
	open(ctx context.Context, key string, size int64) (Blob, error)
	// drop forgets what begins with a key, with the transaction; dropped does so
	// after it.
	drop(ctx context.Context, tx *sql.Tx, key string) error
	dropped(key string)
}

// Keys are paths below the spool. Run IDs may hold anything: their hash does not.
func runKey(run string) string {
	sum := sha256.Sum256([]byte(run))
	return hex.EncodeToString(sum[:16])
}

func updatesOf(run string, round int) string {
	return path.Join(runKey(run), fmt.Sprintf("updates-%d", round))
}

func updateKey(u Update) string {
	return path.Join(updatesOf(u.Run, u.Round), fmt.Sprintf("%d-%x", u.Participant, u.SHA256))
}

func stateKey(run string, round int, sum [32]byte) string {
	return path.Join(runKey(run), fmt.Sprintf("state-%d-%x", round, sum))
}

// fileBlobs are files below a folder.
type fileBlobs struct{ dir string }

func (b fileBlobs) path(key string) string { return filepath.Join(b.dir, filepath.FromSlash(key)) }

func (b fileBlobs) prepare(key string, content []byte) error {
	if err := makeFolder(b.dir, path.Dir(key)); err != nil {
		return err
	}
	return durable.WriteFile(b.path(key), content, 0o600)
}

func (b fileBlobs) settle(f *os.File) error {
	if err := f.Sync(); err != nil {
		return err
	}
	return durable.SyncDirectory(filepath.Dir(f.Name()))
}

func (fileBlobs) attach(context.Context, *sql.Tx, string, io.ReaderAt, int64) error { return nil }

func (b fileBlobs) open(_ context.Context, key string, size int64) (Blob, error) {
	f, err := os.Open(b.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	} else if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || info.Size() != size {
		f.Close()
		return nil, fmt.Errorf("%w: %s does not have the %d bytes that were recorded", ErrDamaged, f.Name(), size)
	}
	return fileBlob{f, size}, nil
}

func (fileBlobs) drop(context.Context, *sql.Tx, string) error { return nil }

// dropped may fail: what is left is swept away when the store is next opened.
func (b fileBlobs) dropped(key string) { _ = os.RemoveAll(b.path(key)) }

type fileBlob struct {
	*os.File
	size int64
}

func (b fileBlob) Size() int64 { return b.size }

// makeFolder makes a folder below dir, and its name durable.
func makeFolder(dir, key string) error {
	full := filepath.Join(dir, filepath.FromSlash(key))
	if _, err := os.Stat(full); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(full, 0o700); err != nil {
		return err
	}
	for at := filepath.Dir(full); len(at) >= len(dir); at = filepath.Dir(at) {
		if err := durable.SyncDirectory(at); err != nil {
			return err
		}
	}
	return nil
}

// ourName is what keys begin with. A spool may be a folder that holds other things.
var ourName = regexp.MustCompile(`^[0-9a-f]{32}/(updates|state)-`)

// sweep removes the files that no open round and no kept state has: what a crash
// left behind, or a removal that failed.
func (s *sqlStore) sweep(ctx context.Context) error {
	keep := map[string]bool{}
	_, err := list(ctx, s.db, func(r *sql.Rows) (_ struct{}, err error) {
		var run string
		var round int
		err = r.Scan(&run, &round)
		keep[updatesOf(run, round)] = true
		return struct{}{}, err
	}, "SELECT run, number FROM rounds WHERE status = 'open'")
	if err != nil {
		return err
	}
	states, err := list(ctx, s.db, scanState, "SELECT run, round, sha256, size FROM states")
	if err != nil {
		return err
	}
	for _, state := range states {
		keep[state.key()] = true
	}
	runs, err := os.ReadDir(s.options.Spool)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if !run.IsDir() || !ourName.MatchString(run.Name()+"/state-") {
			continue
		}
		there, err := os.ReadDir(filepath.Join(s.options.Spool, run.Name()))
		if err != nil {
			return err
		}
		for _, entry := range there {
			key := path.Join(run.Name(), entry.Name())
			if keep[key] || !ourName.MatchString(key) {
				continue
			}
			if err := os.RemoveAll(filepath.Join(s.options.Spool, run.Name(), entry.Name())); err != nil {
				return fmt.Errorf("clear away what a crash left: %w", err)
			}
		}
	}
	return nil
}
