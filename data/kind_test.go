package data

import (
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// TestKeysOfOtherKindsAreFaults, with their place; but not those that a resolved file
// spells out with their defaults.
func TestKeysOfOtherKindsAreFaults(t *testing.T) {
	for text, path := range map[string]string{
		"data: {kind: hospital, users: 7}":              "data.users",
		"data: {kind: school, mask: 0.1}":               "data.mask",
		"data: {kind: synthetic, train_limit: 3}":       "data.train_limit",
		"data: {kind: adult, train_share: 0.5}":         "data.train_share",
		"data: {kind: writers, partition: sex}":         "data.partition",
		"data: {kind: vehicle, standardise: none}":      "",
		"data: {kind: compas, train_share: 0.7}":        "",
		"data: {kind: rotated-mnist, silos: 8}":         "",
		"data: {kind: synthetic, users: 5, samples: 3}": "",
	} {
		_, err := config.Resolve([]byte(text), nil, Check)
		if path == "" && err != nil || path != "" && (err == nil || !strings.Contains(err.Error(), path+": is set, but data of the kind")) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, kind := range []string{"hospital", "school", "rotated-mnist", "writers", "adult"} {
		run, err := config.Resolve([]byte("data: {kind: "+kind+"}"), nil, Check)
		if err != nil {
			t.Fatal(err)
		}
		text, err := run.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := config.Resolve(text, nil, Check); err != nil {
			t.Errorf("a run of %s cannot read its own file again: %v", kind, err)
		}
	}
}

// features is how many values a row of a block has.
func features(d config.Data) int {
	s, _ := ShapeOf(d)
	return s.Features
}
