package certificate

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/coterie-fl/coterie/all" // every data set, method and protection
	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/audit/membership"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/tier"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/sim"
)

// finished is the directory of a run of the example table, trained for two rounds.
func finished(t *testing.T, change ...string) string {
	t.Helper()
	path := filepath.Join(tier.Root(), "examples", "own-table.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.NewReplacer(append([]string{"path: clinics.csv", "path: " + filepath.Join(filepath.Dir(path), "clinics.csv"), "rounds: 60", "rounds: 2"}, change...)...)
	run, err := config.Resolve([]byte(words.Replace(string(text))), nil, sim.Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(run, data.NewFolder(""))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	encoded, err := run.Encode()
	if err != nil {
		t.Fatal(err)
	}
	d, err := sim.CreateDirectory(filepath.Join(t.TempDir(), "run"), encoded)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	res, err := s.Execute(t.Context(), d, func(sim.Moment) {})
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.File(sim.ResultFile), out, 0o644); err != nil {
		t.Fatal(err)
	}
	return d.Path
}

func opened(t *testing.T, dir string) Subject {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// small are options that take no time.
func small() Options {
	o := DefaultOptions()
	o.Canaries, o.Runs, o.Planted, o.StepsOnly = 50, 50, 100, true
	return o
}

// pretended audits find what they are told to, and cost nothing.
func pretended(change func(*Bound)) audits {
	find := func(s Subject, p Planned) (Bound, error) {
		power := event.Number(0.9)
		b := Bound{Audit: p.Audit, Confidence: p.Confidence, AtLeast: 1, Charged: s.Result.Privacy.Statement, Power: &power, HalfPower: &power, FalseAlarm: &power, Verdict: "nothing was found", Assumes: []string{"nothing"}}
		if change != nil {
			change(&b)
		}
		return b, nil
	}
	return audits{
		mechanism: func(_ context.Context, s Subject, p Planned, _ uint64, _ func(int)) (Bound, error) { return find(s, p) },
		canary:    func(_ context.Context, s Subject, p Planned, _ uint64, _ func(int)) (Bound, error) { return find(s, p) },
		oneRun: func(_ context.Context, s Subject, _ *data.Folder, p Planned, _ uint64, _ func(int)) (Bound, error) {
			return find(s, p)
		},
	}
}

var noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

func made(t *testing.T, s Subject, a audits, o Options) Certificate {
	t.Helper()
	p, err := NewPlan(s, o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.make(t.Context(), s, data.NewFolder(""), p, membership.Options{}, noon, func(string, float64) {})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPlanSharesTheError: what applies is settled beforehand, all bounds together err as
// rarely as asked, and everything is either tried or said not to be.
func TestPlanSharesTheError(t *testing.T) {
	s := opened(t, finished(t))
	o := small()
	o.Without = []string{Inversion}
	p, err := NewPlan(s, o)
	if err != nil {
		t.Fatal(err)
	}
	left := 0.0
	for _, b := range p.Bounds {
		left += 1 - b.Confidence
	}
	if len(p.Bounds) != 2 || left > 0.05+1e-12 || left < 0.05-1e-12 {
		t.Errorf("%d bounds may err in %v", len(p.Bounds), left)
	}
	if n := len(p.Bounds) + len(p.Attacks) + len(p.NotTried); n != len(Names) {
		t.Errorf("%d of %d are tried or said not to be: %+v", n, len(Names), p)
	}
	why := map[string]string{}
	for _, l := range p.NotTried {
		why[l.Audit] = l.Why
	}
	if why[Inversion] != "left out as asked" || !strings.HasPrefix(why[Canary], `algorithm.kind is "mr-mtl"`) {
		t.Errorf("not tried: %v", why)
	}
	again, err := NewPlan(opened(t, finished(t)), o)
	if err != nil || again.Seed != p.Seed {
		t.Errorf("the same model and run file have the seeds %d and %d: %v", p.Seed, again.Seed, err)
	}
	other, err := NewPlan(opened(t, finished(t, "epsilon: 4", "epsilon: 5")), o)
	if err != nil || other.Seed == p.Seed {
		t.Errorf("another run file has the same seed %d: %v", other.Seed, err)
	}
	central, err := NewPlan(opened(t, finished(t, "kind: mr-mtl", "kind: central", "lambda: 0.3, ", "")), small())
	if err != nil {
		t.Fatal(err)
	}
	if l := central.NotTried; len(l) != 2 || l[1].Audit != Inversion || !strings.Contains(l[1].Why, "nothing is sent") {
		t.Errorf("of a central run: %+v", l)
	}
	for _, bad := range []Options{{}, {Confidence: 0.95, Canaries: 5, Runs: 50, Planted: 50}, {Confidence: 1, Canaries: 50, Runs: 50, Planted: 50}, {Confidence: 0.9, Canaries: 50, Runs: 50, Planted: 50, Without: []string{"all"}}, {Confidence: 0.9, Canaries: 50, Runs: 50, Planted: 50, References: -1}} {
		if _, err := NewPlan(s, bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// TestVerdicts: a bound above the claim refutes it, whichever says so; so does a result
// that claims less than its own run file costs.
func TestVerdicts(t *testing.T) {
	s := opened(t, finished(t))
	claim := s.Result.Privacy.Epsilon
	for name, one := range map[string]struct {
		change func(*Bound)
		want   Verdict
		why    string
	}{
		"as shipped":           {nil, NotRefuted, "does not show that the claim holds"},
		"the audit says so":    {func(b *Bound) { b.Exceeds = b.Audit == Mechanism }, Refuted, "mechanism: "},
		"above the claim":      {func(b *Bound) { b.AtLeast = claim + 0.01 }, Refuted, "mechanism: "},
		"costs more than said": {func(b *Bound) { b.Charged.Epsilon = claim + 0.01 }, Refuted, "its own run file costs"},
		"suspicious":           {func(b *Bound) { b.Suspicious, b.Verdict = true, "less noise" }, NotRefuted, "less noise"},
	} {
		c := made(t, s, pretended(one.change), small())
		if c.Verdict != one.want || !strings.Contains(c.Why, one.why) || (c.Err() != nil) != (one.want == Refuted) || c.Err() != nil && !errors.Is(c.Err(), audit.ErrCanary) {
			t.Errorf("%s: %s, %s (%v)", name, c.Verdict, c.Why, c.Err())
		}
	}
	ended := pretended(nil)
	ended.mechanism = func(context.Context, Subject, Planned, uint64, func(int)) (Bound, error) {
		return Bound{}, audit.ErrCanary
	}
	if c := made(t, s, ended, small()); c.Verdict != Refuted {
		t.Errorf("a game that ends early: %s, %s", c.Verdict, c.Why)
	}
	none := small()
	none.Without = []string{Mechanism, OneRun}
	if c := made(t, s, pretended(nil), none); c.Verdict != NotTested || len(c.NotTried) != 3 {
		t.Errorf("without bounds: %s, %+v", c.Verdict, c.NotTried)
	}
	early := s
	early.Result.Rounds--
	if c := made(t, early, pretended(func(b *Bound) { b.Charged.Epsilon = claim + 1 }), small()); c.Verdict != NotRefuted || !strings.Contains(strings.Join(c.Says, "\n"), "ended after 1 of 2 rounds") {
		t.Errorf("a run that ended early: %s, %v", c.Verdict, c.Says)
	}
}

// TestRealAudits: the plan's parts are played by the shipped audits, on the run's own
// settings. At this confidence one in a million errs.
func TestRealAudits(t *testing.T) {
	s := opened(t, finished(t))
	o := small()
	o.Confidence = 1 - 1e-6
	p, err := NewPlan(s, o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Make(t.Context(), s, data.NewFolder(""), p, membership.Options{}, noon, func(string, float64) {})
	if err != nil {
		t.Fatal(err)
	}
	if c.Verdict != NotRefuted || len(c.Bounds) != 2 || c.Membership == nil || c.Inversion == nil || len(c.Theorems) < 3 {
		t.Errorf("%+v", c)
	}
	for _, b := range c.Bounds {
		if d := float64(b.Charged.Epsilon) - float64(s.Result.Privacy.Epsilon); d > 1e-9 || d < -1e-3 || b.AtLeast > b.Charged.Epsilon {
			t.Errorf("%s: at least %v, charged %v, claimed %v", b.Audit, b.AtLeast, b.Charged.Epsilon, s.Result.Privacy.Epsilon)
		}
	}
}

// TestTheoremsAreThere: every note that a certificate names can be read.
func TestTheoremsAreThere(t *testing.T) {
	var run config.Run
	if all := theorems(run, event.Statement{Claim: event.ClaimProved, Unit: event.UnitNode}); !slices.ContainsFunc(all, func(th Theorem) bool { return th.Note == proofs+"node-relations.md" }) {
		t.Errorf("a claim about persons rests on %v", all)
	}
	run.Algorithm.Local.Batch = 64
	if all := theorems(run, event.Statement{Claim: event.ClaimProved, Unit: event.UnitNode}); !slices.ContainsFunc(all, func(th Theorem) bool { return th.Note == proofs+"node-level.md" }) {
		t.Errorf("a claim on batches of persons rests on %v", all)
	}
	run.Algorithm.Local.Batch = 0
	run.Privacy.Nodes.Contacts = "thinned"
	all := theorems(run, event.Statement{Claim: event.ClaimProved, Unit: event.UnitNode})
	at := slices.IndexFunc(all, func(th Theorem) bool { return th.Note == proofs+"thinned-steps.md" })
	if at < 0 {
		t.Fatalf("a claim on thinned contacts rests on %v", all)
	}
	if _, err := os.Stat(filepath.Join(tier.Root(), all[at].Note)); err != nil {
		t.Error(err)
	}
	for _, claim := range []event.Claim{event.ClaimProved, event.ClaimMetric, event.ClaimHeuristic, event.ClaimNone} {
		for _, noise := range []string{"simulated", "exact"} {
			run.Privacy.Noise, run.Privacy.Clipping.Rule, run.Privacy.Sector, run.Algorithm.Kind = noise, "online", config.Sector{Angle: 1}, "pca"
			all := theorems(run, event.Statement{Claim: claim, Unit: event.UnitExample, Sampling: string(event.Poisson)})
			if (claim == event.ClaimProved || claim == event.ClaimMetric) != (len(all) > 0) {
				t.Errorf("claim %s has %d theorems", claim, len(all))
			}
			for _, th := range all {
				if _, err := os.Stat(filepath.Join(tier.Root(), th.Note)); err != nil {
					t.Errorf("%s: %v", th.Says, err)
				}
			}
		}
	}
}

// TestSignature: what was signed verifies, by the signer's key and with the run beside it;
// whatever is changed afterwards does not.
func TestSignature(t *testing.T) {
	dir := finished(t)
	s := opened(t, dir)
	keyFile := filepath.Join(t.TempDir(), "keys", "auditor.key")
	key, fresh, err := Key(keyFile)
	if err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	if same, fresh, err := Key(keyFile); err != nil || fresh || !same.Equal(key) {
		t.Fatalf("read again: %v, %v", fresh, err)
	}
	out := filepath.Join(t.TempDir(), "certificate")
	if _, err := Write(out, made(t, s, pretended(nil), small()), key); err != nil {
		t.Fatal(err)
	}
	public := PublicKey(key)
	v, err := Verify(out, &public, dir)
	if err != nil || !v.KeyIsKnown || !v.PageIsThere || !v.RunIsThere || v.Certificate.Verdict != NotRefuted {
		t.Fatalf("%+v: %v", v, err)
	}
	if v, err := Verify(filepath.Join(out, File), nil, ""); err != nil || v.KeyIsKnown || v.RunIsThere {
		t.Fatalf("%+v: %v", v, err)
	}
	if _, err := Verify(out, &ledger.Key{1}, ""); !errors.Is(err, ErrForged) {
		t.Errorf("another key: %v", err)
	}
	other := finished(t, "epsilon: 4", "epsilon: 5")
	if _, err := Verify(out, &public, other); !errors.Is(err, ErrChanged) {
		t.Errorf("another run: %v", err)
	}
	whole, err := os.ReadFile(filepath.Join(out, File))
	if err != nil {
		t.Fatal(err)
	}
	change := func(old, now string) []byte {
		if !strings.Contains(string(whole), old) {
			t.Fatalf("no %q in the certificate", old)
		}
		return []byte(strings.Replace(string(whole), old, now, 1))
	}
	file := filepath.Join(out, File)
	for name, text := range map[string][]byte{
		"a figure":         change(`"epsilon_at_least": 1`, `"epsilon_at_least": 0.5`),
		"the verdict":      change(`"not refuted"`, `"refuted"`),
		"another key":      change(public.String(), strings.Repeat("ab", 32)),
		"an unknown key":   change(`"format"`, `"formed"`),
		"half of it":       whole[:len(whole)/2],
		"something behind": append(append([]byte{}, whole...), "{}"...),
		"no certificate":   []byte("{}"),
		"no JSON":          []byte("certificate"),
	} {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(out, nil, ""); err == nil {
			t.Errorf("%s is changed, and the certificate verifies", name)
		}
	}
	spaced := strings.ReplaceAll(string(whole), "\n", "\n\t")
	if err := os.WriteFile(file, []byte(spaced), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(out, &public, ""); err != nil {
		t.Errorf("only the space between the words is changed: %v", err)
	}
	if err := os.WriteFile(filepath.Join(out, PageFile), []byte("another page"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(out, &public, ""); !errors.Is(err, ErrChanged) {
		t.Errorf("another page: %v", err)
	}
	if err := os.Chmod(keyFile, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Key(keyFile); err == nil {
		t.Error("a key that others can read is used")
	}
}

// TestChangedRunsAreNotCertified: model, run file and result must belong together.
func TestChangedRunsAreNotCertified(t *testing.T) {
	for name, swap := range map[string]string{"epsilon: 4": "epsilon: 3", `"model_sha256":"`: `"model_sha256":"00`} {
		dir := finished(t)
		path := filepath.Join(dir, sim.ResultFile)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), name) {
			t.Fatalf("no %s in the result", name)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), name, swap, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
