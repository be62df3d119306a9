package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	_ "github.com/coterie-fl/coterie/all" // registers data sets, methods and protections
	"github.com/coterie-fl/coterie/config"
)

func TestFaultsAreAllFoundAtOnce(t *testing.T) {
	_, err := config.Load([]byte(`seed: -1
algorithm:
  kind: ifca
  hypothess: 2
  rounds: 0
  clients_per_round: seven
  local: {step: 0, batch: 1.5}
  stop: [1]
privacy:
  noise_multiplier: -1
  radius: .nan
  ceiling: .inf
data:
  parameters: [[1, 2], [3, a]]
  users:
colour: red
`))
	var faults config.Faults
	if !errors.As(err, &faults) || !errors.Is(err, config.ErrInvalid) {
		t.Fatalf("not a list of faults: %v", err)
	}
	want := []struct {
		path         string
		line, column int
		part         string
	}{
		{"seed", 1, 7, "a whole number from 0 expected"},
		{"algorithm.hypothess", 4, 3, `did you mean "hypotheses"`},
		{"algorithm.rounds", 5, 11, "0 is out of range; allowed: 1 to 100000000"},
		{"algorithm.clients_per_round", 6, 22, `a whole number expected, found the text "seven"`},
		{"algorithm.local.step", 7, 17, "allowed: more than 0"},
		{"algorithm.local.batch", 7, 27, "a whole number expected"},
		{"algorithm.stop", 8, 9, "a block of keys expected, found a list"},
		{"privacy.noise_multiplier", 10, 21, "-1 is out of range; allowed: 0 or more"},
		{"privacy.radius", 11, 11, "is not a number"},
		{"privacy.ceiling", 12, 12, "is infinite"},
		{"data.parameters.1.1", 14, 28, "a number expected"},
		{"data.users", 15, 9, "has no value"},
		{"colour", 16, 1, "unknown key"},
	}
	if len(faults) != len(want) {
		t.Fatalf("%d faults, want %d:\n%v", len(faults), len(want), err)
	}
	for i, w := range want {
		f := faults[i]
		if f.Path != w.path || f.Line != w.line || f.Column != w.column || !strings.Contains(f.Message, w.part) {
			t.Errorf("fault %d is %s (%d:%d), want %s at %d:%d with %q", i, f, f.Line, f.Column, w.path, w.line, w.column, w.part)
		}
	}
}

func TestBrokenFiles(t *testing.T) {
	for name, text := range map[string]string{
		"not YAML":       "a: [",
		"a scalar":       "hello",
		"a list":         "- 1\n- 2\n",
		"two documents":  "seed: 1\n---\nseed: 2\n",
		"twice the key":  "seed: 1\nseed: 2\n",
		"an anchor":      "name: &x foo\n",
		"an alias":       "name: foo\nseed: *x\n",
		"a tag":          "name: !!str foo\n",
		"a merge":        "data: &d {users: 5}\nmodel:\n  <<: *d\n",
		"a bad name":     "name: ../../etc\n",
		"a long name":    "name: " + strings.Repeat("a", 65) + "\n",
		"number as name": "name: 12\n",
		"too large":      strings.Repeat("#", config.MaxBytes+1),
		"unknown enum":   "algorithm: {kind: fedavgg}\n",
		"modes differ":   "algorithm: {mode: paper}\nprivacy: {accounting: sound}\n",
		"nested value":   "algorithm: {rounds: {a: 1}}\n",
		"text as bool":   "model: {intercept: maybe}\n",
		"huge integer":   "algorithm: {rounds: 99999999999999999999999}\n",
		"quoted number":  "algorithm: {local: {step: \"0.1\"}}\n",
	} {
		if _, err := config.Load([]byte(text)); !errors.Is(err, config.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSettings(t *testing.T) {
	f, err := config.Load([]byte("algorithm:\n  rounds: 10\n"),
		config.Setting{"algorithm.rounds", "20"}, config.Setting{"privacy.ceiling", "1e-3"}, config.Setting{"data.shares", "[0.8, 0.2]"})
	if err != nil {
		t.Fatal(err)
	}
	if f.Run.Algorithm.Rounds != 20 || *f.Run.Privacy.Ceiling != 1e-3 || !reflect.DeepEqual(f.Run.Data.Shares, []float64{0.8, 0.2}) {
		t.Errorf("%+v", f.Run)
	}
	_, err = config.Load(nil, config.Setting{"algorithm.hypotheses", "0"}, config.Setting{"algorithm.sped", "1"}, config.Setting{"seed.x", "1"}, config.Setting{"name", "["})
	var faults config.Faults
	if !errors.As(err, &faults) || len(faults) != 4 {
		t.Fatalf("want 4 faults: %v", err)
	}
	for _, fault := range faults {
		if fault.Line != 0 || !strings.HasPrefix(fault.String(), "command line: ") {
			t.Errorf("%s does not say that it comes from the command line", fault)
		}
	}
	// A setting mends what the file had wrong.
	if _, err := config.Resolve([]byte("algorithm:\n  rounds: 5\nseed: 3\n"), []string{"seed=4"}); err != nil {
		t.Error(err)
	}
	if _, err := config.Resolve(nil, []string{"seed"}); !errors.Is(err, config.ErrInvalid) {
		t.Errorf("--set without a value: %v", err)
	}
}

func TestSoundModeByEitherName(t *testing.T) {
	for _, set := range []config.Setting{{"algorithm.mode", "sound"}, {"privacy.accounting", "sound"}} {
		f, err := config.Load(nil, set)
		if err != nil {
			t.Fatal(err)
		}
		r := f.Run
		if r.Algorithm.Mode != "sound" || r.Privacy.Accounting != "sound" || r.Algorithm.Stop.Patience != 0 ||
			r.Algorithm.Stop.Return != "last" || r.Privacy.Radius == 0 {
			t.Errorf("--set %s=sound gives %+v", set.Path, r)
		}
	}
}

func TestChecksAreLocatedAndNotRepeated(t *testing.T) {
	check := func(r config.Run) config.Faults {
		var c config.Checker
		c.Require(r.Algorithm.Rounds > 0, "algorithm.rounds", "checked again")
		c.Require(false, "algorithm.local.step", "elsewhere")
		c.Require(false, "privacy.radius", "not in the file")
		return c.Faults()
	}
	_, err := config.Resolve([]byte("algorithm:\n  rounds: 0\n  local:\n    step: 1\n"), nil, check)
	var faults config.Faults
	if !errors.As(err, &faults) || len(faults) != 3 {
		t.Fatalf("want 3 faults: %v", err)
	}
	for _, f := range faults {
		switch f.Path {
		case "algorithm.rounds":
			if f.Message == "checked again" {
				t.Error("a value that was refused already is reported twice")
			}
		case "algorithm.local.step":
			if f.Line != 4 || f.Column != 11 {
				t.Errorf("located at %d:%d", f.Line, f.Column)
			}
		}
	}
}

func TestResolvedFileLoadsBackToTheSame(t *testing.T) {
	for _, kind := range []string{"fedavg", "ifca", "group-private"} {
		for _, mode := range []string{"paper", "sound"} {
			run := config.Default("synthetic", kind, mode)
			run.Name = kind
			run.Data.Parameters = [][]float64{{1.5, -2}, {1e-9, 3}}
			ceiling := 2.4
			run.Privacy.Ceiling = &ceiling
			text, err := run.Encode()
			if err != nil {
				t.Fatal(err)
			}
			f, err := config.Load(text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			again, err := f.Run.Encode()
			if err != nil || string(again) != string(text) {
				t.Errorf("%s/%s changes when read back:\n%s\n%s", kind, mode, text, again)
			}
		}
	}
}

func TestHashLeavesOutWhatChangesNoResult(t *testing.T) {
	base := config.Default("synthetic", "ifca", "paper")
	hash := func(r config.Run) string {
		h, err := r.Hash()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	same := base
	same.Name, same.Seed, same.Run.Workers = "other", 9, 8
	if hash(same) != hash(base) {
		t.Error("name, seed or workers changed the hash")
	}
	other := base
	other.Privacy.NoiseMultiplier = 1
	if hash(other) == hash(base) {
		t.Error("the noise did not change the hash")
	}
}

func TestSchemaAcceptsWhatTheLoaderAccepts(t *testing.T) {
	text, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("run.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("run.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(text []byte) error {
		var v any
		if err := yaml.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		plain, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		v, err = jsonschema.UnmarshalJSON(strings.NewReader(string(plain)))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(v)
	}
	files, _ := filepath.Glob("../examples/*.yaml")
	if len(files) < 3 {
		t.Fatalf("examples are missing: %v", files)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := config.Load(text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		resolved, _ := f.Run.Encode()
		if err := errors.Join(check(text), check(resolved)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	cells := []byte("data: {kind: table, classes: [0, 1.50, true, no, x]}")
	f, err := config.Load(cells) // values of a table, as they are written
	if err != nil || fmt.Sprint(f.Run.Data.Classes) != "[0 1.50 true no x]" {
		t.Fatalf("cells are read as %v (%v)", f.Run.Data.Classes, err)
	}
	resolved, _ := f.Run.Encode()
	again, err := config.Load(resolved)
	if err != nil || !slices.Equal(again.Run.Data.Classes, f.Run.Data.Classes) {
		t.Errorf("written and read again they are %v (%v)", again.Run.Data.Classes, err)
	}
	if err := errors.Join(check(cells), check(resolved)); err != nil {
		t.Errorf("cells: %v", err)
	}
	for _, bad := range []string{"colour: red", "data: {classes: [[a]]}", "algorithm: {rounds: 0}", "algorithm: {kind: x}", "privacy: {noise_multiplier: -1}", "name: a/b"} {
		if check([]byte(bad)) == nil {
			t.Errorf("the schema accepts %q", bad)
		}
		if _, err := config.Load([]byte(bad)); err == nil {
			t.Errorf("the loader accepts %q", bad)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte("seed: 1\nalgorithm: {kind: ifca, local: {step: 1e-3}}\n"))
	f.Add([]byte("data: {parameters: [[1, 2], [3, 4]]}\nprivacy: {ceiling: null}\n"))
	f.Add([]byte("a: &x [*x]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := config.Load(text)
		if err != nil {
			if !errors.Is(err, config.ErrInvalid) {
				t.Fatalf("an error that is not a list of faults: %v", err)
			}
			return
		}
		if _, err := file.Run.Encode(); err != nil {
			t.Fatal(err)
		}
	})
}
