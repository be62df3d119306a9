package fl

import (
	"errors"
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
)

// ErrRefused means that a budget would be exceeded.
var ErrRefused = errors.New("refused for privacy")

// Check lists what is wrong with the algorithm, privacy and judge blocks: what the
// method cannot do, and what the protection cannot cover of what the method does.
func Check(run config.Run) config.Faults {
	var c config.Checker
	method, err := methodOf(run)
	c.Require(err == nil, "algorithm.kind", "%v", err)
	protection, err := protectionOf(run)
	c.Require(err == nil, "privacy.protects", "%v", err)
	if faults := c.Faults(); faults != nil {
		return faults
	}
	method.Check(&c, run)
	checkEvaluate(&c, run)
	if k, err := data.KindOf(run.Data); err == nil && k.Clients != nil { // otherwise they are known when data are loaded
		train, validation := k.Clients(run.Data)
		CheckCounts(&c, run, train, validation)
	}
	if outline, err := outlineOf(method, run); err == nil {
		protection.Check(&c, run, outline)
		c.Require((outline.Moments > 0) == (run.Model.Kind == "projection"), "model.kind", "is %q, but algorithm.kind is %s: a projection is what pca and pca-local find, and all that they find", run.Model.Kind, run.Algorithm.Kind)
	}
	return c.Faults()
}

// checkEvaluate holds the evaluation round against what its counts can say.
func checkEvaluate(c *config.Checker, run config.Run) {
	e, stop := run.Judge.Evaluate, run.Algorithm.Stop
	c.Require(e.Epsilon == 0 || stop.Return == "last" && stop.Patience == 0, "judge.evaluate", "is of the models after the last round, but algorithm.stop chooses others by held-out losses, which nobody pays for; allowed: stop.return last, stop.patience 0")
	shape, _ := data.ShapeOf(run.Data)
	c.Require(e.Epsilon == 0 || shape.Windows == 0, "judge.evaluate", "counts rows that are held out, but people are judged by their own later days, and by contacts that others' records hold; what that costs is not accounted for; allowed: none")
	c.Require(e.Epsilon > 0 || e == (config.Evaluate{}), "judge.evaluate.epsilon", "is 0, so that there is no evaluation round; allowed beside bins or bound: more than 0")
	c.Require(e.Bins%2 == 0, "judge.evaluate.bins", "is %d; allowed: even numbers up to 1000 (the answer changes at probability 0.5, which must lie between two bins)", e.Bins)
}

// OutlineOf is that of the run file's method.
func OutlineOf(run config.Run) (Outline, error) {
	k, err := methodOf(run)
	if err != nil {
		return Outline{}, err
	}
	return outlineOf(k, run)
}

// outlineOf is the method's without a model: nothing of it depends on one.
func outlineOf(k MethodKind, run config.Run) (Outline, error) {
	if run.Algorithm.Hypotheses < 1 || run.Algorithm.Rounds < 1 {
		return Outline{}, fmt.Errorf("no hypotheses or no rounds")
	}
	m, err := k.New(Setup{Run: run, Parameters: 1, Participants: 1})
	if err != nil {
		return Outline{}, err
	}
	return m.Outline(), nil
}

// CheckCounts holds the settings against the number of clients.
func CheckCounts(c *config.Checker, run config.Run, train, validation int) {
	a := run.Algorithm
	c.Require(a.ClientsPerRound <= train, "algorithm.clients_per_round",
		"%d is more than the %d clients that train; allowed: 1 to %d", a.ClientsPerRound, train, train)
	if run.Judge.By != "clients" {
		return
	}
	c.Require(a.Stop.ValidationClients <= validation, "algorithm.stop.validation_clients",
		"%d is more than the %d clients that validate; allowed: 0 to %d", a.Stop.ValidationClients, validation, validation)
	c.Require(validation > 0, "judge.by", "is clients, but the data hold none out; allowed: own (or a smaller data.train_share)")
}

// Affordable refuses a run in which no client could ever make a release.
func Affordable(run config.Run, parameters int) error {
	c, nu := run.Privacy.Ceiling, run.Privacy.NoiseMultiplier
	if c == nil || run.Privacy.Protects != "update" || float64(parameters)/nu <= *c*(1+1e-12) {
		return nil
	}
	if nu == 0 {
		return fmt.Errorf("%w: privacy.noise_multiplier is 0, and a release without noise is above privacy.ceiling %v: no client could ever take part; privacy.noise_multiplier %s would do, or privacy.ceiling null",
			ErrRefused, *c, account.Upward(float64(parameters)/(*c)))
	}
	return fmt.Errorf("%w: one release costs %d/%v = %s, above privacy.ceiling %v: no client could ever take part; a ceiling of %s would do, or privacy.noise_multiplier %s",
		ErrRefused, parameters, nu, account.Upward(float64(parameters)/nu), *c, account.Upward(float64(parameters)/nu), account.Upward(float64(parameters)/(*c)))
}
