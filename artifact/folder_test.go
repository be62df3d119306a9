package artifact

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// wards is a table's data block: inputs age, bmi, "bmi missing", ward=A, ward=B, smoker.
func wards() config.Data {
	return config.Data{
		Kind: "table", Target: "back", Task: data.TaskYesNo, Standardise: "none",
		Features: []config.Column{
			{Name: "age", Type: "number", Range: []float64{0, 100}}, {Name: "bmi", Type: "number", Range: []float64{10, 50}, Missing: "indicator"},
			{Name: "ward", Type: "category", Values: []config.Cell{"A", "B"}}, {Name: "smoker", Type: "yes/no"},
		},
	}
}

func vector(name string, values ...float64) model.Tensor[float64] {
	return model.Tensor[float64]{Name: name, Shape: []int{len(values)}, Values: values}
}

// theta has a parameter for each of the inputs of wards, and an intercept.
func theta(first float64) []float64 { return []float64{first, 0.5, -1, 2, -2, 0.25, -0.75} }

// describe is the description of a run on a table, by a method.
func describe(t *testing.T, method string, change func(run *config.Run)) Description {
	t.Helper()
	run := config.Run{Name: "test", Data: wards(), Model: config.Model{Kind: "linear", Intercept: true}}
	run.Algorithm.Kind, run.Algorithm.Local.Loss, run.Privacy.Protects = method, "cross-entropy", "nothing"
	if change != nil {
		change(&run)
	}
	encoding, err := EncodingOf(run)
	if err != nil {
		t.Fatal(err)
	}
	shape := data.Shape{Features: 6}
	if encoding != nil {
		shape = encoding.Shape()
	}
	d, err := Describe(run, shape, encoding, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// folder writes a folder and opens it.
func folder(t *testing.T, d Description, tensors ...model.Tensor[float64]) *Model {
	t.Helper()
	dir := t.TempDir()
	if _, err := Write(dir, d, tensors, nil); err != nil {
		t.Fatal(err)
	}
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// meanFolder is what mr-mtl leaves: the mean, and the models of north and south.
func meanFolder(t *testing.T, change func(run *config.Run)) *Model {
	d := describe(t, "mr-mtl", change)
	d.Newcomer, d.Models = RoleMean, []Entry{{File: ModelFile, Tensor: "hypothesis.0", Role: RoleMean}} // methods are not registered here
	d.Client(0, "north", nil, false)
	d.Client(1, "south", nil, false)
	return folder(t, d, vector("hypothesis.0", theta(0)...), vector("client.0", theta(3)...), vector("client.1", theta(-3)...))
}

// near says that two numbers differ by rounding at most.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(1, math.Abs(b)) }

func TestOpenedAsWritten(t *testing.T) {
	m := meanFolder(t, nil)
	text, err := os.ReadFile(filepath.Join(m.Path, DescriptionFile))
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"format", "name", "task", "encoding", "classes", "shape", "model", "loss", "precision", "standardise", "method", "protects", "privacy", "models", "newcomer", "model_sha256", "kernel", "version"} {
		if _, ok := keys[k]; !ok {
			t.Errorf("the description has no %s", k)
		}
	}
	if keys["format"] != "coterie model 1" || keys["task"] != "yes/no" || m.Outputs() != 2 {
		t.Errorf("%v, %v, %d outputs", keys["format"], keys["task"], m.Outputs())
	}
	file, err := os.ReadFile(filepath.Join(m.Path, ModelFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"inputs":"[\"age\",\"bmi\",\"bmi missing\",\"ward=A\",\"ward=B\",\"smoker\"]"`, `"classes":"[\"no\",\"yes\"]"`, `"target":"back"`, `"intercept":"true"`, `"model_sha256":"` + m.ModelSHA256} {
		if !strings.Contains(string(file), want) {
			t.Errorf("the tensors' metadata have no %s", want)
		}
	}
}

// TestBrokenFoldersAreRefused: every way in which a folder can be wrong is told.
func TestBrokenFoldersAreRefused(t *testing.T) {
	good := meanFolder(t, nil)
	other := meanFolder(t, nil)
	swap := func(old, new string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, DescriptionFile)
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), old) {
				t.Fatalf("%v: no %s", err, old)
			}
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, new)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(name, text string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(names ...string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	both := func(a, b func(t *testing.T, dir string)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { a(t, dir); b(t, dir) }
	}
	cases := map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}{
		"nothing":            {remove(DescriptionFile, ModelFile), "coterie run FILE --out FOLDER makes one"},
		"older":              {both(write("result.json", "{}"), remove(DescriptionFile)), "train again with this version"},
		"unfinished":         {both(both(write("run.yaml", ""), write("checkpoint", "")), remove(DescriptionFile, ModelFile)), "coterie run --resume"},
		"no JSON":            {write(DescriptionFile, "{"), "cannot be read"},
		"another format":     {swap("coterie model 1", "coterie model 2"), "use the program that wrote it"},
		"another model":      {swap(`"kind": "linear"`, `"kind": "network"`), "the network ends with 6 values"},
		"another loss":       {swap("cross-entropy", "sorrow"), `loss "sorrow" is not known`},
		"another order":      {swap(`"ward=A",`, `"ward=B2",`), "make the inputs"},
		"categories swapped": {swap("\"A\",\n     \"B\"", "\"B\",\n     \"A\""), "make the inputs"},
		"classes swapped":    {swap("\"classes\": [\n  \"no\",\n  \"yes\"", "\"classes\": [\n  \"yes\",\n  \"no\""), "its classes are"},
		"another shape":      {swap(`"features": 6`, `"features": 7`), "its shape says 7"},
		"a missing tensor":   {swap(`"client.1"`, `"client.9"`), `the tensor "client.9"`},
		"a client twice":     {swap(`"south"`, `"north"`), "two models"},
		"no tensors":         {remove(ModelFile), "the models are missing"},
		"broken tensors":     {write(ModelFile, "abc"), "safetensors"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range []string{DescriptionFile, ModelFile} {
				text, err := os.ReadFile(filepath.Join(good.Path, file))
				if err != nil {
					t.Fatal(err)
				}
				write(file, string(text))(t, dir)
			}
			c.spoil(t, dir)
			if _, err := Open(dir); !errors.Is(err, ErrFolder) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q in it", err, c.want)
			}
		})
	}
	changed, err := os.ReadFile(filepath.Join(other.Path, ModelFile))
	if err != nil {
		t.Fatal(err)
	}
	changed[len(changed)-1] ^= 1
	write(ModelFile, string(changed))(t, other.Path)
	if _, err := Open(other.Path); !errors.Is(err, ErrFolder) || !strings.Contains(err.Error(), "do not belong together") {
		t.Errorf("one changed bit: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "nowhere")); !errors.Is(err, ErrFolder) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

// TestPersonalModelIsItsOwnersAlone: the file and what describes it.
func TestPersonalModelIsItsOwnersAlone(t *testing.T) {
	dir := t.TempDir()
	d := describe(t, "mr-mtl", func(run *config.Run) { run.Data.Standardise = "paid" })
	d.Newcomer, d.Models = RoleMean, []Entry{{File: ModelFile, Tensor: "hypothesis.0", Role: RoleMean}}
	d.Personal("north", true)
	scale := []float64{2, 1, 1, 1, 1, 1}
	if _, err := Write(dir, d, []model.Tensor[float64]{vector("hypothesis.0", theta(0)...)},
		[]model.Tensor[float64]{vector("personal.0", theta(3)...), vector("centre", 0.5, 0, 0, 0, 0, 0), vector("scale", scale...)}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{PersonalFile, DescriptionFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v (%v)", name, info.Mode(), err)
		}
	}
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var p [2]float64
	c, err := m.Predict(p[:], []float64{1, 0, 0, 0, 0, 0}, "") // the folder's only client
	if want := 1 / (1 + math.Exp(-(3*(1-0.5)/2 - 0.75))); err != nil || c.Client != "north" || !near(p[1], want) {
		t.Errorf("%v by %v (%v), want %v", p, &c, err, want)
	}
	// A stranger gets the mean, scaled by what the folder has.
	if c, err = m.Predict(p[:], []float64{1, 0, 0, 0, 0, 0}, "east"); err != nil || c.Role != RoleMean || !near(p[1], 1/(1+math.Exp(0.75))) {
		t.Errorf("%v by %v (%v)", p, &c, err)
	}
	changed, err := os.ReadFile(filepath.Join(dir, PersonalFile))
	if err != nil {
		t.Fatal(err)
	}
	changed[len(changed)-1] ^= 1
	if err := os.WriteFile(filepath.Join(dir, PersonalFile), changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrFolder) {
		t.Errorf("a changed personal model: %v", err)
	}
}
