package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/server"
)

// watched is a federation whose server writes its log to a file.
type watched struct {
	*clinics
	log   string
	admin string
}

func newWatched(t *testing.T, run, serve string, names ...string) *watched {
	t.Helper()
	c := newClinics(t, run, serve, clinicsPolicy, names...)
	return &watched{clinics: c, log: c.path("server.log")}
}

// serve starts the server and waits until it answers.
func (w *watched) serve() *process {
	w.t.Helper()
	log, err := os.OpenFile(w.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	p := &process{cmd: exec.Command(binary, "serve", w.path("serve.yaml"), "--output", "json"), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, log
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the exit code is looked at
		close(p.done)
	}()
	w.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended long ago
		<-p.done
	})
	address := regexp.MustCompile(`"operators are answered","address":"([^"]+)"`)
	w.until("the server listens", func() bool {
		all := address.FindAllStringSubmatch(w.words(), -1)
		if len(all) > 0 {
			w.admin = all[len(all)-1][1]
		}
		return len(all) > 0 && strings.Contains(w.words(), `"listening"`)
	})
	return p
}

func (w *watched) words() string {
	text, err := os.ReadFile(w.log)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// until waits, for ten seconds at most.
func (w *watched) until(what string, so func() bool) time.Duration {
	w.t.Helper()
	began := time.Now()
	for !so() {
		if time.Since(began) > 10*time.Second {
			w.t.Fatalf("after 10 seconds it is not so that %s\n%s", what, w.words())
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(began)
}

// status is one participant's part of it.
func (w *watched) status(name string) map[string]any {
	w.t.Helper()
	for _, p := range runJSON(w.t, "status", w.path("serve.yaml"))["participants"].([]any) {
		if p := p.(map[string]any); p["name"] == name {
			return p
		}
	}
	w.t.Fatalf("the status does not name %s", name)
	return nil
}

// gauge is whether /metrics says that somebody is connected.
func (w *watched) gauge(name string) string {
	w.t.Helper()
	reply, err := http.Get("http://" + w.admin + "/metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	m := regexp.MustCompile(`coterie_participant_connected\{participant="` + name + `"\} (\S+)`).FindStringSubmatch(string(text))
	if m == nil {
		w.t.Fatalf("/metrics does not name %s:\n%s", name, text)
	}
	return m[1]
}

// said counts lines of the server's log about a participant.
func (w *watched) said(line, name string) int {
	return len(regexp.MustCompile(`"msg":"`+line+`","participant":"`+name+`"`).FindAllString(w.words(), -1))
}

const watchedRun = `name: watched
seed: 11
data: {kind: synthetic, users: 3, samples: 30}
algorithm: {kind: group-private, mode: sound, hypotheses: 2, rounds: 4, clients_per_round: 3}
privacy: {noise_multiplier: 5, radius: 0.3, noise: exact}
`

// TestAKilledParticipantIsNamed: three real participants, one of them killed -9. Within
// ten seconds the status, the log and the gauge name it, and nobody else; started again,
// they say that it is there, and the run ends as if nothing had been.
func TestAKilledParticipantIsNamed(t *testing.T) {
	w := newWatched(t, watchedRun, "admin: 127.0.0.1:0\n", "a", "b", "c")
	server := w.serve()
	joined := map[string]*process{}
	for _, name := range w.names {
		w.enrol(name)
		w.write(filepath.Join(name, "join.yaml"), "policy: ../policy.yaml\nanswer_seconds: 0.3\n") // so that the run lasts
		joined[name] = w.join(name)
	}
	w.until("all three are there", func() bool { return w.said("participant is there", "[abc]") == 3 })
	w.until("c has released", func() bool { return w.status("c")["released"].(float64) > 0 })

	if err := joined["c"].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	w.until("status, log and gauge say that c is missing", func() bool {
		return w.status("c")["connected"] == false && w.said("participant is missing", "c") == 1 && w.gauge("c") == "0"
	})
	took := time.Since(killed)
	t.Logf("named %.1f s after it was killed", took.Seconds())
	if took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	missing := w.status("c")
	since, err := time.Parse(time.RFC3339, missing["since"].(string))
	if err != nil || since.Sub(killed).Abs() > 2*time.Second {
		t.Errorf("missing since %v, killed at %v: %v", missing["since"], killed, err)
	}
	for _, name := range []string{"a", "b"} {
		if w.status(name)["connected"] != true || w.said("participant is missing", name) != 0 || w.gauge(name) != "1" {
			t.Errorf("%s is said to be missing:\n%s", name, w.words())
		}
	}
	text, _, code := coterie(t, "status", w.path("serve.yaml"))
	if code != 0 || !regexp.MustCompile(`(?m)^c +MISSING since \d\d:\d\d:\d\d UTC, for \d+s .*not yet`).MatchString(text) || !strings.Contains(text, "2 of 3 participants") {
		t.Errorf("exit %d:\n%s", code, text)
	}
	w.wantDocumented(runJSON(t, "status", w.path("serve.yaml")))

	// The run must not end before it is looked at: a sleeps meanwhile.
	if err := joined["a"].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	joined["c"] = w.join("c")
	w.until("status, log and gauge say that c is there", func() bool {
		return w.status("c")["connected"] == true && w.said("participant is there", "c") == 2 && w.gauge("c") == "1"
	})
	if !regexp.MustCompile(`"participant is there","participant":"c","away":"[0-9.m]+s"`).MatchString(w.words()) {
		t.Errorf("the log does not say how long c was away:\n%s", w.words())
	}
	if err := joined["a"].cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.wait(server)
	var end map[string]any
	if err := json.Unmarshal(server.out.Bytes(), &end); err != nil || server.cmd.ProcessState.ExitCode() != 0 || end["abandoned"] != 0.0 {
		t.Errorf("the run: %v, %v\n%s", end, err, w.words())
	}
	for _, p := range joined {
		if r := w.result(p); r["model_sha256"] != end["model_sha256"] {
			t.Errorf("%v has model %v, the server %v", r["participant"], r["model_sha256"], end["model_sha256"])
		}
	}
	if w.said("participant is missing", "c") != 1 || w.said("participant is missing", "b") != 0 {
		t.Errorf("who went home with the models is said to be missing:\n%s", w.words())
	}
}

// wantDocumented holds the keys of a status against docs/json.md, in both directions.
func (w *watched) wantDocumented(status map[string]any) {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		w.t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## `coterie status`\n")
	section, _, _ = strings.Cut(section, "\n## ")
	documented, printed := map[string]bool{}, map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z0-9_]+)`").FindAllStringSubmatch(section, -1) {
		documented[m[1]] = true
	}
	note := func(object any) map[string]any {
		for k := range object.(map[string]any) {
			printed[k] = true
		}
		return object.(map[string]any)
	}
	note(status)
	var ended any // there may be none yet
	if text, err := json.Marshal(server.RoundEnd{}); err != nil || json.Unmarshal(text, &ended) != nil {
		w.t.Fatal(err)
	}
	note(ended)
	for _, p := range status["participants"].([]any) {
		for _, s := range note(p)["spent"].([]any) {
			note(s)
		}
	}
	got, want := slices.Sorted(maps.Keys(printed)), slices.Sorted(maps.Keys(documented))
	if !slices.Equal(got, want) {
		w.t.Errorf("printed are\n%v, in docs/json.md\n%v", got, want)
	}
}

// TestStatusFromElsewhere: an operator enrols with an invitation, asks and watches from
// another folder; a participant's identity cannot, and neither takes the other's part.
func TestStatusFromElsewhere(t *testing.T) {
	w := newWatched(t, watchedRun, "admin: 127.0.0.1:0\n", "a", "b", "c")
	server := w.serve()
	w.enrol("a")
	runJSON(t, "ca", "invite", "watch", "--operator", "--ca", w.path("ca"), "--out", w.path("watch.invite"))
	enrolled := runJSON(t, "join", "--invite", w.path("watch.invite"), "--identity", w.path("watch"))
	if enrolled["role"] != "operator" || enrolled["participant"] != "watch" {
		t.Errorf("enrolled as %v", enrolled)
	}
	st := runJSON(t, "status", "--identity", w.path("watch"))
	if st["state"] != "waiting for participants" || st["connected"] != 0.0 || len(st["participants"].([]any)) != 3 {
		t.Errorf("%v", st)
	}
	w.write("operator.yaml", "policy: policy.yaml\nidentity: watch\n")
	if _, errs, code := coterie(t, "join", w.path("operator.yaml")); code != 1 || !strings.Contains(errs, "takes part in nothing") {
		t.Errorf("an operator joins: exit %d, %s", code, errs)
	}
	if _, errs, code := coterie(t, "status", "--identity", w.path("a", "identity")); code != 1 || !strings.Contains(errs, "only operators are told") {
		t.Errorf("a participant asks: exit %d, %s", code, errs)
	}
	if _, errs, code := coterie(t, "ca", "invite", "a", "--operator", "--ca", w.path("ca")); code != exitUsage || !strings.Contains(errs, "one role") {
		t.Errorf("a participant is invited as an operator: exit %d, %s", code, errs)
	}
	for _, args := range [][]string{{"status"}, {"status", w.path("serve.yaml"), "--identity", w.path("watch")}} {
		if _, errs, code := coterie(t, args...); code != exitUsage || !strings.Contains(errs, "--identity") {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
	w.watch(server)
	if _, errs, code := coterie(t, "status", w.path("serve.yaml")); code != 1 || !strings.Contains(errs, "no server answers at "+w.address) {
		t.Errorf("without a server: exit %d, %s", code, errs)
	}
	listed := runJSON(t, "ca", "list", "--ca", w.path("ca"))["entries"].([]any)
	if !slices.ContainsFunc(listed, func(e any) bool {
		return e.(map[string]any)["name"] == "watch" && e.(map[string]any)["role"] == "operator"
	}) {
		t.Errorf("the operator is not listed: %v", listed)
	}
}

// watch looks again and again, at a server that is stopped meanwhile, until Ctrl-C.
func (w *watched) watch(server *process) {
	w.t.Helper()
	cmd := exec.Command(binary, "status", "--identity", w.path("watch"), "--watch", "--output", "json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }() // it has ended, unless the test has failed
	lines := bufio.NewScanner(out)
	for i := range 2 {
		var st map[string]any
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &st) != nil || st["state"] != "waiting for participants" {
			w.t.Fatalf("look %d: %s", i+1, lines.Text())
		}
	}
	if err := server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		w.t.Fatal(err)
	}
	w.wait(server)
	problems := bufio.NewScanner(errs)
	if !problems.Scan() || !strings.Contains(problems.Text(), `{"error":`) {
		w.t.Errorf("a server that is gone is told of as %q", problems.Text())
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		w.t.Fatal(err)
	}
	for lines.Scan() || problems.Scan() { // what comes meanwhile
	}
	if err := cmd.Wait(); err != nil {
		w.t.Errorf("Ctrl-C ends watching with %v", fmt.Errorf("%w: %s", err, problems.Text()))
	}
}
