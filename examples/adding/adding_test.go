package adding_test

import (
	"strings"
	"testing"

	_ "github.com/coterie-fl/coterie/all"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/sim"
)

// train makes two rounds of a run file and returns what the models lose before and after.
func train(t *testing.T, text string) (before, after float64) {
	t.Helper()
	run, err := config.Resolve([]byte(text), []string{"algorithm.rounds=2"}, sim.Checks()...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	s, err := sim.New(run, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer s.Close()
	for more := true; more; {
		if more, err = s.Step(); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	res, err := s.Result()
	if err != nil || res.Rounds != 2 {
		t.Fatalf("%s: %d rounds, %v", text, res.Rounds, err)
	}
	losses := res.History.Rounds
	return float64(losses[0].Loss), float64(losses[len(losses)-1].Loss)
}

// TestWhatIsAddedTrains: each goes with what was there before, and with one another.
func TestWhatIsAddedTrains(t *testing.T) {
	for name, text := range map[string]string{
		"the data set":              "data: {kind: lines, users: 5}",
		"the method":                "data: {kind: synthetic}\nalgorithm: {kind: median}",
		"the method, updates":       "data: {kind: synthetic}\nalgorithm: {kind: median}\nprivacy: {protects: update, noise_multiplier: 0.1}",
		"the method, examples":      "data: {kind: synthetic}\nalgorithm: {kind: median}\nprivacy: {protects: example, epsilon: 1000}",
		"the protection":            "data: {kind: synthetic}\nalgorithm: {kind: fedavg}\nprivacy: {protects: signs}",
		"the protection, mr-mtl":    "data: {kind: synthetic}\nalgorithm: {kind: mr-mtl}\nprivacy: {protects: signs}",
		"all three":                 "data: {kind: lines}\nalgorithm: {kind: median}\nprivacy: {protects: signs}",
		"the data set, own figures": "data: {kind: lines, test_share: 0.2}\nalgorithm: {kind: ditto}",
	} {
		if before, after := train(t, text); !(after < before) {
			t.Errorf("%s: the loss went from %v to %v", name, before, after)
		}
	}
}

// TestWhatIsAddedIsChecked: the loader, its suggestions, the schema and the checks know it.
func TestWhatIsAddedIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		"data: {kind: lines, mask: 0.5}":                                     "data.mask: is set, but data of the kind lines",
		"data: {kind: line}":                                                 `did you mean "lines"`,
		"algorithm: {kind: medain}":                                          `did you mean "median"`,
		"privacy: {protects: sings}":                                         `did you mean "signs"`,
		"algorithm: {kind: median, hypotheses: 2}":                           "but median has one model",
		"algorithm: {kind: median}\nprivacy: {protects: client, epsilon: 1}": "the server needs their releases one by one",
		"algorithm: {kind: local}\nprivacy: {protects: signs}":               "but local sends nothing",
	} {
		if _, err := config.Resolve([]byte(text), nil, sim.Checks()...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	schema, err := config.Schema()
	for _, name := range []string{`"lines"`, `"median"`, `"signs"`} {
		if err != nil || !strings.Contains(string(schema), name) {
			t.Errorf("the schema does not know %s (%v)", name, err)
		}
	}
}
