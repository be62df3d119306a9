package data_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	_ "github.com/coterie-fl/coterie/data/contacts"
	_ "github.com/coterie-fl/coterie/data/source"
)

// TestKindsAreThoseOfTheRunFile: every kind that run files may name is registered and has
// its parts, and its keys are keys of the data block.
func TestKindsAreThoseOfTheRunFile(t *testing.T) {
	block := reflect.TypeFor[config.Data]()
	named := config.DataKinds()
	var keys []string
	for i := range block.NumField() {
		key, _, _ := strings.Cut(block.Field(i).Tag.Get("yaml"), ",")
		keys = append(keys, key)
	}
	read := map[string]bool{"kind": true, "test_share": true} // all kinds do
	for _, name := range named {
		k, err := data.KindOf(config.Data{Kind: name})
		if err != nil || k.Load == nil || k.Shape == nil || k.Words == nil {
			t.Errorf("%s: %+v, %v", name, k, err)
			continue
		}
		for _, key := range k.Keys {
			read[key] = true
			if !slices.Contains(keys, key) {
				t.Errorf("%s reads %q, which is no key", name, key)
			}
		}
	}
	for _, key := range keys {
		if !read[key] {
			t.Errorf("nobody reads data.%s", key)
		}
	}
	if _, err := data.KindOf(config.Data{Kind: "magic"}); err == nil || !strings.Contains(err.Error(), "allowed: adni, adult") {
		t.Error(err)
	}
}
