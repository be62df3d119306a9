package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ErrFormat says that bytes are not the JSON of a release or an event.
var ErrFormat = errors.New("not a privacy event")

// maxDepth bounds nesting, so that hostile input cannot exhaust the stack.
const maxDepth = 16

// releaseKeys are the keys of a Release, all required.
var releaseKeys = []string{"unit", "relation", "claim", "trust", "what"}

// MarshalJSON writes the release; it refuses one that Validate refuses.
func (r Release) MarshalJSON() ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Unit     Unit     `json:"unit"`
		Relation Relation `json:"relation"`
		Claim    Claim    `json:"claim"`
		Trust    Trust    `json:"trust"`
		What     Event    `json:"what"`
	}{r.Unit, r.Relation, r.Claim, r.Trust, r.What})
}

// UnmarshalJSON reads what MarshalJSON wrote. It refuses unknown, repeated and
// missing keys, unknown kinds, trailing data, values out of range and nesting
// that is too deep, and leaves r as it was when it does.
func (r *Release) UnmarshalJSON(data []byte) error {
	fields, err := readObject(data)
	if err != nil {
		return fmt.Errorf("release: %w", err)
	}
	if err := onlyKeys(fields, releaseKeys); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	var read Release
	for key, into := range map[string]any{
		"unit": &read.Unit, "relation": &read.Relation, "claim": &read.Claim, "trust": &read.Trust,
	} {
		if err := readField(fields, key, into); err != nil {
			return fmt.Errorf("release: %w", err)
		}
	}
	what, ok := fields["what"]
	if !ok {
		return fmt.Errorf("release: %w: key %q is missing", ErrFormat, "what")
	}
	if read.What, err = unmarshal(what, 0); err != nil {
		return fmt.Errorf("release: what: %w", err)
	}
	if err := read.Validate(); err != nil {
		return err
	}
	*r = read
	return nil
}

// Marshal writes one event as {"kind": ..., ...}; it refuses one that Validate
// refuses.
func Marshal(e Event) ([]byte, error) {
	if err := Validate(e); err != nil {
		return nil, err
	}
	return json.Marshal(e)
}

func unmarshal(data []byte, depth int) (Event, error) {
	if depth >= maxDepth {
		return nil, fmt.Errorf("%w: nested more than %d deep", ErrFormat, maxDepth)
	}
	fields, err := readObject(data)
	if err != nil {
		return nil, err
	}
	var kind string
	if err := readField(fields, "kind", &kind); err != nil {
		return nil, err
	}
	return unmarshalKind(kind, data, fields, depth)
}

func unmarshalKind(kind string, data []byte, fields map[string]json.RawMessage, depth int) (Event, error) {
	switch kind {
	case Gaussian{}.kind():
		return readLeaf[Gaussian](data, fields, "noise")
	case Laplace{}.kind():
		return readLeaf[Laplace](data, fields, "scale")
	case DiscreteGaussian{}.kind():
		return readLeaf[DiscreteGaussian](data, fields, "sigma", "bound")
	case MetricLaplace{}.kind():
		keys := []string{"dimension", "noise_multiplier", "radius"}
		for _, optional := range []string{"slack", "spread"} {
			if _, ok := fields[optional]; ok {
				keys = append(keys, optional)
			}
		}
		return readLeaf[MetricLaplace](data, fields, keys...)
	case Selection{}.kind():
		return readLeaf[Selection](data, fields, "mechanism", "epsilon")
	case NodeGaussian{}.kind():
		return readLeaf[NodeGaussian](data, fields, "nodes", "occurrences", "batch", "noise", "formula")
	case NodeSum{}.kind():
		return readLeaf[NodeSum](data, fields, "examples", "noise")
	case NodeThinned{}.kind():
		return readLeaf[NodeThinned](data, fields, "degree", "keep", "noise")
	case Unprotected{}.kind():
		return readLeaf[Unprotected](data, fields)
	case Sampled{}.kind():
		e, of, err := readAround[Sampled](fields, depth, "sampling", "rate", "batch", "examples")
		e.Of = of
		return e, err
	case Repeated{}.kind():
		e, of, err := readAround[Repeated](fields, depth, "times")
		e.Of = of
		return e, err
	case Tuning{}.kind():
		e, of, err := readAround[Tuning](fields, depth, "distribution", "eta", "gamma", "mean", "trials")
		e.Of = of
		return e, err
	case Composed{}.kind():
		return readComposed(fields, depth)
	}
	return nil, fmt.Errorf("%w: unknown kind %.40q", ErrFormat, kind)
}

func readComposed(fields map[string]json.RawMessage, depth int) (Event, error) {
	if err := onlyKeys(fields, []string{"kind", "parts"}); err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	if err := readField(fields, "parts", &raw); err != nil {
		return nil, err
	}
	parts := make([]Event, len(raw))
	for i, one := range raw {
		var err error
		if parts[i], err = unmarshal(one, depth+1); err != nil {
			return nil, fmt.Errorf("parts[%d]: %w", i, err)
		}
	}
	return Composed{parts}, nil
}

// readLeaf reads an event that holds no other event; keys are all required.
func readLeaf[T Event](data []byte, fields map[string]json.RawMessage, keys ...string) (Event, error) {
	if err := onlyKeys(fields, append([]string{"kind"}, keys...)); err != nil {
		return nil, err
	}
	for _, key := range keys {
		if _, ok := fields[key]; !ok {
			return nil, fmt.Errorf("%w: key %q is missing", ErrFormat, key)
		}
	}
	var e T
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return e, nil
}

// readAround reads an event around another one: its own keys, each optional
// here and judged by Validate, and "of".
func readAround[T any](fields map[string]json.RawMessage, depth int, keys ...string) (T, Event, error) {
	var head T
	if err := onlyKeys(fields, append([]string{"kind", "of"}, keys...)); err != nil {
		return head, nil, err
	}
	own := make(map[string]json.RawMessage, len(keys))
	for _, key := range keys {
		if raw, ok := fields[key]; ok {
			own[key] = raw
		}
	}
	data, err := json.Marshal(own)
	if err != nil {
		return head, nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return head, nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	raw, ok := fields["of"]
	if !ok {
		return head, nil, fmt.Errorf("%w: key %q is missing", ErrFormat, "of")
	}
	of, err := unmarshal(raw, depth+1)
	if err != nil {
		return head, nil, fmt.Errorf("of: %w", err)
	}
	return head, of, nil
}

func readField(fields map[string]json.RawMessage, key string, into any) error {
	raw, ok := fields[key]
	if !ok {
		return fmt.Errorf("%w: key %q is missing", ErrFormat, key)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrFormat, key, err)
	}
	return nil
}

// readObject splits one JSON object into its fields. encoding/json would take
// the last of repeated keys, match keys in any case and read null as nothing;
// a privacy record must have one reading only.
func readObject(data []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, fmt.Errorf("%w: want a JSON object", ErrFormat)
	}
	fields := map[string]json.RawMessage{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		key, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("%w: want a key, found %v", ErrFormat, token)
		}
		if _, seen := fields[key]; seen {
			return nil, fmt.Errorf("%w: key %q is there twice", ErrFormat, key)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrFormat, key, err)
		}
		if string(raw) == "null" {
			return nil, fmt.Errorf("%w: %q is null", ErrFormat, key)
		}
		fields[key] = raw
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: data after the object", ErrFormat)
	}
	return fields, nil
}

func onlyKeys(fields map[string]json.RawMessage, known []string) error {
	for key := range fields {
		if !slices.Contains(known, key) {
			return fmt.Errorf("%w: unknown key %q; known are %s", ErrFormat, key, strings.Join(known, ", "))
		}
	}
	return nil
}

// writeKind writes plain, a twin of the event without methods, and puts its
// kind in front.
func writeKind(kind string, plain any) ([]byte, error) {
	body, err := json.Marshal(plain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	head := `{"kind":"` + kind + `"`
	if string(body) == "{}" {
		return []byte(head + "}"), nil
	}
	return append([]byte(head+","), body[1:]...), nil
}

// Twins of the events without methods: encoding/json writes them by their fields alone.
type (
	plainGaussian         Gaussian
	plainLaplace          Laplace
	plainDiscreteGaussian DiscreteGaussian
	plainMetricLaplace    MetricLaplace
	plainSelection        Selection
	plainSampled          Sampled
	plainRepeated         Repeated
	plainComposed         Composed
	plainNodeGaussian     NodeGaussian
	plainNodeSum          NodeSum
	plainNodeThinned      NodeThinned
	plainTuning           Tuning
	plainUnprotected      Unprotected
)

// MarshalJSON writes an event with its kind.
func (e Gaussian) MarshalJSON() ([]byte, error) { return writeKind(e.kind(), plainGaussian(e)) }
func (e Laplace) MarshalJSON() ([]byte, error)  { return writeKind(e.kind(), plainLaplace(e)) }
func (e DiscreteGaussian) MarshalJSON() ([]byte, error) {
	return writeKind(e.kind(), plainDiscreteGaussian(e))
}
func (e MetricLaplace) MarshalJSON() ([]byte, error) {
	return writeKind(e.kind(), plainMetricLaplace(e))
}
func (e Selection) MarshalJSON() ([]byte, error)    { return writeKind(e.kind(), plainSelection(e)) }
func (e Sampled) MarshalJSON() ([]byte, error)      { return writeKind(e.kind(), plainSampled(e)) }
func (e Repeated) MarshalJSON() ([]byte, error)     { return writeKind(e.kind(), plainRepeated(e)) }
func (e Composed) MarshalJSON() ([]byte, error)     { return writeKind(e.kind(), plainComposed(e)) }
func (e NodeGaussian) MarshalJSON() ([]byte, error) { return writeKind(e.kind(), plainNodeGaussian(e)) }
func (e NodeSum) MarshalJSON() ([]byte, error)      { return writeKind(e.kind(), plainNodeSum(e)) }
func (e NodeThinned) MarshalJSON() ([]byte, error)  { return writeKind(e.kind(), plainNodeThinned(e)) }
func (e Tuning) MarshalJSON() ([]byte, error)       { return writeKind(e.kind(), plainTuning(e)) }
func (e Unprotected) MarshalJSON() ([]byte, error)  { return writeKind(e.kind(), plainUnprotected(e)) }
