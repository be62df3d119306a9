package audit

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/coterie-fl/coterie/internal/rng"
)

// DLG is deep leakage from gradients (Zhu, Liu and Han 2019): find a picture and
// a label whose gradient is the observed one.
type DLG struct {
	Loss        string
	Evaluations int    // of the matching loss, a restart
	Restarts    int    // dummies drawn afresh at most; the best match counts
	Seed        uint64 // of the dummies
	// Floor is the match that the true example would have because of the noise:
	// NoiseFloor. A dummy that reaches it cannot be told from the true one, so no
	// further one is tried.
	Floor float64
}

// NoiseFloor is the match of the true example under noise of multiplier nu: the
// noise's squared length is about nu^2 times the update's, and both make up what is
// observed.
func NoiseFloor(nu float64) float64 { return nu * nu / (1 + nu*nu) }

// The match at which a descent ends, and the one at which restarts do, beside the
// floor.
const (
	exactMatch = 1e-10
	goodMatch  = 1e-6
)

// Recovered is what an attack made of an update.
type Recovered struct {
	Picture []float64 // or row; not clipped to a range
	Label   int       // -1: the attack does not tell
	// Match is the squared distance of the gradients over the observed one's
	// squared length: all that DLG can judge its result by.
	Match       float64
	Evaluations int
	// Features is the closed form's: the input of the first linear layer. Scaled
	// says that its length is known too, and not only its direction.
	Features []float64
	Scaled   bool
}

// Attack recovers the example behind an update.
func (a DLG) Attack(ctx context.Context, n Network, u Update) (Recovered, error) {
	if a.Evaluations < 1 || a.Restarts < 1 {
		return Recovered{}, fmt.Errorf("dlg: %d evaluations and %d restarts; allowed: 1 or more", a.Evaluations, a.Restarts)
	}
	gradient, err := u.Gradient()
	if err != nil {
		return Recovered{}, err
	}
	m, err := newMatcher(n, a.Loss, u.Before, gradient)
	if err != nil {
		return Recovered{}, err
	}
	best := Recovered{Label: -1, Match: math.Inf(1), Scaled: true}
	family := rng.NewFamily(a.Seed, "audit: dummies")
	for restart := 0; restart < a.Restarts && best.Match > 1.02*a.Floor+goodMatch; restart++ {
		s := family.Stream(restart, 0)
		start := make([]float64, m.inputs+m.outputs)
		for i := range start {
			start[i] = s.Normal() // picture and label alike, as the authors draw them
		}
		found, match, err := minimise(ctx, m.joint, start, a.Evaluations, exactMatch)
		if err != nil {
			return Recovered{}, fmt.Errorf("dlg, restart %d: %w", restart, err)
		}
		if match < best.Match {
			best.Picture, best.Match, best.Label = found[:m.inputs], match, floats.MaxIdx(found[m.inputs:])
		}
	}
	if best.Picture == nil {
		return Recovered{}, fmt.Errorf("dlg: the matching loss is not a number at any start")
	}
	best.Evaluations = m.evaluations
	return best, nil
}

// joint is the matching loss of picture and target in one vector.
func (m *matcher) joint(xz, gradient []float64) (float64, error) {
	n := m.inputs
	return m.value(xz[:n], xz[n:], gradient[:n], gradient[n:])
}
