package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// afterQuickStart: everybody has the server's models.
func afterQuickStart(w *walk) {
	server, err := os.ReadFile(w.path("clinics", "server", "model.safetensors"))
	if err != nil {
		w.Fatal(err)
	}
	for _, name := range []string{"north", "south", "west"} {
		own, err := os.ReadFile(w.path("clinics", name, "out", "model.safetensors"))
		if err != nil || !bytes.Equal(own, server) {
			w.Errorf("%s has other models than the server: %v", name, err)
		}
	}
}

// clinics is a federation of real processes on this machine.
type clinics struct {
	t       *testing.T
	dir     string
	address string
	names   []string
}

func newClinics(t *testing.T, run, serve, policy string, names ...string) *clinics {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &clinics{t: t, dir: t.TempDir(), address: l.Addr().String(), names: names}
	l.Close()
	c.write("run.yaml", run)
	c.write("policy.yaml", policy)
	c.write("serve.yaml", fmt.Sprintf("run: run.yaml\nlisten: %s\nparticipants: [%s]\n%s", c.address, strings.Join(names, ", "), serve))
	runJSON(t, "ca", "init", c.path("ca"), "--server", c.address)
	return c
}

func (c *clinics) path(parts ...string) string {
	return filepath.Join(append([]string{c.dir}, parts...)...)
}

func (c *clinics) write(name, text string) {
	c.t.Helper()
	if err := os.MkdirAll(filepath.Dir(c.path(name)), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(c.path(name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// process is one that was started, and what it printed.
type process struct {
	cmd       *exec.Cmd
	out, errs bytes.Buffer
	done      chan struct{}
}

func (c *clinics) start(args ...string) *process {
	c.t.Helper()
	p := &process{cmd: exec.Command(binary, append(args, "--output", "json")...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errs
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
	})
	return p
}

// result waits for a process that must end well, and reads its object.
func (c *clinics) result(p *process) map[string]any {
	c.t.Helper()
	c.wait(p)
	var v map[string]any
	if err := json.Unmarshal(p.out.Bytes(), &v); err != nil || p.cmd.ProcessState.ExitCode() != 0 {
		c.t.Fatalf("%v: exit %d, %v\n%s\n%s", p.cmd.Args, p.cmd.ProcessState.ExitCode(), err, p.out.String(), p.errs.String())
	}
	return v
}

func (c *clinics) wait(p *process) {
	c.t.Helper()
	select {
	case <-p.done:
	case <-time.After(2 * time.Minute):
		_ = p.cmd.Process.Kill()
		<-p.done
		c.t.Fatalf("%v does not end\n%s", p.cmd.Args, p.errs.String())
	}
}

func (c *clinics) serve(flags ...string) *process {
	return c.start(append([]string{"serve", c.path("serve.yaml")}, flags...)...)
}

// enrol gives a participant its key, certificate and file.
func (c *clinics) enrol(name string) {
	c.t.Helper()
	invitation := c.path(name + ".invite")
	runJSON(c.t, "ca", "invite", name, "--ca", c.path("ca"), "--out", invitation)
	runJSON(c.t, "join", "--invite", invitation, "--identity", c.path(name, "identity"))
	c.write(filepath.Join(name, "join.yaml"), "policy: ../policy.yaml\n")
}

func (c *clinics) join(name string, flags ...string) *process {
	return c.start(append([]string{"join", c.path(name, "join.yaml")}, flags...)...)
}

const clinicsPolicy = `ceilings:
  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: 20, epsilon_switch: 100000}
  - {unit: neighbourhood, relation: metric, claim: heuristic, epsilon: 20}
`

func seededRun(extra string) string {
	return `name: both-worlds
seed: 11
data: {kind: synthetic, users: 4, samples: 30}
algorithm: {kind: group-private, mode: sound, hypotheses: 2, rounds: 6, clients_per_round: 3` + extra + `}
privacy: {noise_multiplier: 5, radius: 0.3, radius_decay: 0.9, noise: exact-seeded}
`
}

// The keys that programs rely on.
const (
	serveKeys = "abandoned algorithm config config_sha256 directory family federation history hypotheses kernel minimum mode model_sha256 name parameters participants plan_sha256 quorum rounds run_id seed stopped"
	joinKeys  = "blank declined device directory enforcement index late ledger local model_sha256 not_covered participant plan_sha256 released rounds run_id stopped"
)

func wantKeys(t *testing.T, v map[string]any, want string) {
	t.Helper()
	if got := strings.Join(slices.Sorted(maps.Keys(v)), " "); got != want {
		t.Errorf("the keys are\n%s, want\n%s", got, want)
	}
}

// TestServerStopsWhenAsked: SIGTERM ends a server within seconds, and started again
// it goes on with the same run.
func TestServerStopsWhenAsked(t *testing.T) {
	c := newClinics(t, seededRun(""), "admin: 127.0.0.1:0\n", clinicsPolicy, "a", "b", "c", "d")
	first := c.serve("--unsafe-seeded-noise")
	c.enrol("a") // so that it has begun
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if c.wait(first); first.cmd.ProcessState.ExitCode() != exitStopped || !strings.Contains(first.errs.String(), "interrupted") {
		t.Fatalf("exit %d\n%s", first.cmd.ProcessState.ExitCode(), first.errs.String())
	}
	again := c.serve("--unsafe-seeded-noise")
	joined := []*process{c.join("a", "--unsafe-seeded-noise")}
	for _, name := range []string{"b", "c", "d"} {
		c.enrol(name)
		joined = append(joined, c.join(name, "--unsafe-seeded-noise"))
	}
	for _, p := range joined {
		c.result(p)
	}
	c.result(again)
}

// TestBothWorldsEqual: one run file gives the same models in simulation and in a
// federation of real processes.
func TestBothWorldsEqual(t *testing.T) {
	for name, run := range map[string]string{
		"uniform":  seededRun(""),
		"balanced": seededRun(", sampling: balanced"),
		"paper": strings.Replace(strings.Replace(seededRun(", stop: {patience: 0, return: last}"), "mode: sound", "mode: paper", 1),
			"radius: 0.3, radius_decay: 0.9, ", "", 1),
	} {
		t.Run(name, func(t *testing.T) {
			c := newClinics(t, run, "", clinicsPolicy, "a", "b", "c", "d")
			server := c.serve("--unsafe-seeded-noise")
			var joined []*process
			for _, n := range c.names {
				c.enrol(n)
				joined = append(joined, c.join(n, "--unsafe-seeded-noise"))
			}
			end := c.result(server)
			simulated := runJSON(t, "run", c.path("run.yaml"), "--out", c.path("simulated"))
			if end["model_sha256"] != simulated["model_sha256"] {
				t.Errorf("the federation ends with %v, the simulation with %v", end["model_sha256"], simulated["model_sha256"])
			}
			wantKeys(t, end, serveKeys)
			for _, p := range joined {
				r := c.result(p)
				if r["model_sha256"] != end["model_sha256"] {
					t.Errorf("%v has model %v", r["participant"], r["model_sha256"])
				}
				wantKeys(t, r, joinKeys)
			}
		})
	}
}

// TestSeededNoiseIsRefused: noise that can be repeated needs a flag on both sides.
func TestSeededNoiseIsRefused(t *testing.T) {
	c := newClinics(t, seededRun(""), "", clinicsPolicy, "a", "b", "c", "d")
	p := c.serve()
	if c.wait(p); p.cmd.ProcessState.ExitCode() != 3 || !strings.Contains(p.errs.String(), "unsafe-seeded-noise") {
		t.Errorf("the server: exit %d\n%s", p.cmd.ProcessState.ExitCode(), p.errs.String())
	}
	c.serve("--unsafe-seeded-noise")
	c.enrol("a")
	p = c.join("a")
	if c.wait(p); p.cmd.ProcessState.ExitCode() != 3 || !strings.Contains(p.errs.String(), "unsafe-seeded-noise") {
		t.Errorf("the participant: exit %d\n%s", p.cmd.ProcessState.ExitCode(), p.errs.String())
	}
}

// TestBudgetEndsParticipation: exit 3 when the ceiling is reached, and the others go
// on without.
func TestBudgetEndsParticipation(t *testing.T) {
	run := `name: budget
data: {kind: synthetic, users: 3, samples: 30}
model: {init_sd: 10}
algorithm: {kind: group-private, mode: sound, hypotheses: 2, rounds: 6, clients_per_round: 3}
privacy: {noise_multiplier: 2, radius: 0.3, noise: exact}
`
	c := newClinics(t, run, "minimum: 2\n", "ceilings:\n  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: 20, epsilon_switch: 100000}\n", "a", "b", "c")
	server := c.serve()
	c.enrol("a")
	c.enrol("b")
	c.enrol("c")
	// Six releases lose 2/2 = 1 each at the radius and 2 between any two data sets, at
	// least: a plan that cannot be paid for to its end is declined before it begins.
	c.write("a/join.yaml", "policy: ../poor.yaml\n")
	for _, ceiling := range []string{"epsilon: 5.5, epsilon_switch: 100", "epsilon: 20, epsilon_switch: 11"} {
		c.write("poor.yaml", "ceilings:\n  - {unit: neighbourhood, relation: metric, claim: metric, "+ceiling+"}\n")
		poor := c.join("a")
		if c.wait(poor); poor.cmd.ProcessState.ExitCode() != 3 || !strings.Contains(poor.errs.String(), "asks for 6 more releases") || strings.Contains(poor.errs.String(), `"joined"`) {
			t.Errorf("%s: exit %d\n%s", ceiling, poor.cmd.ProcessState.ExitCode(), poor.errs.String())
		}
	}
	// How far apart the hypotheses are only a round tells: the first costs 44.1.
	c.write("poor.yaml", "ceilings:\n  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: 20, epsilon_switch: 46}\n")
	// It has declined before: the others must not begin until it is known to be back.
	poor, log := c.logged("join", c.path("a", "join.yaml"))
	log.until(t, `"joined"`)
	b, d := c.join("b"), c.join("c")
	if c.wait(poor); poor.cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("the poor one: exit %d\n%s", poor.cmd.ProcessState.ExitCode(), log)
	}
	var r struct {
		Released int `json:"released"`
	}
	if err := json.Unmarshal(poor.out.Bytes(), &r); err != nil || r.Released != 1 {
		t.Errorf("the poor one printed %s (%v); want 1 release", poor.out.String(), err)
	}
	end := c.result(server)
	if end["rounds"] != 6.0 || end["abandoned"] != 0.0 {
		t.Errorf("the server made %v rounds and abandoned %v; want 6 and 0", end["rounds"], end["abandoned"])
	}
	for _, p := range []*process{b, d} {
		if r := c.result(p); r["released"] != 6.0 {
			t.Errorf("%v released %v times, want 6", r["participant"], r["released"])
		}
	}
	// A participant's own page has its budgets as bars: here its ceilings are known.
	own := startDash(t, c.path("b"))
	own.shows("", "Ledgers", "epsilon 6.001 of 20 (metric, unit neighbourhood", `aria-label="30 % of the ceiling used"`)
	own.shows("?at=ledger", "Budgets", "% of the ceiling used", "neighbourhood, metric", "6 releases")
	// Nothing is left: the same plan again is declined before training.
	again := c.serve("--new")
	poor = c.join("a")
	if c.wait(poor); poor.cmd.ProcessState.ExitCode() != 3 || strings.Contains(poor.errs.String(), `"joined"`) {
		t.Errorf("with nothing left: exit %d\n%s", poor.cmd.ProcessState.ExitCode(), poor.errs.String())
	}
	_ = again.cmd.Process.Kill()
}

// TestPolicyDeclines: a plan that breaks the policy is declined before training, with
// the reason.
func TestPolicyDeclines(t *testing.T) {
	run := strings.Replace(seededRun(""), "exact-seeded", "exact", 1)
	c := newClinics(t, run, "", clinicsPolicy, "a", "b", "c", "d")
	c.serve()
	c.enrol("a")
	for want, policy := range map[string]string{
		"the method is":            clinicsPolicy + "methods: [mr-mtl]\n",
		"at most 5 are allowed":    clinicsPolicy + "maximum_rounds: 5\n",
		"at least 4 are wanted":    clinicsPolicy + "minimum_cohort: 4\n",
		"multiplier of at least 9": clinicsPolicy + "minimum_noise: 9\n",
		"lose at most 0.1":         clinicsPolicy + "maximum_leak: 0.1\n",
		"no ceiling":               "ceilings:\n  - {unit: example, relation: add-remove, claim: proved, epsilon: 1, delta: 1.0e-6}\n",
		"at most 3 values":         clinicsPolicy + "maximum_parameters: 3\n",
	} {
		c.write("policy.yaml", policy)
		p := c.join("a")
		if c.wait(p); p.cmd.ProcessState.ExitCode() != 3 || !strings.Contains(p.errs.String(), want) || strings.Contains(p.errs.String(), `"joined"`) {
			t.Errorf("%s: exit %d\n%s", policy, p.cmd.ProcessState.ExitCode(), p.errs.String())
		}
		if err := os.RemoveAll(c.path("a", "ledger")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFederationIsReported: the folder that a server leaves is shown as the federation
// that it was; a folder of another kind is refused.
func TestFederationIsReported(t *testing.T) {
	c := newClinics(t, seededRun(""), "", clinicsPolicy, "a", "b", "c", "d")
	server := c.serve("--unsafe-seeded-noise")
	for _, n := range c.names {
		c.enrol(n)
		c.join(n, "--unsafe-seeded-noise")
	}
	end := c.result(server)
	path := runJSON(t, "report", c.path("server"))["report"].(string)
	page, err := os.ReadFile(path)
	if err != nil || path != c.path("server", "report.html") {
		t.Fatalf("%s: %v", path, err)
	}
	for _, want := range []string{"This was a federation", "A federation of 4 participants: 6 rounds", "neighbourhood", "participant adds the noise", end["model_sha256"].(string), end["plan_sha256"].(string)} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the report does not say %q", want)
		}
	}
	for _, wrong := range []string{"This is a simulation", "0 clients", "nothing was released"} {
		if bytes.Contains(page, []byte(wrong)) {
			t.Errorf("the report says %q", wrong)
		}
	}
	c.write("other/result.json", `{"score": 1}`)
	for folder, want := range map[string]string{c.path("ca"): "holds no finished run", c.path("other"): "holds neither"} {
		if _, errs, code := coterie(t, "report", folder); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %s", folder, code, errs)
		}
		if _, err := os.Stat(filepath.Join(folder, "report.html")); err == nil {
			t.Errorf("%s: a report was left", folder)
		}
	}
}

// TestNobodyReleasesIsAFailure: a server to which nobody has released ends with exit code
// 1 and a sentence, and leaves no model.
func TestNobodyReleasesIsAFailure(t *testing.T) {
	c := newClinics(t, seededRun(""), "", "ceilings:\n  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: 0.01, epsilon_switch: 1.0e+6}\n", "a", "b", "c", "d")
	server := c.serve("--unsafe-seeded-noise")
	for _, n := range c.names {
		c.enrol(n)
		p := c.join(n, "--unsafe-seeded-noise")
		if c.wait(p); p.cmd.ProcessState.ExitCode() != 3 {
			t.Errorf("%s: exit %d\n%s", n, p.cmd.ProcessState.ExitCode(), p.errs.String())
		}
	}
	if c.wait(server); server.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(server.errs.String(), "there is no model") || server.out.Len() > 0 {
		t.Errorf("exit %d: %s\n%s", server.cmd.ProcessState.ExitCode(), server.out.String(), server.errs.String())
	}
	if _, err := os.Stat(c.path("server", "model.safetensors")); err == nil {
		t.Error("an untrained model was left")
	}
}
