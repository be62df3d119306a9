package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/invopop/jsonschema"
)

// Encode writes the resolved run file: every default spelled out.
func (r Run) Encode() ([]byte, error) {
	out, err := yaml.MarshalWithOptions(r, yaml.IndentSequence(true), yaml.CustomMarshaler(encodeFloat))
	if err != nil {
		return nil, fmt.Errorf("write the run file: %w", err)
	}
	return out, nil
}

// encodeFloat writes 1.0e-06 and not 1e-06, which some YAML readers take for text.
func encodeFloat(f float64) ([]byte, error) {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	mantissa, exponent, scientific := strings.Cut(s, "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if scientific {
		mantissa += "e" + exponent
	}
	return []byte(mantissa), nil
}

// Hash names what is computed: the name, the seed and the settings of speed do
// not enter it.
func (r Run) Hash() (string, error) {
	r.Name, r.Seed, r.Run = "", 0, Execution{}
	text, err := r.Encode()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Schema is the JSON schema of a run file, for editors. Descriptions say what a key is
// read with.
func Schema() ([]byte, error) {
	reflector := jsonschema.Reflector{FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true}
	schema := reflector.Reflect(&Run{})
	schema.ID = ""
	schema.Title = "Coterie run file"
	for _, at := range [][3]string{{"Data", "kind", "data"}, {"Algorithm", "kind", "method"}, {"Privacy", "protects", "protection"}, {"Layer", "kind", "layer"}} {
		if key, ok := schema.Definitions[at[0]].Properties.Get(at[1]); ok {
			for _, name := range registered(at[2]) {
				key.Enum = append(key.Enum, name)
			}
		}
	}
	for _, k := range Keys(Run{}) {
		if key, ok := schema.Definitions[k.block].Properties.Get(k.name); ok && !strings.Contains(key.Description, readWith) {
			key.Description += k.readWith()
		}
	}
	out, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, out, "", "  "); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	pretty.WriteByte('\n')
	return pretty.Bytes(), nil
}
