package manual

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/invopop/jsonschema"

	_ "github.com/coterie-fl/coterie/all"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/sim"
	"github.com/coterie-fl/coterie/sweep"
)

// schema is what the tests read of a JSON schema.
type schema struct {
	Ref         string            `json:"$ref"`
	Definitions map[string]schema `json:"$defs"`
	Properties  map[string]schema `json:"properties"`
	Items       *schema           `json:"items"`
	Description string            `json:"description"`
}

// UnmarshalJSON takes true for a schema of anything.
func (s *schema) UnmarshalJSON(text []byte) error {
	if string(text) == "true" {
		return nil
	}
	type plain schema
	return json.Unmarshal(text, (*plain)(s))
}

// paths are those of all keys of a schema, with their descriptions. A definition within
// itself is walked once.
func (s schema) paths(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	var walk func(at schema, path string, inside []string)
	walk = func(at schema, path string, inside []string) {
		for at.Items != nil {
			at, path = *at.Items, path+"[]"
		}
		if name, ok := strings.CutPrefix(at.Ref, "#/$defs/"); ok {
			if slices.Contains(inside, name) {
				return
			}
			at, inside = s.Definitions[name], append(slices.Clone(inside), name)
		}
		for key, inner := range at.Properties {
			full := strings.TrimPrefix(path+"."+key, ".")
			out[full] = inner.Description
			walk(inner, full, inside)
		}
	}
	walk(s, "", nil)
	return out
}

func parseSchema(t *testing.T, text []byte) schema {
	t.Helper()
	var s schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// listedKey is how the page writes a key and the first line of what it means, or, of the
// run file's blocks, a heading and a sentence.
var listedKey = regexp.MustCompile("(?m)^(?:- \\*\\*`([^`]+)`\\*\\*: (.+)|## ([a-z]+)\n\n(.+))$")

// listed are the keys of a part of the page, with what they mean.
func listed(t *testing.T, part string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, m := range listedKey.FindAllStringSubmatch(part, -1) {
		key, meaning := m[1]+m[3], m[2]+m[4]
		if out[key] != "" {
			t.Errorf("%s is listed twice", key)
		}
		out[key] = meaning
	}
	return out
}

var written = sync.OnceValues(RunFile)

func runFilePage(t *testing.T) string {
	t.Helper()
	text, err := written()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPageListsEveryKeyOfTheSchema: the published schema's keys and the page's are the
// same ones, and each has a meaning.
func TestPageListsEveryKeyOfTheSchema(t *testing.T) {
	text, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(runFilePage(t), "\n## The ")
	reflector := jsonschema.Reflector{FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true}
	reflector.Namer = func(t reflect.Type) string { // two are called Source
		if t.Name() == "" {
			return ""
		}
		return strings.ReplaceAll(t.String(), ".", "")
	}
	of := func(file any) schema {
		out, err := json.Marshal(reflector.Reflect(file))
		if err != nil {
			t.Fatal(err)
		}
		return parseSchema(t, out)
	}
	sweepFile := of(&sweep.File{})
	grid := sweepFile.Definitions["sweepFile"].Properties
	grid["grid"] = schema{Description: grid["grid"].Description} // its keys are the run file's
	for file, s := range map[string]schema{
		"": parseSchema(t, text), "serve file": of(&plan.ServeFile{}), "join file": of(&plan.JoinFile{}),
		"policy file": of(&plan.Policy{}), "sweep file": sweepFile,
	} {
		part := parts[0]
		if file != "" {
			i := slices.IndexFunc(parts, func(p string) bool { return strings.HasPrefix(p, file+"\n") })
			if i < 0 {
				t.Errorf("the page has no %s", file)
				continue
			}
			part = parts[i]
		}
		want, got := s.paths(t), listed(t, part)
		if len(want) < 5 {
			t.Fatalf("%s: the schema has the keys %v: this test does not read it", file, want)
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if got[key] == "" {
				t.Errorf("%s: the page lacks %s", file, key)
			}
			if len(strings.Fields(want[key])) < 2 {
				t.Errorf("%s: %s has the meaning %q: a sentence is wanted, in its jsonschema_description", file, key, want[key])
			}
		}
		for _, key := range slices.Sorted(maps.Keys(got)) {
			if _, ok := want[key]; !ok {
				t.Errorf("%s: the page has %s, the schema does not", file, key)
			}
		}
	}
}

// TestConditionsNameKeysAndValues: what a key is read with is a key with such a value, and
// what kinds of data say they read is there.
func TestConditionsNameKeysAndValues(t *testing.T) {
	files, err := filesBeside()
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, fileBeside{title: "The run file", keys: config.Keys(config.Run{})})
	for _, f := range files {
		for _, k := range f.keys {
			for _, c := range k.Only {
				known := keyAt(f.keys, c.Path).Values
				if len(c.Values) == 0 || len(c.Values) >= len(known) {
					t.Errorf("%s: %s is read with %s %v, of %v", f.title, k.Path, c.Path, c.Values, known)
				}
				for _, v := range c.Values {
					if !slices.Contains(known, v) {
						t.Errorf("%s: %s is read with %s %s; known: %v", f.title, k.Path, c.Path, v, known)
					}
				}
			}
			if k.Also != "" && keyAt(f.keys, k.Also).Path == "" {
				t.Errorf("%s: %s is also read by %s, which is no key", f.title, k.Path, k.Also)
			}
		}
	}
	for _, kind := range data.Kinds() {
		for _, key := range kind.Keys {
			if keyAt(config.Keys(config.Run{}), "data."+key).Path == "" {
				t.Errorf("%s reads data.%s, which is no key", kind.Name, key)
			}
		}
	}
}

// TestDefaultsAreWhatFilesResolveTo: the sentences about defaults give the default of
// every choice that a key is read with, and none contradicts another.
func TestDefaultsAreWhatFilesResolveTo(t *testing.T) {
	p := &page{run: config.Keys(config.Run{})}
	var err error
	if p.defaults, err = resolve(p.run); err != nil {
		t.Fatal(err)
	}
	differing := 0
	for _, k := range p.run {
		if k.Block || k.Field == nil {
			continue
		}
		want := p.defaultsOf(k)
		if len(want) == 0 {
			t.Errorf("%s is read with no choice at all", k.Path)
		}
		usual, others := rules(want)
		differing += min(1, len(others))
		for c, value := range want {
			said := map[string]bool{}
			for _, r := range others {
				fits := true
				for i, values := range r.with {
					fits = fits && (values == nil || slices.Contains(values, c[i]))
				}
				if fits {
					said[r.becomes] = true
				}
			}
			if len(said) == 0 {
				said[usual] = true
			}
			if len(said) != 1 || !said[value] {
				t.Fatalf("%s with %v: the page says %v, files resolve to %s", k.Path, c, slices.Collect(maps.Keys(said)), value)
			}
		}
	}
	if differing < 20 {
		t.Errorf("%d keys have several defaults: this test does not see them", differing)
	}
}

// TestExamplesLoad: the page's examples are files that the program takes.
func TestExamplesLoad(t *testing.T) {
	for block, text := range examples {
		if _, err := config.Resolve([]byte(text), nil, sim.Checks()...); err != nil {
			t.Errorf("%s: %v", block, err)
		}
		if keyAt(config.Keys(config.Run{}), block).Path == "" {
			t.Errorf("an example of %s, which is no block", block)
		}
	}
	if _, err := plan.LoadServeFile([]byte(serveExample), ""); err != nil {
		t.Error(err)
	}
	if _, err := plan.LoadJoinFile([]byte(joinExample), ""); err != nil {
		t.Error(err)
	}
	if _, err := plan.LoadPolicy([]byte(policyExample)); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"run.yaml": "algorithm: {kind: mr-mtl}\n", "sweep.yaml": sweepExample} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sweep.Load(filepath.Join(dir, "sweep.yaml"), nil); err != nil {
		t.Error(err)
	}
}

// TestLinesStayReadable: running text is wrapped; only tables, whose rows are lines, may
// be longer.
func TestLinesStayReadable(t *testing.T) {
	for i, line := range strings.Split(runFilePage(t), "\n") {
		if !strings.HasPrefix(line, "|") && len([]rune(line)) > 125 {
			t.Errorf("line %d has %d characters: %s", i+1, len([]rune(line)), line)
		}
	}
}

// TestItemsSayWhatTheyShould: some items as a reader of the code would write them.
func TestItemsSayWhatTheyShould(t *testing.T) {
	page := strings.Join(strings.Fields(runFilePage(t)), " ")
	for _, want := range []string{
		"**`name`**: what the run is called; empty: as its method.\\ Text, fits `^[A-Za-z0-9][A-Za-z0-9._-]*$`, at most 64 characters. Default: `algorithm.kind`. -",
		"**`data.users`**: clients that train.\\ Whole number, 1 to 10,000,000. Default `100`. Read with `data.kind` synthetic. -",
		"**`data.height`**: public height of a picture in pixels; others are scaled to it.\\ Whole number, 1 to 4096. Must be given. Read with `data.kind` pictures. -",
		"**`data.target`**: the column that is predicted.\\ Text. No default. Read with `data.kind` table. -",
		"**`algorithm.hypotheses`**: models that the server keeps, one a cluster; without clusters 1.\\ Whole number, 1 to 1000. Default `1`; " +
			"`2` with `algorithm.kind` group-private; `3` with data of silos and `algorithm.kind` ifca; `2` with data other than silos and `algorithm.kind` ifca. " +
			"Read with `algorithm.kind` fedavg, finetune, group-private, ifca, local or mr-mtl, with `privacy.protects` other than client or node. -",
		"Default `200`; `500` with `data.kind` adni; `10` with `data.kind` agnews, cifar10, fashion-mnist or mnist; `1` with `data.kind` pandemic; `100` with `data.kind` table; `4` with `data.kind` text or wikitext; `400` with `data.kind` vehicle; " +
			"`500` with data other than silos and `algorithm.mode` paper; `85` with data other than silos and `algorithm.mode` sound. Read with `algorithm.kind` other than pca or pca-local. - **`algorithm.clients_per_round`**",
		"Read with `privacy.protects` other than nothing or update; and by `judge.evaluate` always. -",
		"**`privacy.ceiling`**: a client declines a release that would take its total above this; null: none.\\ Number, or `null`, more than 0. Default `null`. Read with `privacy.protects` update. -",
		// Only choices that read a key count for its default; data.standardise is not read by all.
		"**`privacy.radius`**: public radius C that every update is clipped to.\\ Number, 0 or more. Default `0.3`. Read with `algorithm.mode` sound, with `privacy.protects` update. -",
		"as a share of the silo's whole.\\ Number, more than 0, less than 1. Default `0.1`. Read with `algorithm.mode` sound, with `privacy.protects` example, with `data.standardise` paid. -",
		"**`run`**: the run file, seen from the serve file's folder.\\ Text. Must be given. -",
		"**`limits.megabytes`**: memory that the server tries to stay within, without mapped files.\\ Whole number, 64 to 1,000,000,000. Default `1024`. -",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks: %s", want)
		}
	}
}
