package config

import (
	"math"
	"slices"
	"strconv"
)

// siloKinds are the data whose clients hold out part of their own examples: the
// methods of paper 002 run on them.
var siloKinds = []string{"school", "vehicle", "gleam", "adni", "rotated-mnist", "cifar10-silos"}

// OfSilos says whether the data's clients hold out part of their own examples.
func (d Data) OfSilos() bool { return slices.Contains(siloKinds, d.Kind) }

// Lambda is a strength of regularisation: a number, inf, or auto.
type Lambda string

// LambdaAuto is set by the server, from what was released already.
const LambdaAuto Lambda = "auto"

// Value is the number; NaN for auto.
func (l Lambda) Value() float64 {
	if l == "inf" {
		return math.Inf(1)
	}
	x, err := strconv.ParseFloat(string(l), 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// Selection is how a participant chooses its cluster.
type Selection struct {
	Rule         string  `yaml:"rule,omitempty" jsonschema:"enum=best,enum=private,enum=nearest" jsonschema_description:"best: by one's own examples, unpaid; private: by the exponential mechanism, paid for; nearest: the model nearest to one's own last release, which costs nothing"`
	Share        float64 `yaml:"share,omitempty" jsonschema:"exclusiveMinimum=0,maximum=1" jsonschema_description:"share of the rounds, from the first one, in which participants choose; then they keep their cluster"`
	EpsilonShare float64 `yaml:"epsilon_share,omitempty" jsonschema:"exclusiveMinimum=0,maximum=1" jsonschema_description:"epsilon of one choice, as a share of the silo's whole"`
	Score        string  `yaml:"score,omitempty" jsonschema:"enum=error,enum=loss" jsonschema_description:"error: wrong answers; loss: losses clipped example by example"`
	Bound        float64 `yaml:"bound,omitempty" jsonschema:"exclusiveMinimum=0" jsonschema_description:"loss: what every example's loss is clipped to"`
}

// SiloTarget is one silo's own privacy target.
type SiloTarget struct {
	Name             string  `yaml:"name" jsonschema_description:"the silo"`
	Epsilon          float64 `yaml:"epsilon,omitempty" jsonschema:"exclusiveMinimum=0" jsonschema_description:"instead of privacy.epsilon"`
	Delta            float64 `yaml:"delta,omitempty" jsonschema:"exclusiveMinimum=0,exclusiveMaximum=1" jsonschema_description:"instead of privacy.delta"`
	RecordsPerPerson int     `yaml:"records_per_person,omitempty" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"instead of privacy.records_per_person"`
}

// siloRuns are paper 002's rounds (appendix B.4), and delta as its figures state it,
// or else below n^-1.1 as its appendix asks.
var siloRuns = map[string]struct {
	rounds int
	delta  float64
}{
	"school": {200, 1e-3}, "vehicle": {400, 1e-7}, "gleam": {200, 1e-7}, "adni": {500, 1e-5},
	"rotated-mnist": {200, 1e-4}, "cifar10-silos": {200, 1e-4},
}

// defaultSilo is paper 002's setting for data of silos with one of its methods.
func defaultSilo(kind, algorithm, mode string) Run {
	r := defaultGroup("fedavg", mode)
	r.Data.Kind = kind
	r.Model.Intercept, r.Model.InitSD = true, 0
	a := &r.Algorithm
	a.Kind, a.Hypotheses, a.Rounds, a.ClientsPerRound, a.Empty = algorithm, 1, siloRuns[kind].rounds, 0, "keep"
	a.Local = Local{Epochs: 1, Step: 0.01, Batch: 32, Loss: "squared-error"}
	a.Stop = Stop{Return: "last", Every: 1}
	a.Lambda, a.Prox, a.FederatedShare, a.Weights = "1", "outside", 0.5, "counts"
	a.Clustering, r.Judge.By = "declared", "own"
	a.Selection = Selection{Rule: "private", Share: 0.1, EpsilonShare: 0.03, Score: "error", Bound: 0.1}
	if kind == "school" || kind == "adni" { // their answers are values
		a.Selection.Score = "loss"
	}
	p := &r.Privacy
	p.Epsilon, p.Delta, p.Clip, p.UpdateClip, p.RecordsPerPerson, p.Relation = 6, siloRuns[kind].delta, 1, 0.02, 1, "add-remove"
	p.Protects, p.NoiseMultiplier, p.Radius = "example", 0, 0
	if algorithm == "ifca" {
		a.Hypotheses = 3
	}
	siloData(&r)
	if mode == "sound" {
		// Neighbours of one size leave sizes public; public constants tell of no row.
		p.Relation, r.Data.Standardise, p.MomentsShare = "replace-one", "public", 0.1
	}
	return r
}
