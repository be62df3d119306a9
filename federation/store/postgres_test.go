package store

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/internal/tier"
)

var soak = flag.Bool("soak", false, "250 kills instead of 15")

// server is one PostgreSQL for all tests.
var server struct {
	once      sync.Once
	postgres  *Postgres
	err       error
	databases atomic.Int64
}

func TestMain(m *testing.M) {
	flag.Parse()
	if address := os.Getenv("COTERIE_STORE_WRITER"); address != "" {
		writeUntilKilled(address)
	}
	code := m.Run()
	if server.postgres != nil {
		server.postgres.Close()
	}
	os.Exit(code)
}

// postgresAddress is a new, empty database, or the test is skipped.
func postgresAddress(t *testing.T) string {
	t.Helper()
	server.once.Do(func() { server.postgres, server.err = newPostgres() })
	skipWithoutPostgres(t, server.err)
	return server.postgres.Database(t, fmt.Sprintf("store%d", server.databases.Add(1)))
}

func skipWithoutPostgres(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, exec.ErrNotFound) {
		tier.LeaveOut(t, tier.PostgreSQL, fmt.Errorf("postgres and initdb on the PATH: %w", err))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Postgres is a PostgreSQL on a socket in a temporary folder. It can be stopped and
// started again.
type Postgres struct {
	dir        string
	program    string
	attributes *syscall.SysProcAttr
	process    *exec.Cmd
}

// OwnPostgres is one that a test may stop, or the test is skipped.
func OwnPostgres(t *testing.T) *Postgres {
	t.Helper()
	p, err := newPostgres()
	skipWithoutPostgres(t, err)
	t.Cleanup(p.Close)
	return p
}

func newPostgres() (*Postgres, error) {
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return nil, err
	}
	p := new(Postgres)
	if p.program, err = exec.LookPath("postgres"); err != nil {
		return nil, err
	}
	// Not t.TempDir: a socket's path must be short.
	if p.dir, err = os.MkdirTemp("", "pg-"); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		if p.attributes, err = unprivileged(p.dir); err != nil {
			return nil, err
		}
	}
	prepare := exec.Command(initdb, "-D", filepath.Join(p.dir, "data"), "-U", "coterie", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
	prepare.SysProcAttr, prepare.Dir = p.attributes, p.dir
	if out, err := prepare.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return p, p.Start()
}

// Start runs the database and waits until it answers.
func (p *Postgres) Start() error {
	// Only its clients are killed, never the database: it need not sync.
	p.process = exec.Command(p.program, "-D", filepath.Join(p.dir, "data"), "-k", p.dir, "-c", "listen_addresses=", "-c", "shared_buffers=16MB", "-c", "fsync=off")
	p.process.SysProcAttr, p.process.Dir = p.attributes, p.dir
	if err := p.process.Start(); err != nil {
		return err
	}
	db, err := sql.Open("pgx", p.url("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		if err := db.PingContext(ctx); err == nil {
			return nil
		} else if ctx.Err() != nil {
			return fmt.Errorf("PostgreSQL does not come up: %w", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Stop ends the database and the connections of all its clients.
func (p *Postgres) Stop() {
	_ = p.process.Process.Signal(syscall.SIGINT) // "fast" shutdown
	_ = p.process.Wait()
}

// Close ends the database for good.
func (p *Postgres) Close() {
	p.Stop()
	os.RemoveAll(p.dir)
}

// Database makes an empty database and returns its address.
func (p *Postgres) Database(t *testing.T, name string) string {
	t.Helper()
	db, err := sql.Open("pgx", p.url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	return p.url(name)
}

func (p *Postgres) url(database string) string {
	u := url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: url.Values{"host": {p.dir}, "user": {"coterie"}}.Encode()}
	return u.String()
}

// unprivileged gives dir to another user and says how to run as that one.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, errU := strconv.ParseUint(u.Uid, 10, 32)
	gid, errG := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(errU, errG, os.Chown(dir, int(uid), int(gid))); err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}
