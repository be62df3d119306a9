//go:build linux

package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/internal/tier"
)

// manager is a container in which this machine's systemd runs as on a machine that has
// just been set up.
type manager struct{ *sandbox }

func newManager(s *sandbox) manager {
	s.t.Helper()
	if _, err := os.Stat("/lib/systemd/systemd"); err != nil {
		tier.LeaveOut(s.t, tier.Systemd, err)
	}
	for name, text := range map[string]string{
		"etc/passwd": "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n", "etc/group": "root:x:0:\nnogroup:x:65534:\n",
		"etc/shadow": "root:*:20000::::::\n", "etc/login.defs": "", "etc/machine-id": "", "etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\n",
		"etc/pam.d/runuser": "auth sufficient pam_rootok.so\naccount required pam_permit.so\nsession required pam_permit.so\n",
		"var/log/.keep":     "", "var/lib/.keep": "", "etc/systemd/system/.keep": "", "tmp/.keep": "", "root/.keep": "",
	} {
		s.write(filepath.Join("managed/root", name), text)
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+name, s.path("managed", "root", name)); err != nil {
			s.t.Fatal(err)
		}
	}
	s.write("managed/Dockerfile", "FROM scratch\nCOPY root/ /\n")
	s.podman("build", "--quiet", "--isolation", "chroot", "-t", "managed", s.path("managed"))

	// What the documented commands take: a checkout with the program and the files.
	if err := os.CopyFS(s.path("work", "packaging"), os.DirFS(filepath.Join(tier.Root(), "packaging"))); err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"serve.yaml", "run.yaml", "join.yaml", "policy.yaml"} {
		s.write(filepath.Join("work", name), read(s.t, "packaging", "compose", name))
	}
	s.run("cp", s.program(), s.path("work", "coterie"))
	// It makes mounts and filters system calls; this machine's settings it can only read.
	s.podman("run", "-d", "--name", "managed", "--systemd=always", "--network", "host", "--cap-add", "SYS_ADMIN,SYS_PTRACE", "--security-opt", "seccomp=unconfined",
		"-v", "/usr:/usr:O", "-v", s.path("work")+":/work", "-w", "/work", "managed", "/lib/systemd/systemd", "--unit=multi-user.target")
	m := manager{s}
	m.until("systemd is up", func() bool {
		out, _ := s.command("podman", "exec", "managed", "systemctl", "is-system-running").Output() // it fails until it is
		return strings.TrimSpace(string(out)) == "running"
	})
	return m
}

func (m manager) until(what string, holds func() bool) {
	m.t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			out, _ := m.command("podman", "exec", "managed", "sh", "-c", "systemctl --no-pager --failed; journalctl --no-pager -n 60").CombinedOutput()
			m.t.Fatalf("after a minute it does not hold that %s\n%s", what, out)
		}
	}
}

// in runs a command in the container.
func (m manager) in(args ...string) string {
	m.t.Helper()
	return m.podman(append([]string{"exec", "managed"}, args...)...)
}

// state waits for a unit to be in a state, and says how it came there.
func (m manager) state(unit, active, result, code string) {
	m.t.Helper()
	want := "ActiveState=" + active
	var got string
	m.until(unit+" is "+active, func() bool {
		got = m.in("systemctl", "show", unit, "-p", "ActiveState,Result,ExecMainStatus,NRestarts")
		return strings.Contains(got, want)
	})
	for _, line := range []string{"Result=" + result, "ExecMainStatus=" + code, "NRestarts=0"} {
		if !strings.Contains(got, line) {
			m.t.Errorf("%s: want %s\n%s", unit, line, got)
		}
	}
}

// invitation is one for a participant that reaches the server on this machine.
func (m manager) invitation(name string) string {
	m.t.Helper()
	return m.in("runuser", "-u", "coterie", "--", "coterie", "ca", "invite", name, "--ca", "/var/lib/coterie/ca", "--server", "127.0.0.1:7443")
}

// shellBlock is the text of the shell block of docs/operations.md that begins so.
func shellBlock(t *testing.T, first string) string {
	t.Helper()
	_, rest, ok := strings.Cut(read(t, "docs", "operations.md"), "```sh\n"+first)
	lines, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatalf("docs/operations.md has no shell block that begins with %q", first)
	}
	return first + lines
}

// testSystemd follows docs/operations.md on a machine with systemd: the units start under
// all their restrictions, a stop is no failure, failures are tried again, refusals are not.
func testSystemd(s *sandbox) {
	m := newManager(s)
	m.in("bash", "-euc", shellBlock(s.t, "install -m 0755 coterie "))
	m.until("the server listens", func() bool {
		return strings.Contains(m.in("journalctl", "--no-pager", "-u", "coterie-serve"), `"msg":"listening"`)
	})
	m.write("work/north.invite", m.invitation("north"))
	m.in("bash", "-euc", shellBlock(s.t, "install -m 0600 -o coterie -g coterie join.yaml "))
	m.until("north has joined", func() bool {
		return strings.Contains(m.in("journalctl", "--no-pager", "-u", "coterie-join"), `"msg":"joined"`)
	})
	for _, unit := range []string{"coterie-serve", "coterie-join"} {
		pid := m.in("systemctl", "show", unit, "-p", "MainPID", "--value")
		status := m.in("cat", "/proc/"+pid+"/status")
		for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapBnd:\t0000000000000000", "Umask:\t0077"} {
			if !strings.Contains(status, want) {
				m.t.Errorf("%s runs without %q:\n%s", unit, want, status)
			}
		}
		m.in("systemctl", "stop", unit)
		m.state(unit, "inactive", "success", "143")
		m.in("systemctl", "start", unit)
	}

	var joined []*exec.Cmd
	for _, name := range []string{"south", "west"} {
		joined = append(joined, m.join(name, m.invitation(name)))
	}
	for _, cmd := range joined {
		if err := cmd.Wait(); err != nil {
			m.t.Fatalf("%v: %v\n%s", cmd.Args, err, cmd.Stderr)
		}
	}
	m.state("coterie-join", "inactive", "success", "0")
	m.state("coterie-serve", "inactive", "success", "0")
	m.in("cmp", "/var/lib/coterie/server/model.safetensors", "/var/lib/coterie/out/model.safetensors")

	// What must not be tried again, and what must.
	m.in("systemctl", "start", "coterie-serve")
	m.in("sed", "-i", "s/^maximum_rounds.*/maximum_rounds: 1/", "/var/lib/coterie/policy.yaml")
	m.in("systemctl", "start", "coterie-join")
	m.state("coterie-join", "failed", "exit-code", "3")
	m.in("sed", "-i", "s/^maximum_rounds.*/maximum_rounds: x/", "/var/lib/coterie/policy.yaml")
	m.in("systemctl", "start", "coterie-join")
	m.state("coterie-join", "failed", "exit-code", "2")
	m.in("install", "-m", "0600", "-o", "coterie", "-g", "coterie", "policy.yaml", "/var/lib/coterie")
	m.in("mv", "/var/lib/coterie/identity", "/var/lib/coterie/elsewhere")
	m.in("systemctl", "start", "coterie-join")
	m.state("coterie-join", "activating", "exit-code", "1")
}

// TestUnits: systemd has nothing to say about the units, and would have about faults.
func TestUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err == nil {
		_, err = os.Stat("/lib/systemd/system/network-online.target")
	}
	if err != nil {
		tier.LeaveOut(t, tier.Systemd, err)
	}
	root := t.TempDir()
	for _, dir := range []string{"etc/systemd/system", "usr/local/bin", "lib/systemd"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(root, "lib/systemd/system"), os.DirFS("/lib/systemd/system")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "usr/local/bin/coterie"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	say := func(unit, text string, args ...string) (string, error) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, "etc/systemd/system", unit), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(analyze, append(args, "--root="+root, unit)...).CombinedOutput()
		return string(out), err
	}
	for _, unit := range []string{"coterie-serve.service", "coterie-join.service"} {
		good := read(t, "packaging", unit)
		if out, err := say(unit, good, "verify"); err != nil || out != "" {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
		for was, fault := range map[string]string{
			"Restart=on-failure":     "Restart=on-failur",
			"UMask=0077":             "Umsk=0077",
			"/usr/local/bin/coterie": "/usr/local/bin/cotery",
			"@system-service":        "@system-servic",
			"[Service]":              "[Servic]",
		} {
			bad := strings.Replace(good, was, fault, 1)
			if out, _ := say(unit, bad, "verify"); bad == good || out == "" {
				t.Errorf("%s with %s passes", unit, fault)
			}
		}
		// 10 is the most exposed; without the restrictions it is 9.
		if out, err := say(unit, good, "security", "--offline=true", "--threshold=15"); err != nil {
			t.Errorf("%s is exposed by more than 1.5: %v\n%s", unit, err, out)
		}
		if out, err := say(unit, strings.Replace(good, "NoNewPrivileges=yes", "NoNewPrivileges=no", 1), "security", "--offline=true", "--threshold=10"); err == nil {
			t.Errorf("%s: the threshold is not looked at\n%s", unit, out)
		}
	}
}
