package protect

import "github.com/coterie-fl/coterie/config"

// Keys that only some protections read. docs/run-file.md says so of them, and a test in
// sim changes each under every protection.
var (
	// singleKeys are of protections under which the server gets single releases, so that
	// participants may be sampled, and may belong to clusters.
	singleKeys = []string{
		"algorithm.clients_per_round", "algorithm.sampling",
		"algorithm.hypotheses", "algorithm.warm_start", "algorithm.empty", "algorithm.idle_rounds",
		"algorithm.selection.rule", "algorithm.selection.share", "algorithm.selection.score", "algorithm.robust", "algorithm.robust_share",
	}
	// declaredKeys are of those under which participants may say more than a model.
	declaredKeys = []string{"algorithm.clustering", "algorithm.weights"}
	// wholeKeys are of those that leave training as it is.
	wholeKeys = []string{"algorithm.local.limit", "algorithm.local.remainder"}
	// stopKeys are of those under which a round may be chosen by held-out examples.
	stopKeys = []string{"algorithm.stop.patience", "algorithm.stop.return"}
	// noiseKeys are of those that add noise, targetKeys of those that find it from a target.
	noiseKeys  = []string{"privacy.noise_multiplier", "privacy.noise"}
	targetKeys = []string{"privacy.epsilon", "privacy.delta", "privacy.runs"}
)

// checkRuns checks what is said of the runs that share a target.
func checkRuns(c *config.Checker, p config.Privacy) {
	c.Require(p.NoiseMultiplier == 0 || p.Runs <= 1, "privacy.runs", sharesNothing, p.Runs, p.NoiseMultiplier)
	c.Require(p.Run < max(p.Runs, 1), "privacy.run", "is %d, counted from 0, but %d share the target (privacy.runs); allowed: 0 to %d", p.Run, max(p.Runs, 1), max(p.Runs, 1)-1)
}

// sharesNothing is said of privacy.runs beside a given noise.
const sharesNothing = "is %d, but privacy.noise_multiplier %v fixes the noise, whatever other runs cost; give privacy.epsilon, which they share, or leave it out"
