//go:build linux

package packaging_test

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/internal/tier"
)

// hardened is how docs/operations.md and compose.yaml run the image.
var hardened = []string{"--read-only", "--read-only-tmpfs=false", "--tmpfs", "/tmp", "--cap-drop", "all", "--security-opt", "no-new-privileges"}

// TestContainers builds the image by its Dockerfile's own steps, once, and runs it.
func TestContainers(t *testing.T) {
	s := newSandbox(t)
	s.build("v0.0.0-test")
	for _, part := range []struct {
		name string
		test func(*sandbox)
	}{{"context", testContext}, {"image", testImage}, {"compose", testCompose}, {"server", testServer}, {"systemd", testSystemd}} {
		t.Run(part.name, func(t *testing.T) {
			inner := *s
			inner.t = t
			part.test(&inner)
		})
	}
}

// testContext: the builder gets the source that the program is made of, and nothing else
// that lies in a checkout.
func testContext(s *sandbox) {
	s.podman(append(s.buildFlags("v0.0.0-test"), "--target", "build", "-t", "built", tier.Root())...)
	root := s.podman("image", "mount", "built")
	listed := strings.Fields(s.run("find", root+"/src", "-printf", "%P\n"))
	if len(listed) < 100 {
		s.t.Fatalf("the builder sees %d files", len(listed))
	}
	for _, path := range listed {
		if path == "packaging" || strings.HasPrefix(path, ".") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			s.t.Errorf("the builder is handed %s", path)
		}
	}
}

// testImage: the image holds the program, certificates and an empty folder of its user,
// and says how it is run.
func testImage(s *sandbox) {
	var images []struct {
		Config struct {
			User, WorkingDir string
			Entrypoint, Cmd  []string
			Volumes          map[string]any
			ExposedPorts     map[string]any
			Env              []string
		}
	}
	if err := json.Unmarshal([]byte(s.podman("image", "inspect", "coterie")), &images); err != nil {
		s.t.Fatal(err)
	}
	c := images[0].Config
	if got, want := fmt.Sprint(c.User, c.WorkingDir, c.Entrypoint, c.Cmd, c.Volumes, c.ExposedPorts),
		fmt.Sprint("65532:65532", "/data", []string{"/coterie"}, []string{"serve", "serve.yaml"}, map[string]any{"/data": map[string]any{}}, map[string]any{"7443/tcp": map[string]any{}}); got != want {
		s.t.Errorf("the image says %s, want %s", got, want)
	}
	root := s.podman("image", "mount", "coterie")
	got := strings.Split(s.run("find", root, "-mindepth", "1", "-printf", "%m %U:%G /%P\n"), "\n")
	slices.Sort(got)
	want := []string{"644 0:0 /etc/ssl/certs/ca-certificates.crt", "700 65532:65532 /data", "755 0:0 /coterie", "755 0:0 /etc", "755 0:0 /etc/ssl", "755 0:0 /etc/ssl/certs"}
	for i, line := range got {
		if strings.HasSuffix(line, ".crt") { // as the base image has it
			got[i] = want[0]
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		s.t.Errorf("the image holds\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	program, err := elf.Open(s.program())
	if err != nil {
		s.t.Fatal(err)
	}
	defer program.Close()
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			s.t.Error("the program needs a loader, which the image has not")
		}
	}
	if says := s.podman(append(append([]string{"run", "--rm", "--network", "none"}, hardened...), "coterie", "--version")...); !strings.HasPrefix(says, "coterie v0.0.0-test (go1.") {
		s.t.Errorf("the image says %q of itself", says)
	}
}

// program is the image's own, on this machine.
func (s *sandbox) program() string {
	s.t.Helper()
	path := s.path("coterie")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	s.run("cp", s.podman("image", "mount", "coterie")+"/coterie", path)
	return path
}

// join starts a participant outside of every container.
func (s *sandbox) join(name, invitation string) *exec.Cmd {
	s.t.Helper()
	dir := filepath.Join("outside", s.t.Name(), name)
	enrol := s.command(s.program(), "join", "--invite", "-", "--identity", s.path(dir, "identity"))
	enrol.Stdin = strings.NewReader(invitation)
	if out, err := enrol.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", name, err, out)
	}
	for _, file := range []string{"join.yaml", "policy.yaml"} {
		s.write(filepath.Join(dir, file), read(s.t, "packaging", "compose", file))
	}
	cmd := s.command(s.program(), "join", s.path(dir, "join.yaml"))
	cmd.Stderr = new(strings.Builder)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return cmd
}

// testServer: a server in the image, as its user, on a root that cannot be written, serves
// participants from outside, is stopped in the middle and goes on. Its port is its own: the
// compose file's may still be held for a moment by a container that has ended.
func testServer(s *sandbox) {
	data := s.path("server-data")
	for _, name := range []string{"run.yaml", "serve.yaml"} {
		s.write(filepath.Join("server-data", name), read(s.t, "packaging", "compose", name))
	}
	if err := filepath.WalkDir(data, func(path string, _ fs.DirEntry, err error) error {
		return os.Chown(path, 65532, 65532)
	}); err != nil {
		s.t.Fatal(err)
	}
	once := append(append([]string{"run", "--rm", "-v", data + ":/data"}, hardened...), "coterie")
	s.podman(append(once, "ca", "init", "ca", "--server", "127.0.0.1:7444")...)
	s.podman(append(append([]string{"run", "-d", "--name", "server", "-p", "7444:7443", "-v", data + ":/data"}, hardened...), "coterie")...)

	status := s.run("cat", "/proc/"+s.podman("inspect", "--format", "{{.State.Pid}}", "server")+"/status")
	for _, want := range []string{"Uid:\t65532\t65532\t65532\t65532", "Gid:\t65532\t65532\t65532\t65532", "Groups:\t65532 ", "NoNewPrivs:\t1", "CapEff:\t0000000000000000"} {
		if !strings.Contains(status+" ", want) {
			s.t.Errorf("the server's process has no %q:\n%s", want, status)
		}
	}

	joined := []*exec.Cmd{}
	for i, name := range []string{"north", "south", "west"} {
		invitation := s.podman("exec", "server", "/coterie", "ca", "invite", name, "--ca", "ca")
		joined = append(joined, s.join(name, invitation))
		if i == 0 { // one waits for the others when the server is stopped
			s.podman("stop", "-t", "30", "server")
			if code := s.podman("inspect", "--format", "{{.State.ExitCode}}", "server"); code != "143" {
				s.t.Errorf("a server that was stopped ends with %s:\n%s", code, s.podman("logs", "server"))
			}
			s.podman("start", "server")
		}
	}
	for _, cmd := range joined {
		if err := cmd.Wait(); err != nil {
			s.t.Fatalf("%v: %v\n%s", cmd.Args, err, cmd.Stderr)
		}
	}
	if code := s.podman("wait", "server"); code != "0" {
		s.t.Errorf("the server ends with %s:\n%s", code, s.podman("logs", "server"))
	}
	served, err := os.ReadFile(s.path("server-data", "server", "model.safetensors"))
	if err != nil {
		s.t.Fatal(err)
	}
	if own, err := os.ReadFile(s.path("outside", s.t.Name(), "north", "out", "model.safetensors")); err != nil || string(own) != string(served) {
		s.t.Errorf("north has other models than the server (%v)", err)
	}
	s.podman("rm", "server")
}
