package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coterie-fl/coterie/internal/tier"
)

var loopback = regexp.MustCompile(`127\.0\.0\.1:(\d+)`)

// local puts free ports for those that the page names: others may use them here.
func (w *walk) local(text string) string {
	for _, m := range loopback.FindAllStringSubmatch(text, -1) {
		if slices.Contains(w.replacements, m[0]) || m[1] == "0" {
			continue
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			w.Fatal(err)
		}
		defer l.Close()
		w.replacements = append(w.replacements, m[0], l.Addr().String())
	}
	return strings.NewReplacer(w.replacements...).Replace(text)
}

// inBackground is how a line ends that starts something and goes on.
var inBackground = regexp.MustCompile(`([^&])&(\s+#.*)?$`)

// preamble stops at the first command that fails and says where it stands. Background
// jobs count: who waits for all of them fails with one of them.
const preamble = `
trap 'code=$?; at="${BASH_SOURCE[0]:-}"; echo "${at##*/}:$LINENO: exit code $code" >&2' ERR
trap 'trap - ERR; kill $(jobs -p) 2>/dev/null || true; builtin wait || true' EXIT
background=
wait() { if [ $# -gt 0 ]; then builtin wait "$@"; return; fi
  local job code=0; for job in $background; do builtin wait "$job" || code=$?; done; background=; return $code; }
`

// furnish leaves in the walk's folder what a checkout has that commands read, and programs
// for them.
func (w *walk) furnish() {
	w.bin = w.TempDir()
	realGo, err := exec.LookPath("go")
	if err != nil {
		w.Fatal(err)
	}
	root := tier.Root()
	for _, name := range []string{"examples", "packaging", "python"} { // copies: what runs there writes there
		if err := os.CopyFS(w.path(name), os.DirFS(filepath.Join(root, name))); err != nil {
			w.Fatal(err)
		}
	}
	served, _ := filepath.Glob(w.path("examples", "*", "serve.yaml"))
	for _, file := range served {
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte(w.local(string(text))), 0o644)
		}
		if err != nil {
			w.Fatal(err)
		}
	}
	// go works in the checkout; what it runs, here.
	for name, text := range map[string]string{
		"go":   fmt.Sprintf("#!/bin/sh\nexport WALK=\"$PWD\"\ncd %q\n[ \"$1\" != run ] || export GOFLAGS=\"${GOFLAGS:-} -exec=%s/here\"\nexec %q \"$@\"\n", root, w.bin, realGo),
		"here": "#!/bin/sh\ncd \"$WALK\" && exec \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(w.bin, name), []byte(text), 0o755); err != nil {
			w.Fatal(err)
		}
	}
	if w.setup != nil {
		w.setup(w)
	}
	w.environment = append(os.Environ(), "GOBIN="+filepath.Dir(binary), "PATH="+w.bin+":"+filepath.Dir(binary)+":"+os.Getenv("PATH"))
}

// run goes the whole way: faults says what went wrong.
func (w *walk) run() {
	w.furnish()
	if w.most > 0 {
		w.holdsCount()
	}
	file := filepath.Join(w.bin, filepath.Base(w.page.name))
	if err := os.WriteFile(file, []byte(w.script()), 0o600); err != nil {
		w.Fatal(err)
	}
	if len(w.faults) > 0 {
		return
	}
	began := time.Now()
	var err error
	if w.out, err = w.bash(preamble + w.local(w.prepare) + "\n. " + file); err != nil {
		w.fault("%v\n%s%s", err, w.out, w.logs())
		return
	}
	w.Logf("%.1f s, %.1f s of processors", time.Since(began).Seconds(), w.processors.Seconds())
	if w.out != "" && len(w.says) == 0 && w.after == nil {
		w.fault("the commands print something, and nobody looks at it:\n%s", w.out)
	}
	for _, want := range w.says {
		if !strings.Contains(w.out, want) {
			w.fault("the commands do not say %q:\n%s", want, w.out)
		}
	}
	w.holdsShown()
	if w.after != nil && len(w.faults) == 0 {
		w.after(w)
	}
}

// bash executes lines in the walk's folder, and ends whatever they started.
func (w *walk) bash(lines string) (string, error) {
	limit := 3 * time.Minute
	if *soak {
		limit = time.Hour
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-Eeu", "-c", lines)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.dir, w.environment, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	w.processors += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left in the background
	if ctx.Err() != nil {
		err = fmt.Errorf("it does not end within %v", limit)
	}
	return out.String(), err
}

// logs are the files *.log that the commands left: what went wrong elsewhere.
func (w *walk) logs() string {
	var all strings.Builder
	_ = filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".log" && !strings.Contains(path, "ledger") {
			text, _ := os.ReadFile(path)
			fmt.Fprintf(&all, "\n%s:\n%s", strings.TrimPrefix(path, w.dir), text[max(0, len(text)-2000):])
		}
		return nil // what cannot be read is not shown
	})
	return all.String()
}

// holdsShown holds blocks that show output against what is printed: a line's parts between
// dots must be there, one after another.
func (w *walk) holdsShown() {
	for _, b := range w.page.blocks {
		if !b.shown() || !w.takes(b.heading) {
			continue
		}
		for _, s := range w.shows {
			if s.not != "" || !strings.HasPrefix(b.lines[0], s.begins) {
				continue
			}
			if s.by != "" {
				if err := mentionedTests(strings.Fields(s.by)[1:]); err != nil {
					w.fault("%s:%d is held by %s: %v", w.page.name, b.line, s.by, err)
				}
				continue
			}
			out, _ := w.bash(w.local(s.command)) // the exit code may be a refusal's
			for _, line := range b.lines {
				rest := out
				for _, part := range strings.Split(line, "…") {
					_, after, found := strings.Cut(rest, strings.TrimSpace(part))
					if !found {
						w.fault("%s:%d shows %q, which is not printed:\n%s", w.page.name, b.line, line, out)
						break
					}
					rest = after
				}
			}
		}
	}
}
