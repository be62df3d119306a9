//go:build linux

package packaging_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/internal/tier"
)

// sandbox is where containers run: processes, mounts and a network of its own, without a
// way out. Bridges, firewall rules, images and whatever still runs are gone with the test,
// and a podman that is used otherwise on this machine sees none of it.
type sandbox struct {
	t   *testing.T
	dir string
	pid int // of the process whose namespaces they are
	env []string
}

// newSandbox makes one, or leaves the test out.
func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	if os.Geteuid() != 0 {
		tier.LeaveOut(t, tier.Containers, errors.New("only root can make the mounts and the network that the test needs"))
	}
	for _, name := range []string{"podman", "runc", "podman-compose", "iptables", "/usr/lib/podman/netavark", "/usr/lib/podman/aardvark-dns", "ip", "unshare", "nsenter"} {
		if _, err := exec.LookPath(name); err != nil {
			tier.LeaveOut(t, tier.Containers, err)
		}
	}
	dir, err := os.MkdirTemp("", "containers-") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	s := &sandbox{t: t, dir: dir}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("what the containers left: %v", err)
		}
	})
	s.write("containers.conf", fmt.Sprintf(`[containers]
default_ulimits = ["nofile=4096:4096", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = %q
`, s.path("networks")))
	s.write("storage.conf", fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %q\nrunroot = %q\n", s.path("images"), s.path("run")))
	s.env = append(os.Environ(), "CONTAINERS_CONF="+s.path("containers.conf"), "CONTAINERS_STORAGE_CONF="+s.path("storage.conf"))

	// The first process in the sandbox waits for the end of its input, and everything that
	// runs in there ends with it.
	init := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "--net", "--mount", "--propagation", "private", "sh", "-c",
		"mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /dev/shm && ip link set lo up && echo up && cat >/dev/null")
	end, err := init.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	says, err := init.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaint bytes.Buffer
	init.Stderr = &complaint
	if err := init.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end.Close()
		_ = init.Wait() // killing what still runs is its end
	})
	if _, err := io.ReadFull(says, make([]byte, len("up\n"))); err != nil {
		tier.LeaveOut(t, tier.Containers, fmt.Errorf("no namespaces can be made here: %s", complaint.String()))
	}
	s.pid = init.Process.Pid
	return s
}

func (s *sandbox) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

func (s *sandbox) write(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

// command is one in the sandbox. What takes longer than a cold build of everything is
// killed.
func (s *sandbox) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	s.t.Cleanup(cancel)
	enter := []string{"-t", fmt.Sprint(s.pid), "--net", "--mount", fmt.Sprintf("--pid=/proc/%d/ns/pid_for_children", s.pid), "--"}
	cmd := exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	cmd.Env, cmd.WaitDelay = s.env, 10*time.Second
	return cmd
}

// run one that must succeed, and return what it printed.
func (s *sandbox) run(args ...string) string {
	s.t.Helper()
	cmd := s.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("%s: %v\n%s\n%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return strings.TrimSpace(out.String())
}

func (s *sandbox) podman(args ...string) string {
	s.t.Helper()
	return s.run(append([]string{"podman"}, args...)...)
}

// goFolders are where this machine's Go keeps itself, modules and what it has compiled.
type goFolders struct{ GOROOT, GOMODCACHE, GOCACHE string }

// machineGo asks the Go that runs the test.
func machineGo(t *testing.T) (folders goFolders) {
	t.Helper()
	out, err := exec.Command("go", "env", "-json", "GOROOT", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &folders); err != nil {
		t.Fatal(err)
	}
	return folders
}

// build makes the image of packaging/Dockerfile, with the name coterie. No registry is
// asked: its base is an image of the same name that holds a shell, mkdir and certificates
// of this machine, and sees this machine's Go, modules and compiled packages.
func (s *sandbox) build(version string) {
	s.t.Helper()
	folders := machineGo(s.t)
	for _, name := range []string{"sh", "mkdir"} {
		program, err := exec.LookPath(name)
		if err != nil {
			s.t.Fatal(err)
		}
		s.takeOver(program, "/bin/"+name)
		libraries, err := exec.Command("ldd", program).Output()
		if err != nil {
			s.t.Fatalf("ldd %s: %v", program, err)
		}
		for _, word := range strings.Fields(string(libraries)) {
			if filepath.IsAbs(word) {
				s.takeOver(word, word)
			}
		}
	}
	s.takeOver("/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/certs/ca-certificates.crt")
	s.write("base/root/tmp/.keep", "")
	s.write("base/Dockerfile", fmt.Sprintf("FROM scratch\nCOPY root/ /\nENV PATH=%s/bin:/bin GOMODCACHE=%s GOCACHE=%s GOPROXY=off GOTOOLCHAIN=local\n",
		folders.GOROOT, folders.GOMODCACHE, folders.GOCACHE))
	s.podman("build", "--quiet", "--isolation", "chroot", "-t", "golang:1.26", s.path("base"))

	began := time.Now()
	s.podman(append(s.buildFlags(version), "-t", "coterie", tier.Root())...)
	s.t.Logf("the image is built in %.0f s", time.Since(began).Seconds())
}

// buildFlags are those of every build of the Dockerfile.
func (s *sandbox) buildFlags(version string) []string {
	folders := machineGo(s.t)
	flags := []string{"build", "--quiet", "--pull=never", "--isolation", "chroot", "--build-arg", "VERSION=" + version,
		"-f", filepath.Join(tier.Root(), "packaging", "Dockerfile"), "-v", folders.GOROOT + ":" + folders.GOROOT + ":ro"}
	for _, dir := range []string{folders.GOMODCACHE, folders.GOCACHE} {
		flags = append(flags, "-v", dir+":"+dir)
	}
	return flags
}

// takeOver copies a file of this machine to the base image.
func (s *sandbox) takeOver(from, to string) {
	s.t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(filepath.Join("base/root", to), string(text))
}
