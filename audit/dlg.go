package audit

import (
	"context"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/internal/rng"
)

// DLG is deep leakage from gradients (Zhu, Liu and Han 2019): find a picture and
// a label whose gradient is the observed one.
type DLG struct {
	Evaluations int     // of the matching loss, a restart
	Restarts    int     // dummies drawn afresh; the best match counts
	Enough      float64 // a match at which restarts end
	Seed        uint64  // of the dummies
	Loss        string
}

// Recovered is what an attack made of an update.
type Recovered struct {
	Picture []float64 `json:"picture"`
	Label   int       `json:"label"` // -1: not told
	// Match is the squared distance of the gradients over the observed one's
	// squared length: all that the attacker can judge the result by.
	Match       float64 `json:"match"`
	Evaluations int     `json:"evaluations"`
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
	best := Recovered{Label: -1, Match: math.Inf(1)}
	family := rng.NewFamily(a.Seed, "audit: dummies")
	for restart := range a.Restarts {
		s := family.Stream(restart, 0)
		start := make([]float64, m.inputs+m.outputs)
		for i := range start {
			start[i] = s.Normal() // picture and label alike, as the authors draw them
		}
		found, match, err := minimise(ctx, m.joint, start, a.Evaluations, a.Enough)
		if err != nil {
			return Recovered{}, fmt.Errorf("dlg, restart %d: %w", restart, err)
		}
		if match < best.Match {
			best.Picture, best.Match, best.Label = found[:m.inputs], match, m.loss.label(found[m.inputs:])
		}
		if match <= a.Enough {
			break
		}
	}
	best.Evaluations = m.evaluations
	return best, nil
}

// joint is the matching loss of picture and target in one vector.
func (m *matcher) joint(xz, gradient []float64) (float64, error) {
	n := m.inputs
	return m.value(xz[:n], xz[n:], gradient[:n], gradient[n:])
}
