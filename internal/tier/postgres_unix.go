//go:build unix

package tier

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postgres starts a database that asks the user coterie for a password, on a socket in a
// folder, with further settings, or leaves the test out.
func Postgres(t testing.TB, secret string, settings ...string) (dir string) {
	t.Helper()
	find := func(name string) string {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // Debian's are not on the path
		if len(found) == 0 {
			LeaveOut(t, PostgreSQL, fmt.Errorf("%s is not installed", name))
		}
		return found[len(found)-1]
	}
	initdb, postgres := find("initdb"), find("postgres")
	dir, err := os.MkdirTemp("", "pg-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "password")
	if err := os.WriteFile(file, []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	var as *syscall.SysProcAttr
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			u, err = user.Lookup("nobody")
		}
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	prepare := exec.Command(initdb, "-D", filepath.Join(dir, "data"), "-U", "coterie", "-A", "scram-sha-256", "--pwfile", file, "-E", "UTF8", "--no-locale", "-N")
	prepare.SysProcAttr, prepare.Dir = as, dir
	if out, err := prepare.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	args := []string{"-D", filepath.Join(dir, "data"), "-k", dir, "-c", "listen_addresses=", "-c", "shared_buffers=16MB", "-c", "fsync=off"}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	server := exec.Command(postgres, args...)
	server.SysProcAttr, server.Dir = as, dir
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGINT)
		_ = server.Wait()
	})
	c, err := pgx.ParseConfig("host=" + dir + " user=coterie database=postgres")
	if err != nil {
		t.Fatal(err)
	}
	c.Password = secret
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := pgx.ConnectConfig(t.Context(), c)
		if err == nil {
			conn.Close(t.Context())
			return dir
		}
		if time.Now().After(deadline) {
			t.Fatalf("PostgreSQL does not come up: %v", err)
		}
	}
}
