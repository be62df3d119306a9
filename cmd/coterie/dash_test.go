package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/server"
)

// dashed is a page that coterie dash serves.
type dashed struct {
	t              *testing.T
	cmd            *exec.Cmd
	address, token string
	folder         string
}

func startDash(t *testing.T, args ...string) *dashed {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"dash", "--output", "json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test has failed
	var said struct{ URL string }
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &said) != nil {
		t.Fatalf("coterie dash %v prints %q: %v", args, line, err)
	}
	d := &dashed{t: t, cmd: cmd}
	d.enter(said.URL)
	return d
}

// enter takes the way of a browser: the token becomes a cookie, of which only the place is
// needed here.
func (d *dashed) enter(address string) {
	d.t.Helper()
	var ok bool
	if d.address, d.token, ok = strings.Cut(address, "/#"); !ok || len(d.token) != 64 {
		d.t.Fatalf("the address is %q", address)
	}
	reply, err := http.Post(d.address+"/enter", "text/plain", strings.NewReader(d.token))
	if err != nil {
		d.t.Fatal(err)
	}
	defer reply.Body.Close()
	where, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		d.t.Fatalf("the token is refused: %d, %s, %v", reply.StatusCode, where, err)
	}
	d.folder = string(where)
}

// get is what the page says at a place, with the token or without.
func (d *dashed) get(place string, known bool) (int, string) {
	d.t.Helper()
	q, err := http.NewRequest(http.MethodGet, d.address+d.folder+place, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	if known {
		q.Header.Set("Authorization", "Bearer "+d.token)
	}
	reply, err := http.DefaultClient.Do(q)
	if err != nil {
		d.t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return reply.StatusCode, string(text)
}

// shows is a place that must say something.
func (d *dashed) shows(place string, parts ...string) {
	d.t.Helper()
	if code, text := d.get(place, true); code != http.StatusOK || !containsAll(text, parts) {
		d.t.Errorf("%q: %d, want %q in\n%.3000s", place, code, parts, text)
	}
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// TestDashOfAFolder: the page of finished runs, a sweep and its report; Ctrl-C ends it.
func TestDashOfAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runJSON(t, "run", example("ifca.yaml"), "--out", filepath.Join(dir, "ifca"), "--set", "algorithm.rounds=5")
	grid := filepath.Join(dir, "grid.yaml")
	file, err := filepath.Abs(example("ifca.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(grid, []byte("run: "+file+"\nseeds: 2\ngrid:\n  algorithm.local.step: [0.05, 0.1]\n  algorithm.rounds: [3]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	runJSON(t, "sweep", grid, "--out", filepath.Join(dir, "sweep"))
	d := startDash(t, dir)
	d.shows("", "2 finished.", `href="?at=ifca"`, `href="report?at=sweep"`, "epsilon unlimited (none, unit client, relation replace-one)")
	d.shows("?at=sweep", "4 of 4 runs, 2 settings in 2 seeds; tuning: not charged", "By algorithm.local.step", "algorithm.local.step=0.1", "± ")
	d.shows("report?at=ifca", "<title>ifca</title>")
	d.shows("calculator", "Privacy calculator")
	if code, text := d.get("", false); code != http.StatusUnauthorized || strings.Contains(text, "ifca") {
		t.Errorf("without the token: %d, %s", code, text)
	}
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C ends it with %v", err)
	}
	for _, c := range []struct {
		args []string
		part string
	}{
		{[]string{"dash", filepath.Join(dir, "nowhere")}, "there is no folder"},
		{[]string{"dash", dir, "--identity", dir}, "is a folder"},
		{[]string{"dash", dir, dir}, "at most 1"},
	} {
		if _, errs, code := coterie(t, c.args...); code != exitUsage || !strings.Contains(errs, c.part) {
			t.Errorf("%v: exit %d, %s", c.args, code, errs)
		}
	}
	if _, errs, code := coterie(t, "dash", dir, "--listen", "256.0.0.1:1"); code != 1 || !strings.Contains(errs, "listen on 256.0.0.1:1") {
		t.Errorf("an address that is none: exit %d, %s", code, errs)
	}
}

// TestDashOfAFederation: at the server's operator port behind a token, on its own port behind
// an operator's certificate, and by coterie dash; and a participant's own page.
func TestDashOfAFederation(t *testing.T) {
	t.Parallel()
	w := newWatched(t, watchedRun, "admin: 127.0.0.1:0\n", "a", "b", "c")
	process := w.serve()
	w.enrol("a")
	runJSON(t, "ca", "invite", "watch", "--operator", "--ca", w.path("ca"), "--out", w.path("watch.invite"))
	runJSON(t, "join", "--invite", w.path("watch.invite"), "--identity", w.path("watch"))
	page := []string{"watched: waiting for participants; 0 of 3 participants connected.", "round 0 of 4", "ends in 90 days", "none that is valid"}

	// The operator port: a token, whose file only its owner can read. Metrics stay open.
	address, err := os.ReadFile(w.path("server", pageURLFile))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(w.path("server", pageURLFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the address is in a file of mode %v, %v", info.Mode(), err)
	}
	if token := string(address[len(address)-20 : len(address)-1]); strings.Contains(w.words(), token) {
		t.Error("the token is in the log")
	}
	admin := &dashed{t: t}
	admin.enter(strings.TrimSpace(string(address)))
	admin.shows("", page...)
	if code, text := admin.get("", false); code != http.StatusUnauthorized || strings.Contains(text, "watched") {
		t.Errorf("without the token: %d, %s", code, text)
	}
	if w.gauge("a") != "0" {
		t.Error("/metrics is gone")
	}

	// The federation's own port: an operator's certificate and no other.
	for _, c := range []struct {
		who  string
		code int
	}{{w.path("watch"), http.StatusOK}, {w.path("a", "identity"), http.StatusForbidden}} {
		m, err := identity.OpenMember(c.who)
		if err != nil {
			t.Fatal(err)
		}
		config, err := m.ClientTLS()
		if err != nil {
			t.Fatal(err)
		}
		way, under := participant.NewPassage(config, nil)
		for _, path := range []string{"", "live.js", "calculator", "events"} {
			q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+w.address+server.PagePath+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			reply, err := (&http.Client{Transport: way, Timeout: 10 * time.Second}).Do(q)
			if err != nil {
				t.Fatal(err)
			}
			text := make([]byte, 300)
			_, _ = io.ReadAtLeast(reply.Body, text, 40) // a stream has no end
			reply.Body.Close()
			if reply.StatusCode != c.code || c.code != http.StatusOK && !strings.Contains(string(text), "is for operators") {
				t.Errorf("%s, %q: %d, %s", c.who, path, reply.StatusCode, text)
			}
		}
		under.CloseIdleConnections()
	}

	// What a browser imports.
	if _, err := exec.LookPath("openssl"); err == nil {
		if out, err := exec.Command("openssl", "pkcs12", "-export", "-in", w.path("watch", "identity.pem"), "-out", w.path("watch.p12"), "-passout", "pass:x").CombinedOutput(); err != nil {
			t.Errorf("openssl: %v, %s", err, out)
		}
	}

	// coterie dash, at the server and from elsewhere; and what a participant sees of itself.
	startDash(t, w.path("serve.yaml")).shows("", page...)
	startDash(t, "https://"+w.address+"/", "--identity", w.path("watch")).shows("", page...)
	startDash(t, w.path("a")).shows("", "Certificates", "a, participant", "certificate ends in 90 days")
	if _, errs, code := coterie(t, "dash", "https://"+w.address, "--identity", w.path("a", "identity")); code != 1 || !strings.Contains(errs, "only operators are told") {
		t.Errorf("a participant asks: exit %d, %s", code, errs)
	}
	if err := process.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	w.wait(process)
}
