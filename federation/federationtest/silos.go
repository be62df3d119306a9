package federationtest

import (
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/ledger"
)

// SiloRun trains personal models under example-level privacy.
const SiloRun = `name: silos
seed: 3
data: {kind: vehicle, standardise: none}
algorithm: {kind: mr-mtl, mode: sound, rounds: 3, lambda: 1, local: {epochs: 1, step: 0.01, batch: 64}}
privacy: {epsilon: 6, delta: 1.0e-4, clip: 1, noise: exact-seeded}
`

// SiloPolicy allows SiloRun and PaidRun.
const SiloPolicy = `ceilings:
  - {unit: example, relation: replace-one, claim: heuristic, epsilon: 7, delta: 1.0e-4} # Vehicle was scaled at its source
  - {unit: example, relation: replace-one, claim: proved, epsilon: 7, delta: 1.0e-4}
methods: [mr-mtl, mocha]
`

// PaidRun has the silos pay for the moments of their features.
const PaidRun = `name: paid
seed: 3
data: {kind: school, standardise: paid}
algorithm: {kind: mr-mtl, mode: sound, rounds: 3, lambda: 1, local: {epochs: 1, step: 0.01, batch: 32}}
privacy: {epsilon: 6, delta: 1.0e-4, clip: 1, noise: exact-seeded}
`

// MomentNoises are the noises of a charge's moments.
func MomentNoises(e ledger.Entry) (noises []float64) {
	for _, part := range e.Release.What.(event.Composed).Parts {
		if g, ok := part.(event.Gaussian); ok {
			noises = append(noises, g.Noise)
		}
	}
	return noises
}
