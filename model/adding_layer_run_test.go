package model_test

import (
	"strings"
	"testing"

	_ "github.com/coterie-fl/coterie/all"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/sim"
)

// TestANewLayerIsOneFile: run files, their schema and both precisions know it.
func TestANewLayerIsOneFile(t *testing.T) {
	const head = "data: {kind: synthetic, users: 10, validation_users: 4}\nalgorithm: {kind: fedavg, rounds: 2}\n"
	run, err := config.Resolve([]byte(head+"model: {kind: network, layers: [{kind: linear, units: 3}, {kind: gain}, {kind: linear, units: 1}]}"), nil, sim.Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(run, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before := append([]float64(nil), s.Returned()...)
	for range 2 {
		if _, err := s.Step(); err != nil {
			t.Fatal(err)
		}
	}
	if after := s.Returned(); len(after) != 14 || after[9] == before[9] {
		t.Errorf("the factor of %d parameters went from %v to %v", len(after), before, after)
	}
	_, err = config.Resolve([]byte(head+"model: {kind: network, layers: [{kind: gain, units: 3}]}"), nil, sim.Checks()...)
	if err == nil || !strings.Contains(err.Error(), "units is set, but such a layer does not read it") {
		t.Errorf("a foreign key: %v", err)
	}
	_, err = config.Load([]byte(head + "model: {kind: network, layers: [{kind: gian}]}"))
	if err == nil || !strings.Contains(err.Error(), `did you mean "gain"`) {
		t.Errorf("a wrong name: %v", err)
	}
	if schema, err := config.Schema(); err != nil || !strings.Contains(string(schema), `"gain"`) {
		t.Errorf("the schema does not know it (%v)", err)
	}
}
