package fl

import (
	"errors"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// ErrRefused means that a budget would be exceeded.
var ErrRefused = errors.New("refused for privacy")

// Check lists what is wrong with the algorithm and privacy blocks.
func Check(run config.Run) config.Faults {
	var c config.Checker
	if !checkKind(&c, run) {
		return c.Faults()
	}
	if run.Data.OfSilos() {
		return checkSilo(run)
	}
	a, p := run.Algorithm, run.Privacy
	if k, err := data.KindOf(run.Data); err == nil && k.Clients != nil { // otherwise they are known when data are loaded
		train, validation := k.Clients(run.Data)
		CheckCounts(&c, a, train, validation)
	}
	c.Require(a.Empty != "split", "algorithm.empty", "is split, which needs releases that name their cluster; allowed: keep, relocate")
	s, _ := data.ShapeOf(run.Data)
	c.Require(s.Pictures() || a.Local.Loss != "cross-entropy", "algorithm.local.loss", "is %q, but rows have real targets; allowed: squared-error, rmse", a.Local.Loss)
	switch a.Kind {
	case "fedavg":
		c.Require(a.Hypotheses == 1, "algorithm.hypotheses", "is %d, but fedavg has one model; allowed: 1 (or use ifca)", a.Hypotheses)
		fallthrough
	case "ifca":
		c.Require(p.NoiseMultiplier == 0, "privacy.noise_multiplier",
			"is %v, but %s adds no noise; allowed: 0 (or use group-private)", p.NoiseMultiplier, a.Kind)
	}
	if a.Mode == "sound" && p.NoiseMultiplier > 0 {
		c.Require(p.Radius > 0, "privacy.radius", "is %v, but sound mode clips to it; allowed: more than 0", p.Radius)
		last := p.Radius * math.Pow(p.RadiusDecay, float64(a.Rounds-1))
		c.Require(p.Radius == 0 || last > 1e-100, "privacy.radius_decay",
			"%v makes the radius of round %d %.3g; allowed: what keeps it above 1e-100", p.RadiusDecay, a.Rounds, last)
	}
	return c.Faults()
}

// CheckCounts holds the settings against the number of clients.
func CheckCounts(c *config.Checker, a config.Algorithm, train, validation int) {
	c.Require(a.ClientsPerRound <= train, "algorithm.clients_per_round",
		"%d is more than the %d clients that train; allowed: 1 to %d", a.ClientsPerRound, train, train)
	c.Require(a.Stop.ValidationClients <= validation, "algorithm.stop.validation_clients",
		"%d is more than the %d clients that validate; allowed: 0 to %d", a.Stop.ValidationClients, validation, validation)
	c.Require(validation > 0, "data.train_share", "leaves no client to validate; allowed: less")
}

// Affordable refuses a run in which no client could ever make a release.
func Affordable(run config.Run, parameters int) error {
	c, nu := run.Privacy.Ceiling, run.Privacy.NoiseMultiplier
	switch {
	case c == nil:
		return nil
	case nu == 0:
		return fmt.Errorf("%w: privacy.ceiling is %v, but without noise every release is unprotected; set privacy.noise_multiplier or remove the ceiling", ErrRefused, *c)
	case float64(parameters)/nu > *c*(1+1e-12):
		return fmt.Errorf("%w: one release costs %d/%v = %.4g, above privacy.ceiling %v: no client could ever take part; raise the ceiling or privacy.noise_multiplier",
			ErrRefused, parameters, nu, float64(parameters)/nu, *c)
	}
	return nil
}
