//go:build linux

package packaging_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/coterie-fl/coterie/internal/tier"
)

// dockerShim is `docker compose` by podman-compose, whose remarks do not belong among a
// command's output, and whose exit code must be the command's.
const dockerShim = `#!/usr/bin/python3
import functools, subprocess, sys
if sys.argv[1] != "compose":
    sys.exit("only docker compose is here")
import podman_compose
podman_compose.print = functools.partial(print, file=sys.stderr)
codes, run = [], podman_compose.Podman.run
def remember(*args, **named):
    p = run(*args, **named)
    codes.append(p.returncode)
    return p
podman_compose.Podman.run = remember
del sys.argv[1]
podman_compose.main()
sys.exit(codes[-1] if sys.argv[1] in ("run", "up") else 0)
`

// composeLines are the shell text of docs/operations.md, without the build of the image,
// which the test has made.
func composeLines(s *sandbox) string {
	s.t.Helper()
	build, lines, _ := strings.Cut(shellBlock(s.t, "docker build "), "\n")
	arguments := strings.TrimPrefix(build, "docker build ")
	if !strings.HasPrefix(arguments, "-f packaging/Dockerfile --build-arg VERSION=") || !strings.HasSuffix(arguments, " -t coterie .") {
		s.t.Errorf("the documented build is not the test's: docker build %s", arguments)
	}
	return lines
}

// testCompose runs the lines of docs/operations.md on the compose file as it stands.
func testCompose(s *sandbox) {
	checkout := s.path("checkout")
	if err := os.CopyFS(filepath.Join(checkout, "packaging"), os.DirFS(filepath.Join(tier.Root(), "packaging"))); err != nil {
		s.t.Fatal(err)
	}
	s.write("bin/docker", dockerShim)
	cmd := s.command("bash", "-euo", "pipefail", "-c", "cd "+checkout+"\n"+composeLines(s))
	cmd.Env = append(s.env, "PATH="+s.path("bin")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "10 releases, all of them spent: 10 committed") || !strings.Contains(string(out), "/data/server/report.html") {
		s.t.Errorf("neither ten releases nor a report:\n%s", out)
	}
	models := func(service, folder string) []byte {
		if code := s.podman("wait", "packaging_"+service+"_1"); code != "0" {
			s.t.Errorf("%s ends with %s", service, code)
		}
		volume := s.podman("volume", "inspect", "--format", "{{.Mountpoint}}", "packaging_"+service)
		text, err := os.ReadFile(filepath.Join(volume, folder, "model.safetensors"))
		if err != nil {
			s.t.Error(err)
		}
		return text
	}
	served := models("server", "server")
	for _, name := range []string{"north", "south", "west"} {
		if !bytes.Equal(models(name, "out"), served) {
			s.t.Errorf("%s has other models than the server", name)
		}
	}
}
