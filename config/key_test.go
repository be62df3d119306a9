package config_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// TestSchemaSaysWhatKeysAreReadWith: editors show who reads a key, from the registries
// and the tags, in one sentence.
func TestSchemaSaysWhatKeysAreReadWith(t *testing.T) {
	text, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Definitions map[string]struct {
			Properties map[string]struct{ Description string }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[[2]string]string{
		{"Algorithm", "lambda"}:        " (read with kind ditto, mocha, mr-mtl)",
		{"Privacy", "radius"}:          " (read with algorithm.mode sound; protects update)",
		{"Privacy", "delta"}:           " (read with protects client, example, node; or judge.evaluate)",
		{"Data", "year"}:               " (read with kind hospital)",
		{"Distribution", "low"}:        " (read with kind uniform)",
		{"Column", "range"}:            " (read with type number)",
		{"Layer", "slope"}:             " (read with kind leaky-relu)",
		{"Local", "focal_gamma"}:       " (read with loss focal)",
		{"Selection", "bound"}:         " (read with rule private; score loss; algorithm.kind fedavg, finetune, group-private, ifca, local, mr-mtl; privacy.protects example)",
		{"Algorithm", "rounds"}:        " (read with kind central, ditto, fedavg, finetune, group-private, ifca, local, mocha, mr-mtl)",
		{"Execution", "workers"}:       "",
		{"Data", "test_share"}:         " (read with kind adni, adult, compas, gleam, hospital, pictures, school, synthetic, table, text, vehicle, wikitext, writers)",
		{"Source", "path"}:             "",
		{"Algorithm", "local"}:         " (read with kind central, ditto, fedavg, finetune, group-private, ifca, local, mocha, mr-mtl)",
		{"SiloTarget", "epsilon"}:      "",
		{"Data", "validation_users"}:   " (read with judge.by clients, test; kind synthetic)",
		{"Privacy", "moments_share"}:   " (read with algorithm.mode sound; data.standardise paid; protects example)",
		{"Data", "sensitive"}:          " (read with kind table)",
		{"Algorithm", "idle_rounds"}:   " (read with empty relocate; kind fedavg, finetune, group-private, ifca, local, mr-mtl; privacy.protects example, nothing, update)",
		{"Stop", "validation_clients"}: " (read with judge.by clients; algorithm.kind central, fedavg, group-private, ifca, pca)",
	} {
		got := schema.Definitions[at[0]].Properties[at[1]].Description
		if i := strings.Index(got, " (read with"); got == "" || i < 0 != (want == "") || i >= 0 && got[i:] != want {
			t.Errorf("%s.%s is described as %q, want it to end with %q", at[0], at[1], got, want)
		}
	}
}

// TestKeysOfAFile: paths, types and ranges, and how to get at a value.
func TestKeysOfAFile(t *testing.T) {
	type inner struct {
		Name string  `yaml:"name" jsonschema:"enum=a,enum=b" jsonschema_description:"which"`
		More float64 `yaml:"more" jsonschema:"exclusiveMinimum=0" only:".name=a"`
		Self []inner `yaml:"self"`
	}
	type file struct {
		Plain int     `yaml:"plain,omitempty" jsonschema:"minimum=0,maximum=9"`
		Block inner   `yaml:"block" only:"plain=1|2" also:"many"`
		Many  []inner `yaml:"many"`
		Maybe *inner  `yaml:"maybe"`
		Other string  // no key
	}
	keys := config.Keys(file{})
	var paths []string
	for _, k := range keys {
		paths = append(paths, k.Path)
	}
	want := []string{
		"plain", "block", "block.name", "block.more", "block.self", "many", "many[].name", "many[].more", "many[].self",
		"maybe", "maybe.name", "maybe.more", "maybe.self",
	}
	if !slices.Equal(paths, want) {
		t.Fatalf("keys %v, want %v", paths, want)
	}
	at := func(path string) config.Key { return keys[slices.Index(paths, path)] }
	if k := at("plain"); k.Type != "whole number" || k.Allowed != "0 to 9" || !k.Zero || k.Block || !slices.Equal(k.Field, []int{0}) {
		t.Errorf("%+v", k)
	}
	k := at("block.more")
	if k.Allowed != "more than 0" || k.Zero || !slices.Equal(k.Field, []int{1, 1}) || len(k.Only) != 2 ||
		k.Only[0].Path != "plain" || !slices.Equal(k.Only[0].Values, []string{"1", "2"}) || k.Only[1].Path != "block.name" {
		t.Errorf("%+v", k)
	}
	if k := at("block"); !k.Block || k.Also != "many" || k.Type != "block" {
		t.Errorf("%+v", k)
	}
	if k := at("many[].name"); k.Field != nil || !slices.Equal(k.Values, []string{"a", "b"}) || k.Meaning != "which" || len(k.Only) != 0 {
		t.Errorf("%+v", k)
	}
	if k := at("maybe.name"); k.Field != nil {
		t.Errorf("%+v: nobody may follow a block that may be missing", k)
	}
}
