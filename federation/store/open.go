package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/pressly/goose/v3"

	"github.com/coterie-fl/coterie/internal/durable"
)

// Options are settings of a store that have defaults.
type Options struct {
	// Spool is the folder for update bytes and uploads on their way in. Empty: beside
	// the SQLite file; with PostgreSQL, a temporary folder for uploads on their way,
	// which start anew after a restart.
	Spool string
	// KeepStates is how many of the latest states are kept; 0 means 2.
	KeepStates int
	// TakeOver takes a PostgreSQL store from a server that still holds it, which
	// then fails with ErrSuperseded.
	TakeOver bool
}

const defaultKeepStates = 2

//go:embed migrations
var migrations embed.FS

// Open opens the store at address, creating it if need be: "sqlite:PATH" or a
// plain path, or a PostgreSQL URL ("postgres://…").
func Open(ctx context.Context, address string, o Options) (Store, error) {
	if o.KeepStates == 0 {
		o.KeepStates = defaultKeepStates
	}
	if o.KeepStates < 1 {
		return nil, fmt.Errorf("open the store: keep %d states; at least 1 is needed to go on", o.KeepStates)
	}
	s := &sqlStore{options: o, commit: (*sql.Tx).Commit, active: map[slot]bool{}, seen: map[[2]string]time.Time{}, further: map[slot]int{}, counters: map[string]uint64{}, known: statements{}}
	var err error
	if strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://") {
		err = s.openPostgres(ctx, address)
	} else {
		err = s.openSQLite(ctx, strings.TrimPrefix(address, "sqlite:"))
	}
	if err == nil {
		err = s.take(ctx)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("open the store: %w", err)
	}
	return s, nil
}

func (s *sqlStore) openSQLite(ctx context.Context, path string) error {
	if path == "" || strings.Contains(path, "://") {
		return fmt.Errorf("%q is neither a file nor a PostgreSQL URL", path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if s.options.Spool == "" {
		s.options.Spool = spoolOf(path)
	}
	for _, dir := range []string{filepath.Dir(path), s.options.Spool} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	lock, err := durable.TryLock(path + ".lock")
	if errors.Is(err, durable.ErrBusy) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	} else if err != nil {
		return err
	}
	s.release = lock.Close
	// SQLite gives its other files the mode of this one.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), durable.SyncDirectory(filepath.Dir(path)), durable.SyncDirectory(filepath.Dir(s.options.Spool))); err != nil {
		return err
	}
	place := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: url.Values{
		"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "busy_timeout(10000)", "wal_autocheckpoint(4000)"},
		"_txlock": {"immediate"},
	}.Encode()}
	if s.db, err = sql.Open("sqlite", place.String()); err != nil {
		return err
	}
	s.db.SetMaxOpenConns(1) // one writer; a second connection would only wait for it
	s.blobs = fileBlobs{s.options.Spool}
	if err := connect(ctx, s.db); err != nil {
		return err
	}
	if err := migrate(ctx, s.db, goose.DialectSQLite3, "migrations/sqlite"); err != nil {
		return err
	}
	return s.known.know(ctx, s.db)
}

// connect makes the one connection, and the settings with it. SQLite does not wait by
// itself where the journal is changed, and somebody may just be looking at the file: one
// who backs up, say.
func connect(ctx context.Context, db *sql.DB) error {
	for began := time.Now(); ; {
		err := db.PingContext(ctx)
		if err == nil || !strings.Contains(err.Error(), "SQLITE_BUSY") || time.Since(began) > 10*time.Second {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// spoolOf is the folder of bytes beside an SQLite file.
func spoolOf(path string) string { return path + ".spool" }

// holderLock is the PostgreSQL advisory lock of the server that holds a store.
const holderLock = 0x636f7465726965 // "coterie"

func (s *sqlStore) openPostgres(ctx context.Context, address string) (err error) {
	s.postgres = true
	if s.options.Spool == "" {
		if s.options.Spool, err = os.MkdirTemp("", "coterie-spool-"); err != nil {
			return err
		}
		s.scratch = s.options.Spool
	} else if err := os.MkdirAll(s.options.Spool, 0o700); err != nil {
		return err
	}
	if s.db, err = sql.Open("pgx", address); err != nil {
		return err
	}
	s.db.SetMaxOpenConns(8)
	s.db.SetConnMaxIdleTime(5 * time.Minute)
	s.blobs = tableBlobs{s.db}
	if err := s.lockPostgres(ctx); err != nil {
		return err
	}
	return migrate(ctx, s.db, goose.DialectPostgres, "migrations/postgres")
}

// lockPostgres holds a lock for as long as one connection lives. A server that was
// killed is noticed by the database within moments: it is waited for.
func (s *sqlStore) lockPostgres(ctx context.Context) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	s.held = conn
	s.release = func() error {
		s.holding.Lock()
		defer s.holding.Unlock()
		return s.held.Close()
	}
	for wait := time.After(5 * time.Second); ; {
		var got bool
		if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", int64(holderLock)).Scan(&got); err != nil {
			return err
		}
		if got || s.options.TakeOver {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wait:
			return ErrBusy
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// keepLock takes the lock again if it ended with its connection: the database was
// restarted. Whoever took the store over meanwhile is found out by its epoch.
func (s *sqlStore) keepLock(ctx context.Context) error {
	s.holding.Lock()
	defer s.holding.Unlock()
	if s.held.PingContext(ctx) == nil {
		return nil
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	var got bool
	err = conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", int64(holderLock)).Scan(&got)
	if err == nil && !got && !s.options.TakeOver {
		err = ErrBusy
	}
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	_ = s.held.Close() // it has ended
	s.held = conn
	return nil
}

func migrate(ctx context.Context, db *sql.DB, dialect goose.Dialect, dir string) error {
	files, err := fs.Sub(migrations, dir)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(dialect, db, files)
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("bring the tables up to date: %w", err)
	}
	there, known, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the tables' version: %w", err)
	}
	if there > known {
		return fmt.Errorf("its tables are of version %d, and this release of coterie knows %d: a newer one has used it; serve it with that one, or restore the backup from before", there, known)
	}
	return nil
}

// take makes this server the holder: whoever held the store before can no longer
// write. What a crash left half done is cleared away.
func (s *sqlStore) take(ctx context.Context) error {
	err := s.db.QueryRowContext(ctx, "UPDATE holder SET epoch = epoch + 1 WHERE one = 1 RETURNING epoch").Scan(&s.epoch)
	if err != nil {
		return err
	}
	return s.sweep(ctx)
}
