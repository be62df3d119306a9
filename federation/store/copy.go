package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Copy is an SQLite store as it was at one instant: a file of its own, and the bytes that
// it refers to. Close lets go of them.
type Copy struct {
	Database string // path of the copied file
	Contents []CopiedContent
	Run      Run // the latest; zero: there is none
	Rounds   int // of that run that were opened
	Released int // releases of its open round
}

// CopiedContent is the bytes of a state, or of a release of an open round.
type CopiedContent struct {
	Name   string // path beside the database's, from its folder
	SHA256 [32]byte
	Size   int64
	file   *os.File
}

// WriteTo writes the bytes, and fails with ErrDamaged if they are not those recorded.
func (c CopiedContent) WriteTo(w io.Writer) (int64, error) {
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), io.NewSectionReader(c.file, 0, c.Size))
	if err == nil && (n != c.Size || toSum(sum.Sum(nil)) != c.SHA256) {
		err = fmt.Errorf("%w: %s is not on disk what it was when it came", ErrDamaged, c.file.Name())
	}
	return n, err
}

// Close closes the contents; the copied file is the caller's.
func (c *Copy) Close() error {
	var errs []error
	for _, content := range c.Contents {
		errs = append(errs, content.file.Close())
	}
	return errors.Join(errs...)
}

// CopySQLite copies a store to a new file, while a server may be writing to it. Nobody can
// change the database meanwhile: what it refers to is there, and once it is opened it can
// be read even if the server removes it. A store that is not there is fs.ErrNotExist.
func CopySQLite(ctx context.Context, path, to string) (*Copy, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("copy the store: %w", err)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("copy the store: %w", err)
	}
	place := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: url.Values{
		"mode": {"rw"}, "_pragma": {"busy_timeout(10000)"},
	}.Encode()}
	db, err := sql.Open("sqlite", place.String())
	if err != nil {
		return nil, fmt.Errorf("copy the store: %w", err)
	}
	c := &Copy{Database: to}
	err = founded(ctx, db)
	if err == nil {
		err = c.take(ctx, db, path)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, fmt.Errorf("copy the store %s: %w", path, errors.Join(err, c.Close()))
	}
	return c, nil
}

// founding is how long a server may take to make its tables.
const founding = 2 * time.Second

// founded waits until the tables are there: a server may just have been started.
func founded(ctx context.Context, db *sql.DB) error {
	for began := time.Now(); ; {
		var there int
		err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'assignments'").Scan(&there)
		if err == nil && there > 0 {
			return nil
		}
		if time.Since(began) > founding {
			return errors.Join(errors.New("it has no tables: no server has been started with it yet, or it is not a store"), err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// take holds the writers' lock on one connection, and reads on another.
func (c *Copy) take(ctx context.Context, db *sql.DB, path string) error {
	holder, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer holder.Close()
	if _, err := holder.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer holder.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // nothing was changed
	// SQLite writes into an empty file, and would give one that it makes to everybody.
	f, err := os.OpenFile(c.Database, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "VACUUM INTO $1", c.Database); err != nil {
		return err
	}
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil || verdict != "ok" {
		return errors.Join(fmt.Errorf("%w: %s", ErrDamaged, verdict), err)
	}
	if err := c.describe(ctx, db); err != nil {
		return err
	}
	return c.open(ctx, db, path)
}

func (c *Copy) describe(ctx context.Context, db *sql.DB) error {
	runs, err := list(ctx, db, func(r *sql.Rows) (Run, error) { return scanRun(r) }, runColumns+" ORDER BY created, id")
	if err != nil || len(runs) == 0 {
		return err
	}
	c.Run = runs[len(runs)-1]
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM rounds WHERE run = $1", c.Run.ID).Scan(&c.Rounds); err != nil {
		return err
	}
	return db.QueryRowContext(ctx, `SELECT COUNT(*) FROM assignments a JOIN rounds r ON r.run = a.run AND r.number = a.round
		WHERE a.run = $1 AND a.kind = 'released' AND r.status = 'open'`, c.Run.ID).Scan(&c.Released)
}

// open opens everything that the database refers to.
func (c *Copy) open(ctx context.Context, db *sql.DB, path string) error {
	states, err := list(ctx, db, scanState, "SELECT run, round, sha256, size FROM states")
	if err != nil {
		return err
	}
	for _, k := range states {
		if err := c.add(path, k.key(), k.sum, k.size); err != nil {
			return err
		}
	}
	updates, err := list(ctx, db, func(r *sql.Rows) (u Update, err error) {
		var sum []byte
		err = r.Scan(&u.Run, &u.Round, &u.Participant, &sum, &u.Size)
		u.SHA256 = toSum(sum)
		return u, err
	}, `SELECT a.run, a.round, a.participant, a.sha256, a.size FROM assignments a JOIN rounds r ON r.run = a.run AND r.number = a.round
		WHERE a.kind = 'released' AND r.status = 'open'`)
	if err != nil {
		return err
	}
	inside, err := hasSmall(ctx, db)
	if err != nil {
		return err
	}
	for _, u := range updates {
		if inside {
			there, err := intact(ctx, db, u)
			if err != nil {
				return err
			}
			if there {
				continue // it was copied with the database
			}
		}
		if err := c.add(path, updateKey(u), u.SHA256, u.Size); err != nil {
			return err
		}
	}
	return nil
}

// hasSmall says whether a database holds small updates: one that an older release serves
// does not.
func hasSmall(ctx context.Context, db *sql.DB) (bool, error) {
	var tables int
	err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'small'").Scan(&tables)
	return tables > 0, err
}

// intact says whether an update lies in the database, and fails with ErrDamaged if it is
// another one there.
func intact(ctx context.Context, db *sql.DB, u Update) (bool, error) {
	b, err := openSmall(ctx, db, u)
	if err != nil || b == nil {
		return false, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, b); err != nil {
		return true, err
	}
	if toSum(sum.Sum(nil)) != u.SHA256 {
		return true, fmt.Errorf("%v: %w: it is not in the database what it was when it came", u, ErrDamaged)
	}
	return true, nil
}

func (c *Copy) add(path, key string, sum [32]byte, size int64) error {
	b, err := fileBlobs{spoolOf(path)}.open(context.Background(), key, size)
	if err != nil {
		return err
	}
	c.Contents = append(c.Contents, CopiedContent{
		Name: filepath.Join(filepath.Base(spoolOf(path)), filepath.FromSlash(key)), SHA256: sum, Size: size, file: b.(fileBlob).File,
	})
	return nil
}
