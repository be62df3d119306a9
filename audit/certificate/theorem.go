package certificate

import (
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
)

// Theorem is what a claim rests on, and where its proof stands.
type Theorem struct {
	Says string `json:"says"`
	Note string `json:"note"` // of the repository
}

const proofs = "docs/proofs/"

// theorems are those behind a run's claim. A claim that no proof covers has none.
func theorems(run config.Run, s event.Statement) []Theorem {
	p := run.Privacy
	out := []Theorem{}
	add := func(says, note string) { out = append(out, Theorem{says, proofs + note}) }
	switch {
	case s.Claim == event.ClaimMetric:
		add("the loss of noise whose density falls with the length of a vector grows with the distance between two updates, and adds up over releases", "metric-composition.md")
		add("the noise is drawn on a lattice, whose rounding is paid for", "laplace-mixture.md")
		return out
	case s.Claim != event.ClaimProved:
		return out
	}
	if run.Algorithm.Kind == "pca" {
		add("a clipped row changes the matrix of second moments by a bounded length", "second-moments.md")
	}
	if p.Noise == "simulated" {
		add("Gaussian noise on a clipped sum has a bounded Rényi divergence", "gaussian.md")
	} else {
		add("discrete Gaussian noise on a clipped sum of integers has a bounded Rényi divergence", "discrete-gaussian.md")
		add("rounding to the lattice keeps the clip", "lattice-rounding.md")
	}
	if s.Sampling == string(event.Poisson) {
		add("a batch that draws every unit by a coin of its own loses less", "subsampling.md")
	}
	if s.Unit == event.UnitNode {
		add("a person that goes changes so many examples at most, by which contacts enter them", "node-relations.md")
		if run.Algorithm.Local.Batch > 0 {
			add("of a batch that is drawn afresh, without replacement, a person's examples are a hypergeometric number", "node-level.md")
		}
		if p.Nodes.Contacts == "thinned" {
			add("contacts that a secret of every step's own keeps put a person into a binomial number of examples, of the contacts that nobody is promised to have more of", "thinned-steps.md")
		}
	}
	add("Rényi divergences add up over steps and turn into epsilon at delta", "rdp.md")
	switch p.Clipping.Rule {
	case "", "fixed":
	default:
		add("a clip that is learned is released with the sums, under one noise", "joint-clipping.md")
	}
	if p.Sector != (config.Sector{}) {
		add("updates in a sector around a public direction lie closer together than in a ball", "lower-and-angular-clipping.md")
	}
	if s.Unit == event.UnitExample {
		add("what the methods compute from noised steps needs no further budget", "methods-under-protections.md")
		add("silos that hold different people's examples do not add up", "silo-composition.md")
	}
	return out
}
