package lab

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
)

//go:embed expected/*.json
var expectedFiles embed.FS

// Expected reads a file of the papers' figures, strictly.
func Expected(name string, into any) error {
	text, err := expectedFiles.ReadFile("expected/" + name)
	if err != nil {
		return fmt.Errorf("expected figures: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("expected figures, %s: %w", name, err)
	}
	return nil
}
