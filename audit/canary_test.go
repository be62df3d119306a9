package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

// canaryPairs is 2,000, or what -soak asks for.
func canaryPairs() int {
	if *soak {
		return 60_000
	}
	return 2_000
}

// canaryRunOf is the default run with other batches, and noise that repeats.
func canaryRunOf(batch, size, epochs, rounds int) config.Run {
	run := DefaultCanaryRun()
	run.Seed, run.Privacy.Noise = 1, "simulated"
	run.Algorithm.Local.Batch, run.Privacy.PublicSize = batch, size
	run.Algorithm.Local.Epochs, run.Algorithm.Rounds = epochs, rounds
	return run
}

// withFault is the run with the noise that the honest one was charged for, and then
// what is planted.
func withFault(run config.Run, honest *canaryGame, plant func(*config.Run)) config.Run {
	run.Privacy.Epsilon, run.Privacy.NoiseMultiplier = 0, honest.attack[0].noise
	plant(&run)
	return run
}

func timesNoise(factor float64) func(*config.Run) {
	return func(run *config.Run) { run.Privacy.NoiseMultiplier *= factor }
}

func mustPlan(t *testing.T, run config.Run, o CanaryOptions) *canaryPlan {
	t.Helper()
	game, err := newCanaryGame(run, o.Runs)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := game.plan(o)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// mustJudge plays one game and holds it against what another was charged.
func mustJudge(t *testing.T, plan *canaryPlan, played *canaryGame) Canary {
	t.Helper()
	scores, err := played.play(context.Background(), plan.game.attack, plan.o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := plan.judge(scores)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustPlant(t *testing.T, plan *canaryPlan, plant func(*config.Run)) Canary {
	t.Helper()
	game, err := newCanaryGame(withFault(plan.game.run, plan.game, plant), plan.o.Runs)
	if err != nil {
		t.Fatal(err)
	}
	return mustJudge(t, plan, game)
}

func logCanary(t *testing.T, name string, c Canary) {
	t.Helper()
	t.Logf("%s: claim %.3f, tight %.3f, at least %.3f through the curve, %.3f without; %d of %d right, noise at most %.3f; false alarm %.1e, power %.4f",
		name, float64(c.Privacy.Epsilon), float64(c.Tight), float64(c.AtLeast), float64(c.CurveFree), c.Right, c.Guesses, float64(c.NoiseAtMost), c.FalseAlarm, c.Power)
}

// TestCanary is the audit of the shipped path: the bound lies between 0.7 of the
// tight epsilon and the claim, and passes the claim with 0.8 of the noise. Noise and
// batches follow from the seed, so that it does not waver.
func TestCanary(t *testing.T) {
	for _, c := range []struct {
		name  string
		run   config.Run
		steps int
		sums  bool // the server sees sums of several Poisson steps: less than was charged for
	}{
		{"full batches", canaryRunOf(4, 4, 1, 9), 1, false},
		{"poisson batches", canaryRunOf(3, 4, 1, 16), 1, false},
		{"several full steps a round", canaryRunOf(4, 4, 3, 4), 3, false},
		{"several poisson steps a round", canaryRunOf(2, 4, 1, 8), 2, true},
	} {
		plan := mustPlan(t, c.run, CanaryOptions{Runs: canaryPairs(), Delta: 1e-4, Confidence: 0.95})
		for _, noise := range []string{"simulated", fl.NoiseSeeded} {
			name := c.name + ", " + noise
			withNoise := func(run *config.Run) { run.Privacy.Noise = noise }
			honest := mustPlant(t, plan, withNoise)
			logCanary(t, name, honest)
			claim := honest.Privacy.Epsilon
			if !(claim >= 1) || claim > 8 || honest.Steps != c.steps || honest.Rounds != c.run.Algorithm.Rounds {
				t.Errorf("%s: claim %v, %d steps in %d rounds", name, claim, honest.Steps, honest.Rounds)
			}
			if honest.Exceeds || honest.AtLeast > claim || honest.AtLeast < 0.7*honest.Tight || honest.NoiseAtMost < 1 {
				t.Errorf("%s: at least %v, tight %v, claim %v, noise at most %v", name, honest.AtLeast, honest.Tight, claim, honest.NoiseAtMost)
			}
			if !(honest.CurveFree > 0 && honest.CurveFree < honest.AtLeast) {
				t.Errorf("%s: at least %v without the curve, %v with it", name, honest.CurveFree, honest.AtLeast)
			}
			weak := mustPlant(t, plan, func(run *config.Run) { withNoise(run); timesNoise(lessNoise)(run) })
			logCanary(t, name+", times 0.8", weak)
			if weak.NoiseAtMost >= 1 || weak.NoiseAtMost < lessNoise {
				t.Errorf("%s: 0.8 of the noise looks like at most %v of it", name, weak.NoiseAtMost)
			}
			if weak.Exceeds != (weak.AtLeast > claim) || !weak.Exceeds && (!c.sums || *soak) {
				t.Errorf("%s: 0.8 of the noise shows %v of the claimed %v: power %v", name, weak.AtLeast, claim, weak.Power)
			}
		}
		if plan.falseAlarm > 1e-5 || !c.sums && plan.power < 0.99 {
			t.Errorf("%s: a false alarm has the chance %v, power %v", c.name, plan.falseAlarm, plan.power)
		}
	}
}

// TestCanaryFindsPlantedFaults: what else a silo could do wrong, at the default
// settings. 4,000 pairs miss the fainter ones, clip and rate, once in some hundred
// times; these seeds do not.
func TestCanaryFindsPlantedFaults(t *testing.T) {
	plan := mustPlan(t, canaryRunOf(3, 4, 1, 16), CanaryOptions{Runs: 4000, Delta: 1e-4, Confidence: 0.95})
	for name, plant := range map[string]func(*config.Run){
		"noise times 0.8": timesNoise(0.8),
		"clip times 1.2": func(run *config.Run) {
			run.Privacy.Clip *= 1.2
			run.Privacy.NoiseMultiplier /= 1.2 // the noise stays as it was
		},
		"rate times 1.2": func(run *config.Run) { run.Algorithm.Local.Batch, run.Privacy.PublicSize = 9, 10 },
		"one step more in every round": func(run *config.Run) {
			run.Algorithm.Local.Epochs = 2
		},
	} {
		c := mustPlant(t, plan, plant)
		logCanary(t, name, c)
		if !c.Exceeds {
			t.Errorf("%s is not found: %s", name, c.Verdict)
		}
	}
}

// TestCanaryWithSystemEntropy: noise as in a federation, which nobody can repeat. A
// false alarm has the chance FalseAlarm, which the test holds below 1e-6, as it does
// that of missing 0.6 of the noise.
func TestCanaryWithSystemEntropy(t *testing.T) {
	run := DefaultCanaryRun()
	if run.Privacy.Noise != "exact" {
		t.Fatalf("the default noise is %q", run.Privacy.Noise)
	}
	run.Seed = 3 // of the batches
	plan := mustPlan(t, run, CanaryOptions{Runs: canaryPairs(), Delta: 1e-4, Confidence: 0.99})
	enough, err := plan.curve.critical(0.7*plan.tight, plan.o)
	if err != nil {
		t.Fatal(err)
	}
	weak := plan.expected(0.6) - 0.003 // less the pilot's own error
	for name, chance := range map[string]float64{
		"a false alarm": plan.falseAlarm, "a bound below 0.7 of tight": 1 - binomialAtLeast(enough, plan.o.guesses(), plan.expected(1)-0.003),
		"a miss": 1 - binomialAtLeast(plan.overAt, plan.o.guesses(), weak),
	} {
		if chance > 1e-6 {
			t.Fatalf("%s has the chance %v: the test would waver", name, chance)
		}
	}
	honest := mustJudge(t, plan, plan.game)
	logCanary(t, "system entropy", honest)
	if honest.Exceeds || honest.AtLeast < 0.7*honest.Tight {
		t.Errorf("at least %v, tight %v, claim %v", honest.AtLeast, honest.Tight, honest.Privacy.Epsilon)
	}
	if c := mustPlant(t, plan, timesNoise(0.6)); !c.Exceeds {
		t.Errorf("0.6 of the noise: %s", c.Verdict)
	}
}

// tattler is a pipeline that tells of the canary without noise.
type tattler struct {
	pipeline
	tell func(p *fl.Participant, out []float64) error
}

func (a tattler) Respond(w *fl.Worker, b fl.Broadcast, p *fl.Participant, out []float64) (bool, error) {
	released, err := a.pipeline.Respond(w, b, p, out)
	if err == nil && p.Data.Len() > ordinaryRows && b.Round == 2 {
		err = a.tell(p, out)
	}
	return released, err
}

// TestCanarySeesWhatCarriesNoNoise: a price that depends on the canary needs no
// statistics.
func TestCanarySeesWhatCarriesNoNoise(t *testing.T) {
	for name, tell := range map[string]func(p *fl.Participant, out []float64) error{
		"a price": func(p *fl.Participant, _ []float64) error {
			return p.Purse.Reserve(2, event.Release{What: event.Gaussian{Noise: 1}})
		},
	} {
		game, err := newCanaryGame(canaryRunOf(3, 4, 1, 4), 20)
		if err != nil {
			t.Fatal(err)
		}
		game.algorithm = tattler{game.algorithm, tell}
		if _, err := game.play(context.Background(), game.attack, CanaryOptions{Runs: 20}); !errors.Is(err, ErrCanary) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCanaryOfEveryLoss: hinge and logistic losses saturate as squares do, and an
// intercept changes nothing.
func TestCanaryOfEveryLoss(t *testing.T) {
	for _, loss := range []string{"hinge", "cross-entropy", "squared-error"} {
		run := canaryRunOf(4, 4, 1, 4)
		run.Data.Kind, run.Algorithm.Local.Loss, run.Privacy.Clip = "vehicle", loss, 6
		for _, run.Model.Intercept = range []bool{false, true} {
			plan := mustPlan(t, run, CanaryOptions{Runs: 2000, Delta: 1e-4, Confidence: 0.95})
			c := mustJudge(t, plan, plan.game)
			if c.AtLeast < 0.7*c.Tight || c.Exceeds {
				t.Errorf("loss %s, intercept %v: %+v", loss, run.Model.Intercept, c)
			}
		}
	}
}

// TestCanaryRepeats: with seeded noise the same options give the same bytes, another
// seed other ones; a stop is obeyed.
func TestCanaryRepeats(t *testing.T) {
	play := func(seed uint64) string {
		run := canaryRunOf(4, 4, 1, 4)
		run.Seed = seed
		ticks := 0
		c, err := PlayCanary(context.Background(), run, CanaryOptions{Runs: 300, Tick: func(runs int) { ticks = runs }})
		if err != nil || ticks != 300 {
			t.Fatal(err, ticks)
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if a, b := play(5), play(5); a != b {
		t.Errorf("%s\nand then\n%s", a, b)
	}
	if a, b := play(5), play(6); a == b {
		t.Error("another seed changes nothing")
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if _, err := PlayCanary(stopped, canaryRunOf(4, 4, 1, 4), CanaryOptions{Runs: 300}); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped audit: %v", err)
	}
}

func TestCanaryRefuses(t *testing.T) {
	for path, change := range map[string]func(*config.Run){
		"data.kind":        func(r *config.Run) { *r = config.Default("rotated-mnist", "fedavg", "sound") },
		"algorithm.kind":   func(r *config.Run) { r.Algorithm.Kind = "mr-mtl" },
		"algorithm.mode":   func(r *config.Run) { r.Algorithm.Mode = "paper" },
		"privacy.relation": func(r *config.Run) { r.Privacy.Relation = "replace-one" },
		"privacy.epsilon":  func(r *config.Run) { r.Privacy.Epsilon = 0 },
		"data.standardise": func(r *config.Run) { r.Data.Standardise = "paid" },
	} {
		run := DefaultCanaryRun()
		change(&run)
		faults := CheckCanary(run)
		if !slices.ContainsFunc(faults, func(f config.Fault) bool { return f.Path == path }) {
			t.Errorf("%s: %v", path, faults)
		}
		if _, err := PlayCanary(context.Background(), run, CanaryOptions{Runs: 10}); err == nil {
			t.Errorf("%s is accepted", path)
		}
	}
	if faults := append(CheckCanary(DefaultCanaryRun()), fl.Check(DefaultCanaryRun())...); len(faults) > 0 {
		t.Errorf("the default run: %v", faults)
	}
	for _, o := range []CanaryOptions{{Runs: 9}, {Runs: 100, Delta: 1}, {Runs: 100, Delta: -1}, {Runs: 100, Confidence: 1}, {Runs: 100, Confidence: 0.4}} {
		if _, err := PlayCanary(context.Background(), DefaultCanaryRun(), o); err == nil || !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, e := range []event.Event{
		event.Laplace{Scale: 1}, event.Unprotected{},
		event.Sampled{Sampling: event.WithoutReplacement, Batch: 1, Examples: 2, Of: event.Gaussian{Noise: 1}},
		event.Composed{Parts: []event.Event{event.Gaussian{Noise: 1}, event.Gaussian{Noise: 2}}},
		event.Repeated{Times: 1 << 40, Of: event.Gaussian{Noise: 1}},
	} {
		if _, err := newCanaryAttack([]event.Release{{What: e}}); err == nil {
			t.Errorf("%s: an attack is known", fmt.Sprintf("%T %+v", e, e))
		}
	}
}
