package sim

import (
	"bytes"
	"encoding/gob"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestStepsRecordsInCheckpoints: shares of 0 and shares that are not known stay apart.
func TestStepsRecordsInCheckpoints(t *testing.T) {
	want := recorder{Steps: []*StepsRecord{
		{Made: 20, Clip: 0.1, Step: 0.5, Clipped: numberIf(true, 0), ClipUp: numberIf(true, 0), StepUp: numberIf(true, 1), Norms: []int{0, 3}},
		{Made: 40, ClipAgree: numberIf(true, 0), StepAgree: numberIf(true, 0.25), Norms: make([]int, NormBins)},
	}}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(want); err != nil {
		t.Fatal(err)
	}
	var got recorder
	if err := gob.NewDecoder(&b).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Steps, want.Steps) {
		t.Errorf("read %+v and %+v", got.Steps[0], got.Steps[1])
	}
}

// TestNormBins are half decades, as docs/json.md has them.
func TestNormBins(t *testing.T) {
	if NormBins != 37 || NormEdge(0) != 1e-12 || NormEdge(24) != 1 || NormEdge(36) != 1e6 {
		t.Errorf("%d bins, from %v over %v to %v", NormBins, NormEdge(0), NormEdge(24), NormEdge(36))
	}
}

// TestStepsAreDocumented: docs/json.md names the keys of a record, all of them and no other.
func TestStepsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\n`steps` is there ")
	_, after, _ = strings.Cut(after, ": ")
	paragraph, _, _ := strings.Cut(after, "\n")
	var documented, keys []string
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(paragraph, -1) {
		documented = append(documented, m[1])
	}
	for f := range reflect.TypeFor[StepsRecord]().Fields() {
		keys = append(keys, f.Tag.Get("json"))
	}
	if !slices.Equal(documented, keys) {
		t.Errorf("documented are %q, written are %q", documented, keys)
	}
}
