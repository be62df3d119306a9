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
	Rule         string  `yaml:"rule,omitempty" jsonschema:"enum=best,enum=private,enum=nearest" jsonschema_description:"by what a cluster is chosen: best, by one's own examples, unpaid; private, by the exponential mechanism, paid for; nearest, by the distance to one's own last release, which costs nothing"`
	Share        float64 `yaml:"share,omitempty" jsonschema:"exclusiveMinimum=0,maximum=1" jsonschema_description:"share of the rounds, from the first one, in which participants choose; then they keep their cluster"`
	EpsilonShare float64 `yaml:"epsilon_share,omitempty" jsonschema:"exclusiveMinimum=0,maximum=1" only:"algorithm.selection.rule=private" jsonschema_description:"epsilon of one choice, as a share of the silo's whole"`
	Score        string  `yaml:"score,omitempty" jsonschema:"enum=error,enum=loss" only:"algorithm.selection.rule=best|private" jsonschema_description:"what a model is chosen by: wrong answers (classes only), or losses, which a private choice clips example by example"`
	Bound        float64 `yaml:"bound,omitempty" jsonschema:"exclusiveMinimum=0" only:"algorithm.selection.rule=private;algorithm.selection.score=loss" jsonschema_description:"what every example's loss is clipped to"`
}

// SiloTarget is one silo's own privacy target, and how large it is declared to be.
type SiloTarget struct {
	Name             string  `yaml:"name" jsonschema_description:"which participant"`
	Epsilon          float64 `yaml:"epsilon,omitempty" jsonschema:"exclusiveMinimum=0" jsonschema_description:"its epsilon, instead of privacy.epsilon; left out: that one"`
	Delta            float64 `yaml:"delta,omitempty" jsonschema:"exclusiveMinimum=0,exclusiveMaximum=1" jsonschema_description:"its delta, instead of privacy.delta; left out: that one"`
	RecordsPerPerson int     `yaml:"records_per_person,omitempty" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"its records of one person, instead of privacy.records_per_person; left out: those"`
	PublicSize       int     `yaml:"public_size,omitempty" jsonschema:"minimum=1,maximum=1000000000" jsonschema_description:"its declared number of examples (node: of persons), instead of privacy.public_size; left out: that one"`
}
