package data

import (
	"math"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

func TestCheckSilos(t *testing.T) {
	for kind, c := range map[string]struct {
		change func(*config.Data)
		path   string
	}{
		"school":        {func(d *config.Data) { d.Scale = []float64{1} }, "data.standardise"},
		"vehicle":       {func(d *config.Data) { d.Standardise = "public" }, "data.centre"},
		"gleam":         {func(d *config.Data) { d.Standardise, d.Centre = "public", make([]float64, 180); d.Scale = d.Centre }, "data.scale"},
		"rotated-mnist": {func(d *config.Data) { d.Silos = 42 }, "data.silos"},
		"cifar10-silos": {func(d *config.Data) { d.Silos = 33 }, "data.silos"},
	} {
		run := config.Default(kind, "mr-mtl", "paper")
		if faults := Check(run); faults != nil {
			t.Errorf("%s: the defaults are refused: %v", kind, faults)
		}
		c.change(&run.Data)
		faults := Check(run)
		if len(faults) == 0 || faults[0].Path != c.path {
			t.Errorf("%s: %v, wanted a fault at %s", kind, faults, c.path)
		}
	}
	run := config.Default("school", "mr-mtl", "sound")
	if faults := Check(run); faults != nil {
		t.Errorf("school with its documented ranges: %v", faults)
	}
	run.Data.Centre, run.Data.Scale = slicesOf(28, math.NaN()), slicesOf(28, 1)
	if faults := Check(run); len(faults) != 28 {
		t.Errorf("28 times NaN: %v", faults)
	}
	if faults := Check(config.Default("synthetic", "ifca", "paper")); faults != nil {
		t.Errorf("synthetic: %v", faults)
	}
}
