// Package protect holds the protections of a run, one file each, registered by name: what each covers, and how it is priced and drawn.
package protect

import (
	"math"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

func init() {
	fl.RegisterProtection(fl.ProtectionKind{
		Name: "nothing", Sums: true, Words: "nothing: what is trained is sent as it is",
		Keys: slices.Concat(singleKeys, declaredKeys, wholeKeys, stopKeys),
		Settings: func(run *config.Run) {
			run.Privacy.Epsilon, run.Privacy.NoiseMultiplier = 0, 0
			if run.Algorithm.Selection.Rule == "private" {
				run.Algorithm.Selection.Rule = "best"
			}
		},
		Check: func(c *config.Checker, run config.Run, _ fl.Outline) {
			p := run.Privacy
			c.Require(p.NoiseMultiplier == 0 && p.Epsilon == 0 && len(p.Silos) == 0, "privacy.protects",
				"is nothing, but privacy asks for noise (noise_multiplier %v, epsilon %v); allowed: update, example, client", p.NoiseMultiplier, p.Epsilon)
			c.Require(p.Ceiling == nil, "privacy.ceiling", "is set, but without noise every release is above any ceiling; allowed: null")
			c.Require(run.Data.Standardise != "paid", "data.standardise", "is paid, but nobody has a target to pay from; allowed: silo, public, none")
		},
		New: func(s fl.Setup, o fl.Outline) (fl.Protection, error) {
			q, err := newPlain(s, o)
			return &nothing{q}, err
		},
	})
}

// nothing protects nothing, and says so.
type nothing struct{ plain }

// bareRelease is a trained vector as it is.
var bareRelease = event.Release{
	Unit: event.UnitClient, Relation: event.ReplaceOne, Claim: event.ClaimNone, Trust: event.TrustNobody,
	What: event.Unprotected{},
}

func (q *nothing) Guard() (fl.Guard, error) {
	g := new(openGuard)
	return g, q.ready(&g.trainer)
}

func (q *nothing) Price(*fl.Broadcast) (event.Release, bool, error) { return bareRelease, true, nil }

func (q *nothing) PriceAhead(_ *fl.Participant, from int) (event.Release, int, error) {
	return bareRelease, q.cfg.Rounds - from, nil
}

func (q *nothing) Spend(p *fl.Participant) (account.Guarantee, *account.Guarantee, error) {
	return unprotected(p.Plan.Target.Delta), nil, nil
}

// unprotected is what is kept without noise.
func unprotected(delta float64) account.Guarantee {
	return account.Guarantee{
		Claim: event.ClaimNone, Unit: event.UnitClient, Relation: event.ReplaceOne, Trust: event.TrustNobody,
		Epsilon: math.Inf(1), Delta: delta, NotCovered: []string{"everything: the trained vectors are sent as they are"},
	}
}

// openGuard lets out what was trained.
type openGuard struct{ trainer }

func (g *openGuard) Open(b *fl.Broadcast, p *fl.Participant) (bool, error) {
	g.begin(b, p)
	if p.Purse != nil {
		paid, err := p.Pay(b.Round, bareRelease)
		if err != nil || paid == nil {
			return false, err
		}
	}
	p.Account.AddUnprotected()
	p.Paid.Rounds++
	return true, nil
}

func (g *openGuard) Train(b *fl.Broadcast, p *fl.Participant, theta, centre []float64, reg fl.Pull) error {
	if err := g.trainer.Train(b, p, theta, centre, reg); err != nil {
		return err
	}
	g.finite(b, p, theta, centre)
	return nil
}

// SendsAsTrained: nothing is protected.
func (g *openGuard) SendsAsTrained() {}

func (g *openGuard) Send(_ *fl.Broadcast, _ *fl.Participant, out, theta, _ []float64) (bool, error) {
	copy(out, theta)
	return true, nil
}
