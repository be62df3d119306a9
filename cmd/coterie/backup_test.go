package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// lines is a log that can be waited for.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	rung chan struct{} // closed at the next line
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rung != nil {
		close(l.rung)
		l.rung = nil
	}
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// next is closed when something was written after what was.
func (l *lines) next() (was string, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rung == nil {
		l.rung = make(chan struct{})
	}
	return l.text.String(), l.rung
}

// until waits for a line that has all words.
func (l *lines) until(t *testing.T, words ...string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		text, more := l.next()
		for line := range strings.Lines(text) {
			has := true
			for _, w := range words {
				has = has && strings.Contains(line, w)
			}
			if has {
				return
			}
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("no line with %q:\n%s", words, text)
		}
	}
}

// logged starts a command whose log can be waited for.
func (c *clinics) logged(args ...string) (*process, *lines) {
	c.t.Helper()
	l := &lines{}
	p := &process{cmd: exec.Command(binary, append(args, "--output", "json")...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, l
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the exit code is looked at
		close(p.done)
	}()
	c.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended long ago
		<-p.done
		if c.t.Failed() {
			c.t.Logf("%v\n%s", args, l)
		}
	})
	return p, l
}

func (c *clinics) signal(p *process, s syscall.Signal) {
	c.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// slots are what a participant's ledger says of every round.
func (c *clinics) slots(name string) map[int]slotLine {
	c.t.Helper()
	text, err := json.Marshal(runJSON(c.t, "ledger", "show", c.path(name, "ledger"), "--slots")["slots"])
	if err != nil {
		c.t.Fatal(err)
	}
	var all []slotLine
	if err := json.Unmarshal(text, &all); err != nil {
		c.t.Fatal(err)
	}
	slots := map[int]slotLine{}
	for _, s := range all {
		if _, twice := slots[s.Slot.Round]; twice {
			c.t.Errorf("%s has paid twice for round %d", name, s.Slot.Round+1)
		}
		slots[s.Slot.Round] = s
	}
	return slots
}

type slotLine struct {
	Slot struct {
		Round int `json:"round"`
	} `json:"slot"`
	Status  string          `json:"status"`
	Content string          `json:"content_sha256"`
	Receipt json.RawMessage `json:"receipt"`
}

const restoredRounds = 12

func restoredRun(noise string) string {
	return fmt.Sprintf(`name: restored
seed: 11
data: {kind: synthetic, users: 3, samples: 30}
algorithm: {kind: group-private, mode: sound, hypotheses: 2, rounds: %d, clients_per_round: 3}
privacy: {noise_multiplier: 5, radius: 0.3, radius_decay: 0.97, noise: %s}
`, restoredRounds, noise)
}

// doomed is a federation of real processes whose server is lost.
type doomed struct {
	*clinics
	server *process
	log    *lines
	joined map[string]*process
	logs   map[string]*lines
}

func newDoomed(t *testing.T, noise string) *doomed {
	d := &doomed{clinics: newClinics(t, restoredRun(noise), "", clinicsPolicy, "north", "south", "west"), joined: map[string]*process{}, logs: map[string]*lines{}}
	d.server, d.log = d.logged("serve", d.path("serve.yaml"), "--unsafe-seeded-noise")
	d.log.until(t, "listening")
	for _, name := range d.names {
		d.enrol(name)
		// Rounds take their time, so that there is a middle; what is sent again does not wait.
		d.write(name+"/join.yaml", "policy: ../policy.yaml\nanswer_seconds: 0.1\n")
		d.join(name)
	}
	return d
}

func (d *doomed) join(name string) {
	d.joined[name], d.logs[name] = d.logged("join", d.path(name, "join.yaml"), "--unsafe-seeded-noise")
}

// accepted waits until a participant's release of a round is signed for.
func (d *doomed) accepted(name string, round int) {
	d.t.Helper()
	d.logs[name].until(d.t, `"release accepted"`, fmt.Sprintf(`"round":%d}`, round))
}

// lose kills the server and removes all that it had.
func (d *doomed) lose() {
	d.t.Helper()
	d.signal(d.server, syscall.SIGKILL)
	<-d.server.done
	for _, name := range []string{"serve.yaml", "ca", "server"} {
		if err := os.RemoveAll(d.path(name)); err != nil {
			d.t.Fatal(err)
		}
	}
}

// restore brings the server back from a backup, and waits for the end of the run.
func (d *doomed) restore(file string) (end map[string]any) {
	d.t.Helper()
	r := runJSON(d.t, "restore", d.path(file), d.path("restored"))
	wantKeys(d.t, r, "created directory federation file files format next outside released rounds run_id serve store version")
	if next := fmt.Sprint(r["next"]); r["store"] != "sqlite" || !strings.Contains(next, "coterie serve "+d.path("restored", "serve.yaml")) || !strings.Contains(next, "revoke again") {
		d.t.Errorf("restored is %v", r)
	}
	d.server, d.log = d.logged("serve", d.path("restored", "serve.yaml"), "--unsafe-seeded-noise")
	end = d.result(d.server)
	if end["rounds"] != float64(restoredRounds) || end["abandoned"] != 0.0 {
		d.t.Errorf("the run ends after %v rounds, %v of them abandoned", end["rounds"], end["abandoned"])
	}
	for _, name := range d.names {
		if r := d.result(d.joined[name]); r["model_sha256"] != end["model_sha256"] || r["late"] != 0.0 || r["declined"] != 0.0 {
			d.t.Errorf("%s ends with %v", name, r)
		}
		slots := d.slots(name)
		for round := range restoredRounds {
			if slots[round].Status != "committed" {
				d.t.Errorf("%s: round %d is %q", name, round+1, slots[round].Status)
			}
		}
		if len(slots) != restoredRounds {
			d.t.Errorf("%s has paid %d times for %d rounds", name, len(slots), restoredRounds)
		}
	}
	return end
}

// TestServerIsRestored: a backup that is taken in the middle of a run, while a round is half
// answered and the federation has just got new keys, brings the server back after it was
// killed with all that it had, some rounds later, in which everybody has renewed its
// certificate under the new authority. The run ends with the models of one that nothing happened to, and every round is
// paid for once.
func TestServerIsRestored(t *testing.T) {
	d := newDoomed(t, "exact-seeded")
	d.accepted("west", 2)
	d.signal(d.joined["west"], syscall.SIGSTOP)
	d.accepted("north", 3)
	runJSON(t, "ca", "rotate", "--ca", d.path("ca"))
	var taken map[string]any
	for i := 0; ; i++ { // until the others have answered the round that waits for west
		file := fmt.Sprintf("half-%d.backup", i)
		taken = runJSON(t, "backup", d.path("serve.yaml"), "--out", d.path(file))
		if taken["released"] == 2.0 {
			if err := os.Rename(d.path(file), d.path("half.backup")); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	wantKeys(t, taken, "bytes created federation file files format outside released rounds run_id serve store version")
	d.signal(d.joined["west"], syscall.SIGCONT)
	at := int(taken["rounds"].(float64))
	d.accepted("north", at+3)
	for _, name := range d.names { // of which the backup knows nothing
		d.logs[name].until(t, "the certificate was renewed")
	}
	d.lose()
	before := d.slots("south")
	end := d.restore("half.backup")
	simulated := runJSON(t, "run", d.path("run.yaml"), "--out", d.path("simulated"))
	if end["model_sha256"] != simulated["model_sha256"] {
		t.Errorf("the restored run ends with %v, an undisturbed one with %v", end["model_sha256"], simulated["model_sha256"])
	}
	for name, round := range map[string]int{"west": at, "north": at + 1, "south": at + 1} {
		d.logs[name].until(t, "nothing was charged", fmt.Sprintf(`"round":%d}`, round))
	}
	d.sameReleases(before, d.slots("south"))
	for _, name := range d.names {
		if all := runJSON(t, "ledger", "show", d.path(name, "ledger"))["successions"].([]any); len(all) != 1 {
			t.Errorf("%s knows of %d new keys, want 1", name, len(all))
		}
	}
}

// sameReleases holds what was committed before against what is now: bytes and receipts.
func (d *doomed) sameReleases(before, after map[int]slotLine) {
	d.t.Helper()
	for round, was := range before {
		is := after[round]
		if was.Content != "" && is.Content != was.Content || was.Status == "committed" && string(is.Receipt) != string(was.Receipt) {
			d.t.Errorf("round %d was %+v and is %+v", round+1, was, is)
		}
	}
}

// TestEverybodyIsRestored: the same with noise that nobody can repeat, and participants that
// are killed too: from their disks they send what they sent before.
func TestEverybodyIsRestored(t *testing.T) {
	d := newDoomed(t, "exact")
	d.accepted("south", 3)
	taken := runJSON(t, "backup", d.path("serve.yaml"), "--out", d.path("early.backup"))
	at := int(taken["rounds"].(float64))
	for _, name := range d.names {
		d.accepted(name, at+3)
	}
	d.lose()
	before := map[string]map[int]slotLine{}
	for _, name := range d.names {
		d.signal(d.joined[name], syscall.SIGKILL)
		<-d.joined[name].done
		before[name] = d.slots(name)
		d.join(name)
	}
	end := d.restore("early.backup")
	for _, name := range d.names {
		d.logs[name].until(t, "nothing was charged", fmt.Sprintf(`"round":%d}`, at+1))
		d.sameReleases(before[name], d.slots(name))
	}
	for _, p := range end["participants"].([]any) {
		if p := p.(map[string]any); p["released"] != float64(restoredRounds) || p["receipts"] != float64(restoredRounds) || p["equivocations"] != 0.0 {
			t.Errorf("the server knows %v", p)
		}
	}
}

// TestBackupCommandsRefuse: exit 2 for what is asked wrongly, 1 for what is damaged, always
// with the file's name and what to do; nothing is written.
func TestBackupCommandsRefuse(t *testing.T) {
	c := newClinics(t, seededRun(""), "", clinicsPolicy, "a", "b", "c", "d")
	runJSON(t, "backup", c.path("serve.yaml"), "--out", c.path("good.backup"))
	good, err := os.ReadFile(c.path("good.backup"))
	if err != nil {
		t.Fatal(err)
	}
	c.write("cut.backup", string(good[:len(good)-600]))
	c.write("postgres.yaml", "run: run.yaml\nparticipants: [a]\nstore: postgres://me:hidden@db/fl\n")
	for _, r := range []struct {
		code int
		want string
		args []string
	}{
		{exitUsage, "--out", []string{"backup", c.path("serve.yaml")}},
		{exitUsage, "choose another name", []string{"backup", c.path("serve.yaml"), "--out", c.path("good.backup")}},
		{exitUsage, "pg_dump", []string{"backup", c.path("postgres.yaml"), "--out", c.path("new.backup")}},
		{exitUsage, "leave --without-store away", []string{"backup", c.path("serve.yaml"), "--out", c.path("new.backup"), "--without-store"}},
		{exitFailure, "absent.yaml", []string{"backup", c.path("absent.yaml"), "--out", c.path("new.backup")}},
		{exitUsage, "is not empty", []string{"restore", c.path("good.backup"), c.dir}},
		{exitFailure, "cut.backup: the backup is damaged or cut short", []string{"restore", c.path("cut.backup"), c.path("to")}},
		{exitFailure, "absent.backup", []string{"restore", c.path("absent.backup"), c.path("to")}},
	} {
		out, errs, code := coterie(t, r.args...)
		if code != r.code || !strings.Contains(errs, r.want) || strings.Contains(errs, "hidden") || out != "" {
			t.Errorf("%v: exit %d, want %d and %q: %s%s", r.args, code, r.code, r.want, out, errs)
		}
	}
	for _, name := range []string{"new.backup", "to"} {
		if _, err := os.Stat(c.path(name)); err == nil {
			t.Errorf("%s was left", name)
		}
	}
	out, _, code := coterie(t, "restore", c.path("good.backup"), c.path("to"))
	if code != 0 || !strings.Contains(out, "before its first run") || !strings.Contains(out, "coterie serve "+c.path("to", "serve.yaml")) {
		t.Errorf("exit %d: %s", code, out)
	}
}
