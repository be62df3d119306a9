package config

import "cmp"

// usualData and usualMethod are meant by a file that names neither.
const (
	usualData   = "synthetic"
	usualMethod = "group-private"
)

// Default is what a run file need not say: the papers' settings for data of a kind,
// with a method ("": the papers' own for such data) and a mode.
func Default(kind, algorithm, mode string) Run { return defaults(kind, algorithm, mode, "") }

// defaults are Default's, and what another protection than the usual one needs
// otherwise. Every choice has its say: first the data's papers, then the method, then
// mode and protection.
func defaults(kind, algorithm, mode, protects string) Run {
	k := dataKinds[kind]
	r := common()
	for _, name := range DataKinds() {
		if set := dataKinds[name].Defaults; set != nil {
			set(&r.Data)
		}
	}
	r.Data.Kind, r.Algorithm.Mode, r.Privacy.Accounting = kind, mode, mode
	r.Algorithm.Kind = cmp.Or(algorithm, k.Method, usualMethod)
	if mode == "sound" {
		// Stopping on raw validation losses is an unpaid release of the validators.
		r.Algorithm.Rounds, r.Algorithm.Stop = 85, Stop{Return: "last", Every: 1}
	}
	if k.Settings != nil {
		k.Settings(&r)
	}
	if set := methodKinds[r.Algorithm.Kind].Settings; set != nil {
		set(&r)
	}
	r.Privacy.Protects = cmp.Or(protects, r.Privacy.Protects)
	if set := protectionKinds[r.Privacy.Protects].Settings; set != nil {
		set(&r)
	}
	return r
}

// common are the settings that come nearest to the papers' text, for all data.
func common() Run {
	return Run{
		Seed:  1,
		Data:  Data{Samples: 10, TrainShare: 0.7},
		Model: Model{Kind: "linear", InitSD: 1},
		Algorithm: Algorithm{
			Hypotheses: 1, Rounds: 500, ClientsPerRound: 7,
			Sampling: "uniform", Empty: "relocate", IdleRounds: 3, Clustering: "k-means", Weights: "equal",
			Selection: Selection{Rule: "best", Share: 1, EpsilonShare: 0.03, Score: "loss", Bound: 0.1},
			Lambda:    "1", Prox: "outside", FederatedShare: 0.5,
			Local: Local{
				Epochs: 1, Step: 0.1, Loss: "squared-error", Remainder: "keep",
				Optimiser: "sgd", Momentum: 0.9, Beta1: 0.9, Beta2: 0.999, Schedule: "constant",
			},
			Stop: Stop{Patience: 6, Return: "best", Every: 1},
		},
		Privacy: Privacy{
			Protects: "nothing", RadiusDecay: 1, RadiusFloor: 1e-6, Sanitise: "update", Noise: "simulated",
			Delta: 1e-5, Clip: 1, UpdateClip: 1, RecordsPerPerson: 1, Relation: "add-remove",
		},
		Judge: Judge{By: "clients"},
		Run:   Execution{CheckpointSeconds: 1},
	}
}
