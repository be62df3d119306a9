package config

import (
	"math"
	"strconv"
)

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
