package fl_test

import (
	"errors"
	"strings"
	"testing"

	_ "github.com/coterie-fl/coterie/all"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
)

func TestCheck(t *testing.T) {
	for path, change := range map[string]func(*config.Run){
		"algorithm.clients_per_round":       func(r *config.Run) { r.Algorithm.ClientsPerRound = 101 },
		"algorithm.stop.validation_clients": func(r *config.Run) { r.Algorithm.Stop.ValidationClients = 101 },
		"algorithm.hypotheses":              func(r *config.Run) { r.Algorithm.Kind = "fedavg" },
		"privacy.protects":                  func(r *config.Run) { r.Privacy.NoiseMultiplier = 1 },
		"privacy.noise_multiplier":          func(r *config.Run) { r.Privacy.Protects = "update" },
		"privacy.ceiling":                   func(r *config.Run) { r.Privacy.Ceiling = new(float64) },
		"privacy.radius": func(r *config.Run) {
			r.Algorithm.Kind, r.Algorithm.Mode, r.Privacy.NoiseMultiplier = "group-private", "sound", 1
			r.Privacy.Protects = "update"
		},
		"privacy.radius_decay": func(r *config.Run) {
			r.Algorithm.Kind, r.Algorithm.Mode, r.Privacy.NoiseMultiplier = "group-private", "sound", 1
			r.Privacy.Protects, r.Privacy.Radius, r.Privacy.RadiusDecay = "update", 1, 0.1
		},
		"algorithm.empty":   func(r *config.Run) { r.Algorithm.Empty = "split" },
		"algorithm.weights": func(r *config.Run) { r.Algorithm.Weights = "counts" },
		// Nobody's values are wrong: all would choose the first model, whatever is protected.
		"algorithm.selection.score": func(r *config.Run) { r.Algorithm.Selection.Score = "error" },
		"algorithm.clustering":      func(r *config.Run) { r.Algorithm.Kind, r.Algorithm.Clustering = "group-private", "declared" },
	} {
		run := config.Default("synthetic", "ifca", "paper")
		change(&run)
		if faults := fl.Check(run); len(faults) != 1 || faults[0].Path != path {
			t.Errorf("%s: %v", path, faults)
		}
	}
}

func TestAffordable(t *testing.T) {
	run := config.Default("synthetic", "group-private", "paper")
	ceiling := 0.3
	run.Privacy.Ceiling = &ceiling
	if err := fl.Affordable(run, 2); !errors.Is(err, fl.ErrRefused) {
		t.Errorf("a ceiling below one release: %v", err)
	}
	run.Privacy.NoiseMultiplier = 0
	if err := fl.Affordable(run, 2); !errors.Is(err, fl.ErrRefused) || strings.Contains(err.Error(), "inf") || !strings.Contains(err.Error(), "noise_multiplier 6.66667 would do") {
		t.Errorf("a ceiling without noise: %v", err)
	}
	ceiling, run.Privacy.NoiseMultiplier = 0.4, 5
	if err := fl.Affordable(run, 2); err != nil {
		t.Errorf("a ceiling of one release: %v", err)
	}
}

// TestSiloFaults: what does not go together is named, all at once.
func TestSiloFaults(t *testing.T) {
	for path, change := range map[string]func(*config.Run){
		"algorithm.kind":              func(r *config.Run) { r.Algorithm.Kind = "dp-fedavg" },
		"algorithm.lambda":            func(r *config.Run) { r.Algorithm.Lambda = "300" },
		"algorithm.hypotheses":        func(r *config.Run) { r.Algorithm.WarmStart = 0.1 },
		"algorithm.warm_start":        func(r *config.Run) { r.Algorithm.Kind, r.Algorithm.WarmStart = "ditto", 0.1 },
		"privacy.public_size":         func(r *config.Run) { sound(r); r.Privacy.Relation, r.Algorithm.Weights = "add-remove", "equal" },
		"algorithm.weights":           func(r *config.Run) { sound(r); r.Privacy.Relation, r.Privacy.PublicSize = "add-remove", 50 },
		"data.standardise":            func(r *config.Run) { sound(r); r.Data.Standardise = "silo" },
		"privacy.relation":            func(r *config.Run) { r.Privacy.Relation = "replace-one" },
		"privacy.noise_multiplier":    func(r *config.Run) { r.Privacy.NoiseMultiplier = 1 },
		"privacy.epsilon":             func(r *config.Run) { r.Privacy.Epsilon = 0 },
		"privacy.runs":                func(r *config.Run) { r.Privacy.Epsilon, r.Privacy.NoiseMultiplier, r.Privacy.Runs = 0, 3, 5 },
		"privacy.run":                 func(r *config.Run) { r.Privacy.Runs, r.Privacy.Run = 3, 3 },
		"privacy.protects":            func(r *config.Run) { r.Privacy.Protects = "nothing" },
		"algorithm.clients_per_round": func(r *config.Run) { r.Algorithm.Kind, r.Algorithm.ClientsPerRound = "mocha", 5 },
		"algorithm.local.limit":       func(r *config.Run) { r.Algorithm.Local.Limit = 5 },
		"algorithm.local.loss":        func(r *config.Run) { r.Algorithm.Local.Loss = "rmse" },
		"algorithm.stop":              func(r *config.Run) { r.Algorithm.Kind, r.Algorithm.Stop.Patience = "fedavg", 6 },
		"judge.by":                    func(r *config.Run) { r.Algorithm.Kind, r.Judge.By = "local", "clients" },
		"algorithm.selection.score": func(r *config.Run) {
			r.Algorithm.Kind, r.Algorithm.Hypotheses, r.Algorithm.Selection.Score = "ifca", 2, "error"
		},
		"algorithm.prox": func(r *config.Run) { r.Algorithm.Kind, r.Algorithm.Prox = "ditto", "server" },
		"privacy.silos.1.name": func(r *config.Run) {
			r.Privacy.Silos = []config.SiloTarget{{Name: "a", Epsilon: 1}, {Name: "a", Epsilon: 2}}
		},
	} {
		run := config.Default("school", "mr-mtl", "paper")
		if faults := fl.Check(run); len(faults) > 0 {
			t.Fatal(faults)
		}
		change(&run)
		faults := fl.Check(run)
		if len(faults) != 1 || faults[0].Path != path {
			t.Errorf("%s: faults %v", path, faults)
		}
	}
	for _, kind := range fl.Methods() { // no method is refused for the data's name
		for _, name := range []string{"synthetic", "school"} {
			if faults := fl.Check(config.Default(name, kind, "paper")); faults != nil {
				t.Errorf("%s on %s: %v", kind, name, faults)
			}
		}
	}
}

func sound(r *config.Run) {
	*r = config.Default("school", "mr-mtl", "sound")
}
