package plan_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/fl"
)

func FuzzParsePlan(f *testing.F) {
	text, _, err := federationtest.Plan(f).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"version":2,"run_file":"a: ["}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, run, err := plan.Parse(raw)
		if err != nil {
			return
		}
		if plan.Suitable(run) != nil {
			t.Error("a plan passes whose run file is for simulation only")
		}
		if _, _, err := p.Encode(); err != nil {
			t.Error(err)
		}
	})
}

func TestPlanIsReadStrictly(t *testing.T) {
	good := federationtest.Plan(t)
	text, sum, err := good.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := plan.Parse(text)
	if err != nil || !reflect.DeepEqual(got, good) {
		t.Fatalf("%v: %v, want %v", err, got, good)
	}
	if _, again, _ := got.Encode(); again != sum {
		t.Error("a plan that was read has another hash")
	}
	for name, bad := range map[string]string{
		"nothing":         ``,
		"more":            string(text) + `{}`,
		"unknown key":     strings.Replace(string(text), `{`, `{"noise":0,`, 1),
		"earlier version": strings.Replace(string(text), `"version":2`, `"version":1`, 1),
		"later version":   strings.Replace(string(text), `"version":2`, `"version":3`, 1),
		"simulation":      strings.Replace(string(text), `exact-seeded`, `simulated`, 1),
		"patience":        strings.Replace(string(text), `patience: 0`, `patience: 6`, 1),
		"best":            strings.Replace(string(text), `return: last`, `return: best`, 1),
		"broken run":      strings.Replace(string(text), `rounds: 5`, `rounds: 0`, 1),
	} {
		if bad == string(text) {
			t.Fatalf("%s: the plan is unchanged", name)
		}
		_, _, err := plan.Parse([]byte(bad))
		if err == nil {
			t.Errorf("%s: the plan is taken", name)
		}
		if strings.Contains(name, "version") && !strings.Contains(err.Error(), "use the same release of coterie on both sides") {
			t.Errorf("%s: %v; want what to do", name, err)
		}
	}
}

func FuzzFiles(f *testing.F) {
	f.Add([]byte("run: run.yaml\nparticipants: [a, b]\nlimits: {uploads: 3}\n"))
	f.Add([]byte("policy: p.yaml\ndata: {kind: own, run: r.yaml, source: {path: x}}\n"))
	f.Add([]byte(federationtest.Policy))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, load := range []func() error{
			func() error { _, err := plan.LoadServeFile(raw, "."); return err },
			func() error { _, err := plan.LoadJoinFile(raw, "."); return err },
			func() error { _, err := plan.LoadPolicy(raw); return err },
		} {
			var faults config.Faults
			if err := load(); err != nil && errors.As(err, &faults) && len(faults) == 0 {
				t.Errorf("%q is refused without a fault", raw)
			}
		}
	})
}

func TestFilesTellTheirFaults(t *testing.T) {
	for text, want := range map[string]string{
		"participants: [a]":                              "run: names no run file",
		"run: r\nparticipants: []":                       "participants: names nobody",
		"run: r\nparticipants: [a, a]":                   "stands twice",
		"run: r\nparticipants: [../a]":                   "not a participant name",
		"run: r\nparticipants: [Nord]":                   `"Nord"; use 1 to 63 lower-case letters`,
		"run: r\nparticipants: [a]\nstart: 2":            "more than the 1 participants",
		"run: r\nparticipants: [a]\ndedline_seconds: 3":  `did you mean "deadline_seconds"?`,
		"run: r\nparticipants: [a]\ndeadline_seconds: 0": "out of range",
	} {
		if _, err := plan.LoadServeFile([]byte(text), "."); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"data: {kind: own}":         "names no run file",
		"data: {kind: own, run: r}": "names neither a path nor a database",
		"data: {source: {path: x}}": "allowed with it: own",
		"data: {kind: own, run: r, source: {path: x}, test: {column: a, value: b}}": "belongs into the run file",
		"data: {kind: trainer}":            "trainer: is needed",
		`server: "127.0.0.1"`:              `server: invalid setting: the server's address "127.0.0.1" must be host:port`,
		"server: https://fl.example.org":   "must be host:port, for example fl.example.org:7443; left out",
		"trainer: {command: []}\nledgr: x": `did you mean "ledger"?`,
	} {
		if _, err := plan.LoadJoinFile([]byte(text), "."); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                            "ceilings: names nothing",
		"ceilings: [{unit: example}]": "all needed",
		"ceilings: [{unit: example, relation: add-remove, claim: proved, epsilon: 1}]":                                            "delta",
		"ceilings: [{unit: client, relation: replace-one, claim: none}]":                                                          "unlimited",
		"ceilings: [{unit: neighbourhood, relation: metric, claim: metric, epsilon: 1, epsilon_switch: 100000, unlimited: true}]": "unlimited",
	} {
		if _, err := plan.LoadPolicy([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

// TestSimulationOnlySettings: what nobody pays for is refused, also where the noise
// follows from a silo's own target.
func TestSimulationOnlySettings(t *testing.T) {
	resolve := func(text string) config.Run {
		run, err := plan.Resolve([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	for _, text := range []string{federationtest.Run, federationtest.SiloRun} {
		if err := plan.Suitable(resolve(text)); err != nil {
			t.Error(err)
		}
		bad := strings.Replace(text, "exact-seeded", "simulated", 1)
		if err := plan.Suitable(resolve(bad)); !errors.Is(err, plan.ErrUnsuitable) {
			t.Errorf("simulated noise is taken: %v", err)
		}
		if err := plan.Suitable(resolve(text + "judge: {compare: [local]}\n")); !errors.Is(err, plan.ErrUnsuitable) || !strings.Contains(err.Error(), "judge.compare") {
			t.Errorf("a comparison that nobody pays for is taken: %v", err)
		}
		if !plan.Seeded(resolve(text)) {
			t.Error("seeded noise is not recognised")
		}
	}
	// Where nothing is protected, an evaluation is all the same.
	open := "algorithm: {kind: fedavg, mode: sound}\nprivacy: {protects: nothing, noise: simulated}\n"
	if err := plan.Suitable(resolve(open)); err != nil {
		t.Error(err)
	}
	if err := plan.Suitable(resolve(strings.Replace(open, "fedavg", "central", 1))); !errors.Is(err, plan.ErrUnsuitable) || !strings.Contains(err.Error(), "algorithm.kind") {
		t.Errorf("training in one place is taken: %v", err)
	}
	projected := resolve(open)
	projected.Data.Projection = "components"
	projected.Model.Start = "weights"
	people := "data: {kind: pandemic, partition: %s}\nalgorithm: {kind: fedavg, mode: sound}\nprivacy: {noise: exact}\n"
	if err := plan.Suitable(resolve(fmt.Sprintf(people, "region"))); !errors.Is(err, plan.ErrUnsuitable) || !strings.Contains(err.Error(), "data.partition is region") {
		t.Errorf("a population that nobody brings: %v", err)
	}
	if err := plan.Suitable(resolve(fmt.Sprintf(people, "own"))); err != nil {
		t.Errorf("populations of participants' own: %v", err)
	}
	if err := plan.Suitable(resolve(strings.Replace(fmt.Sprintf(people, "own"), "mode: sound", "mode: sound, local: {batch: 64}", 1))); !errors.Is(err, plan.ErrUnsuitable) || !strings.Contains(err.Error(), "algorithm.local.batch is 64") {
		t.Errorf("a plan that asks whether persons fit into so many places: %v", err)
	}
	if err := plan.Suitable(projected); !errors.Is(err, plan.ErrUnsuitable) || !strings.Contains(err.Error(), "data.projection") || !strings.Contains(err.Error(), "model.start is weights") {
		t.Errorf("a projection or a start that participants do not have is taken: %v", err)
	}
	if err := plan.Suitable(resolve(open + "judge: {evaluate: {epsilon: 1}}\n")); !errors.Is(err, plan.ErrUnsuitable) {
		t.Errorf("simulated noise on counts is taken: %v", err)
	}
}

// TestReleasesAgainstPolicy: the least protected part of an event counts.
func TestReleasesAgainstPolicy(t *testing.T) {
	p := plan.Policy{MinimumNoise: 2, MaximumLeak: 1}
	for name, c := range map[string]struct {
		what event.Event
		ok   bool
	}{
		"enough":         {event.Gaussian{Noise: 2}, true},
		"too little":     {event.Gaussian{Noise: 1.9}, false},
		"nested":         {event.Repeated{Times: 3, Of: event.Sampled{Sampling: event.Poisson, Rate: 0.1, Of: event.Gaussian{Noise: 1}}}, false},
		"nested enough":  {event.Repeated{Times: 3, Of: event.Sampled{Sampling: event.Poisson, Rate: 0.1, Of: event.Gaussian{Noise: 3}}}, true},
		"one bad part":   {event.Composed{Parts: []event.Event{event.Gaussian{Noise: 5}, event.Laplace{Scale: 1}}}, false},
		"with selection": {event.Composed{Parts: []event.Event{event.Gaussian{Noise: 5}, event.Selection{Epsilon: 1}}}, true},
		"metric":         {event.MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 1}, true},
		"leaky metric":   {event.MetricLaplace{Dimension: 20, NoiseMultiplier: 5, Radius: 1}, false},
		"leaky slack":    {event.MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 1, Slack: 1}, false},
		"unprotected":    {event.Unprotected{}, false},
	} {
		err := p.AllowsRelease(event.Release{What: c.what})
		if (err == nil) != c.ok || (err != nil && !errors.Is(err, fl.ErrRefused)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A refusal names the numbers.
	for want, what := range map[string]event.Event{
		"wants a noise multiplier of at least 2 (minimum_noise), the release has 1.9":                event.Gaussian{Noise: 1.9},
		"at most 1 at its radius (maximum_leak), this one loses 4; noise 20 instead of 5 would do":   event.MetricLaplace{Dimension: 20, NoiseMultiplier: 5, Radius: 1},
		"at most 1 at its radius (maximum_leak), this one loses 1.4":                                 event.MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 1, Slack: 1},
		"at most 1 at its radius (maximum_leak), this one loses 4.5; noise 40 instead of 5 would do": event.MetricLaplace{Dimension: 20, NoiseMultiplier: 5, Radius: 1, Slack: 0.5},
	} {
		if err := p.AllowsRelease(event.Release{What: what}); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// TestExampleFilesLoad: the files of examples/federation are as good as those of the
// quick start.
func TestExampleFilesLoad(t *testing.T) {
	dir := filepath.Join("..", "..", "examples", "federation")
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	f, err := plan.LoadServeFile(read("serve.yaml"), dir)
	if err != nil {
		t.Fatal(err)
	}
	run, err := plan.Read(f.Run)
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Suitable(run); err != nil {
		t.Error(err)
	}
	if _, err := plan.New(&f, run, "f", nil); err != nil {
		t.Error(err)
	}
	for _, name := range f.Participants {
		if _, err := plan.LoadJoinFile(read(name+".yaml"), dir); err != nil {
			t.Error(err)
		}
	}
	if _, err := plan.LoadPolicy(read("policy.yaml")); err != nil {
		t.Error(err)
	}
}

// TestPlansDoNotSayWhereDataLie: what a server knows of its own disk and databases stays
// there, and the plan's run file can be read all the same.
func TestPlansDoNotSayWhereDataLie(t *testing.T) {
	run, err := plan.Resolve([]byte(`data:
  kind: table
  source: {database: "postgres://reader@secret-host/ward", query: SELECT secret, password_env: SECRET}
  target: y
  task: yes/no
  features: [{name: a, type: number, range: [0, 1]}]
  test: {path: secret.csv}
algorithm: {mode: sound}
privacy: {noise: exact, public_size: 2}
`))
	if err != nil {
		t.Fatal(err)
	}
	file, err := plan.LoadServeFile([]byte("run: run.yaml\nparticipants: [a, b]"), ".")
	if err != nil {
		t.Fatal(err)
	}
	asked, err := plan.New(&file, run, "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	asked.Run = "r"
	text, _, err := asked.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.ToLower(string(text)), "secret") {
		t.Errorf("the plan says where data lie: %s", text)
	}
	if _, again, err := plan.Parse(text); err != nil || again.Data.Test.Path != "own" || again.Data.TestShare != 0 {
		t.Errorf("the plan's data block is %+v (%v)", again.Data, err)
	}
	if asked.Shape != (data.Shape{Features: 1, Classes: 2}) {
		t.Errorf("the shape is %+v", asked.Shape)
	}
}
