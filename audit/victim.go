// Package audit holds attacks on what clients release, and empirical lower bounds on what that reveals.
package audit

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/kernel"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// Victim is a client at the attacker's best: one example, one step of gradient
// descent (thesis 001, section 2.5.1).
type Victim struct {
	net    *model.Network[float64]
	engine *model.Engine[float64]
	loss   string
	theta  []float64
	step   float64
}

// NewVictim makes a client whose parameters are drawn from the seed. The loss is
// cross-entropy, squared-error or rmse; targets of the latter two are one-hot.
func NewVictim(n Network, loss string, step float64, seed uint64) (*Victim, error) {
	if !(step > 0) || math.IsInf(step, 0) {
		return nil, fmt.Errorf("audit: step %v; allowed: above 0", step)
	}
	net, err := n.build()
	if err != nil {
		return nil, err
	}
	objective, err := model.NewObjective[float64](loss)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	engine, err := model.NewEngine(net, objective, nil)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	v := &Victim{net: net, engine: engine, loss: loss, step: step, theta: make([]float64, net.Parameters())}
	family := rng.NewFamily(seed, "audit: parameters of the victim")
	n.initialise(net, v.theta, family.Stream(0, 0))
	return v, nil
}

// Sanitiser is Algorithm 2 of the papers on a victim's update: the radius is the
// update's own length, so the claim is heuristic.
type Sanitiser struct {
	Multiplier float64 // nu; 0: no noise
	// Whole takes the update as one vector. Otherwise every layer is sanitised on
	// its own, with its own length as radius, as thesis 001, section 2.5.1 does.
	Whole bool
}

// radiusFloor keeps a layer without any update from going out without noise.
const radiusFloor = 1e-12

// radiusCeiling is far above any update: the noise here is of floats.
const radiusCeiling = 1e150

// Release is what the server gets, and what it cost.
type Release struct {
	Update
	Events []event.MetricLaplace // one a sanitised vector
}

// Update is what the server knows of one client: the parameters that it sent out,
// those that came back, and how many steps of which size lie between.
type Update struct {
	Before, After []float64
	Step          float64
	Steps         int
}

// Gradient is the gradient that the server computes from an update; over several
// steps it is their mean.
func (u Update) Gradient() ([]float64, error) {
	if len(u.Before) != len(u.After) || len(u.Before) == 0 {
		return nil, fmt.Errorf("audit: %d parameters went out and %d came back", len(u.Before), len(u.After))
	}
	if !(u.Step > 0) || u.Steps < 1 {
		return nil, fmt.Errorf("audit: %d steps of %v; allowed: 1 or more, above 0", u.Steps, u.Step)
	}
	g := make([]float64, len(u.Before))
	for i := range g {
		g[i] = (u.Before[i] - u.After[i]) / (u.Step * float64(u.Steps))
	}
	if _, err := mech.Norm(g); err != nil {
		return nil, fmt.Errorf("audit: the update: %w", err)
	}
	return g, nil
}

// Send trains one step on one picture, with values from 0 to 1, and sanitises.
func (v *Victim) Send(x []float64, label int, s Sanitiser, src rand.Source) (Release, error) {
	if !(s.Multiplier >= 0) || math.IsInf(s.Multiplier, 0) {
		return Release{}, fmt.Errorf("audit: noise multiplier %v; allowed: 0 or more", s.Multiplier)
	}
	classes := v.net.Output().Len()
	if label < 0 || label >= classes {
		return Release{}, fmt.Errorf("audit: label %d; allowed: 0 to %d", label, classes-1)
	}
	ex := model.Examples[float64]{X: x, Labels: []int{label}}
	if v.loss != "cross-entropy" {
		ex.Targets = make([]float64, classes)
		ex.Targets[label] = 1
	}
	delta := make([]float64, len(v.theta))
	if _, err := v.engine.Gradient(delta, v.theta, ex, []int{0}); err != nil {
		return Release{}, fmt.Errorf("audit: %w", err)
	}
	kernel.Scale(delta, -v.step, delta)
	r := Release{Update: Update{Before: v.theta, After: make([]float64, len(v.theta)), Step: v.step, Steps: 1}}
	parts := model.LayerSpans(v.net.Views())
	if s.Whole {
		parts = []model.Span{{To: len(delta)}}
	}
	for _, p := range parts {
		after, before, update := r.After[p.From:p.To], v.theta[p.From:p.To], delta[p.From:p.To]
		if s.Multiplier == 0 {
			for i := range after {
				after[i] = before[i] + update[i]
			}
			continue
		}
		bounded, err := mech.OwnRadius(update, radiusFloor, radiusCeiling)
		if bounded.Replaced() {
			err = errors.New("the update is not finite")
		}
		if err != nil {
			return Release{}, fmt.Errorf("audit: parameters %d to %d: %w", p.From, p.To, err)
		}
		e, err := mech.Laplace{Multiplier: s.Multiplier}.Simulate(after, before, bounded, src)
		if err != nil {
			return Release{}, fmt.Errorf("audit: parameters %d to %d: %w", p.From, p.To, err)
		}
		r.Events = append(r.Events, e)
	}
	return r, nil
}
