package account_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/mech"
)

// TestLeastSigma: the lattices of dp/mech are as fine as the term of exact noise takes
// them to be.
func TestLeastSigma(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		g := mech.Gaussian{Multiplier: math.Exp(12*r.Float64() - 6)}
		bound := math.Exp(20*r.Float64() - 10)
		l, err := g.Lattice(bound)
		if err != nil {
			t.Fatal(err)
		}
		if sigma, err := g.Sigma(bound, l); err != nil || sigma < account.LeastSigma {
			t.Errorf("noise %v on a bound of %v has %d steps: %v", g.Multiplier, bound, sigma, err)
		}
	}
}
