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
)

var soak = flag.Bool("soak", false, "250 kills instead of 15")

// server is one PostgreSQL for all tests, on a socket in a temporary folder.
var server struct {
	once      sync.Once
	dir       string
	process   *exec.Cmd
	err       error
	databases atomic.Int64
}

func TestMain(m *testing.M) {
	flag.Parse()
	if address := os.Getenv("COTERIE_STORE_WRITER"); address != "" {
		writeUntilKilled(address)
	}
	code := m.Run()
	if server.process != nil {
		_ = server.process.Process.Signal(syscall.SIGINT) // "fast" shutdown
		_ = server.process.Wait()
	}
	if server.dir != "" {
		os.RemoveAll(server.dir)
	}
	os.Exit(code)
}

// postgresAddress is a new, empty database, or the test is skipped.
func postgresAddress(t *testing.T) string {
	t.Helper()
	server.once.Do(func() { server.err = startPostgres() })
	if errors.Is(server.err, exec.ErrNotFound) {
		t.Skip("skipped: PostgreSQL is not installed (postgres and initdb on the PATH)")
	}
	if server.err != nil {
		t.Fatal(server.err)
	}
	name := fmt.Sprintf("store%d", server.databases.Add(1))
	db, err := sql.Open("pgx", postgresURL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	return postgresURL(name)
}

func postgresURL(database string) string {
	u := url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: url.Values{"host": {server.dir}, "user": {"coterie"}}.Encode()}
	return u.String()
}

func startPostgres() error {
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return err
	}
	program, err := exec.LookPath("postgres")
	if err != nil {
		return err
	}
	// Not t.TempDir: a socket's path must be short.
	if server.dir, err = os.MkdirTemp("", "pg-"); err != nil {
		return err
	}
	var attributes *syscall.SysProcAttr
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		if attributes, err = unprivileged(server.dir); err != nil {
			return err
		}
	}
	data := filepath.Join(server.dir, "data")
	prepare := exec.Command(initdb, "-D", data, "-U", "coterie", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
	prepare.SysProcAttr, prepare.Dir = attributes, server.dir
	if out, err := prepare.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	// Only its clients are killed, never the database: it need not sync.
	server.process = exec.Command(program, "-D", data, "-k", server.dir, "-c", "listen_addresses=", "-c", "shared_buffers=16MB", "-c", "fsync=off")
	server.process.SysProcAttr, server.process.Dir = attributes, server.dir
	if err := server.process.Start(); err != nil {
		return err
	}
	db, err := sql.Open("pgx", postgresURL("postgres"))
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
