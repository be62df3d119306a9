package config_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// TestDefaultsStay: what files resolve to that name only data, method and mode is what
// it was, byte for byte; run folders and model hashes depend on it. Every line of the
// list is data, method ("-": none), mode and the SHA-256 of the resolved file.
func TestDefaultsStay(t *testing.T) {
	list, err := os.Open("testdata/defaults.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	listed := map[string]bool{}
	for lines := bufio.NewScanner(list); lines.Scan(); {
		word := strings.Fields(lines.Text())
		kind, method, mode, want := word[0], word[1], word[2], word[3]
		listed[kind] = true
		text := fmt.Sprintf("data: {kind: %s}\nalgorithm: {mode: %s}\n", kind, mode)
		if method == "-" {
			method = ""
		} else {
			text = fmt.Sprintf("data: {kind: %s}\nalgorithm: {kind: %s, mode: %s}\n", kind, method, mode)
		}
		f, err := config.Load([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		resolved := mustEncode(t, f.Run)
		if got := fmt.Sprintf("%x", sha256.Sum256([]byte(resolved))); got != want {
			t.Errorf("%s resolves to another file:\n%s", lines.Text(), resolved)
		}
		run := config.Default(kind, method, mode)
		run.Name = run.Algorithm.Kind
		if mustEncode(t, run) != resolved {
			t.Errorf("%s: the defaults are not what a file resolves to", lines.Text())
		}
	}
	for _, kind := range config.DataKinds() {
		if !listed[kind] {
			t.Errorf("%s is not on the list", kind)
		}
	}
}

// TestKindsOfDataComeFromTheRegistry: the loader, its suggestion and the schema know
// what is registered, and nothing else.
func TestKindsOfDataComeFromTheRegistry(t *testing.T) {
	_, err := config.Load([]byte("data: {kind: schol}\n"))
	if err == nil || !strings.Contains(err.Error(), `did you mean "school"`) || !strings.Contains(err.Error(), "allowed: "+strings.Join(config.DataKinds(), ", ")) {
		t.Errorf("an unknown kind: %v", err)
	}
	text, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Definitions struct {
			Data struct {
				Properties struct {
					Kind struct{ Enum []string }
				}
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	if got := schema.Definitions.Data.Properties.Kind.Enum; !slices.Equal(got, config.DataKinds()) {
		t.Errorf("the schema knows %v, the registry %v", got, config.DataKinds())
	}
	for _, name := range []string{"", "school"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a second kind %q is registered", name)
				}
			}()
			config.RegisterData(config.DataKind{Name: name})
		}()
	}
}
