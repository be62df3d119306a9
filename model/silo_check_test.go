package model

import (
	"testing"

	"github.com/coterie-fl/coterie/config"
)

func TestCheckSiloModels(t *testing.T) {
	for _, kind := range []string{"school", "vehicle", "gleam", "adni", "rotated-mnist", "cifar10-silos"} {
		run := config.Default(kind, "local", "paper")
		if faults := Check(run); faults != nil {
			t.Errorf("%s: the defaults are refused: %v", kind, faults)
		}
		other := config.Model{Kind: "network", Name: "cross-silo-adni"}
		if kind == "adni" {
			other = config.Model{Kind: "linear"}
		}
		run.Model = other
		if faults := Check(run); len(faults) == 0 {
			t.Errorf("%s: %+v was accepted", kind, other)
		}
	}
}
