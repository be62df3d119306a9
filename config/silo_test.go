package config_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// TestSiloFileLoadsBack: what a run on silos resolves to is what is read again, also
// where a value is 0.
func TestSiloFileLoadsBack(t *testing.T) {
	for _, text := range []string{
		"data: {kind: school}\n",
		"data: {kind: school}\nalgorithm: {kind: ifca}\nprivacy: {epsilon: 0}\n",
		"data: {kind: vehicle}\nalgorithm: {kind: mr-mtl, lambda: auto, mode: sound}\nprivacy: {silos: [{name: a, epsilon: 2, records_per_person: 3}]}\n",
		"data: {kind: rotated-mnist}\nalgorithm: {kind: fedavg, lambda: 0.25, weights: equal}\nprivacy: {protects: client}\n",
		"data: {kind: school}\nalgorithm: {lambda: inf, prox: server}\n",
	} {
		f, err := config.Load([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again, err := f.Run.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := config.Load(again)
		if err != nil {
			t.Fatalf("%s\nresolved:\n%s\n%v", text, again, err)
		}
		one, two := f.Run, back.Run
		if a, b := mustEncode(t, one), mustEncode(t, two); a != b || one.Algorithm.Lambda != two.Algorithm.Lambda {
			t.Errorf("%s: resolved to\n%s\nread again as\n%s", text, a, b)
		}
	}
}

func mustEncode(t *testing.T, r config.Run) string {
	t.Helper()
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestLambda(t *testing.T) {
	for text, want := range map[string]float64{"1": 1, "0.3": 0.3, "1e-3": 1e-3, "10": 10, "inf": math.Inf(1), "auto": math.NaN()} {
		f, err := config.Load([]byte("data: {kind: school}\nalgorithm: {lambda: " + text + "}\n"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := f.Run.Algorithm.Lambda.Value(); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s is read as %v", text, got)
		}
	}
	for _, text := range []string{"-1", "much", "[1]", "true", ".nan"} {
		if _, err := config.Load([]byte("data: {kind: school}\nalgorithm: {lambda: " + text + "}\n")); err == nil || !strings.Contains(err.Error(), "algorithm.lambda") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestDefaultsFollowTheData: the family's defaults apply, and setting a kind on the
// command line changes them.
func TestDefaultsFollowTheData(t *testing.T) {
	silos, err := config.Load([]byte("data: {kind: school}\n"), config.Setting{"algorithm.kind", "ifca"})
	if err != nil {
		t.Fatal(err)
	}
	if a := silos.Run.Algorithm; a.Kind != "ifca" || a.Hypotheses != 3 || a.Local.Batch != 32 || a.Stop.Return != "last" {
		t.Errorf("silos: %+v", a)
	}
	group, err := config.Load([]byte("data: {kind: synthetic}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := config.Default("synthetic", "group-private", "paper"); !reflect.DeepEqual(group.Run.Algorithm, want.Algorithm) {
		t.Errorf("groups: %+v, want %+v", group.Run.Algorithm, want.Algorithm)
	}
}
