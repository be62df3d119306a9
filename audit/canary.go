package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

// ErrCanary means that a pipeline reveals more of one row than it claims.
var ErrCanary = errors.New("the pipeline leaks more than it claims")

// CanaryOptions say how long the audit plays.
type CanaryOptions struct {
	Runs       int     // with the canary, and as many without
	Delta      float64 // at which epsilon is compared; 0: the run's
	Confidence float64 // of both bounds together; 0: 0.95
	Tick       func(runs int)
}

// Canary is what a hostile server learned about one row of a tiny silo. Epsilons are
// at Privacy.Delta.
type Canary struct {
	Runs       int     `json:"runs"`
	Rounds     int     `json:"rounds"`
	Steps      int     `json:"steps"` // in a round
	Rate       float64 `json:"rate"`
	Multiplier float64 `json:"noise_multiplier"` // as charged
	Noise      string  `json:"noise"`            // simulated, exact or exact-seeded
	Confidence float64 `json:"confidence"`       // of both bounds together
	// Privacy is the claim: what was charged, by the run's own accountant.
	Privacy event.Statement `json:"privacy"`
	// Tight is the least epsilon that can be claimed for what was charged.
	Tight event.Number `json:"tight_epsilon"`
	// Right counts guesses: one for each run that did not serve to learn how to guess.
	Guesses int `json:"guesses"`
	Right   int `json:"right"`
	// Advantage is what they prove: true positives less false ones.
	Advantage float64 `json:"advantage_at_least"`
	// NoiseAtMost is a share of the noise that was charged: with more, the guesses
	// would not have been so good. "inf": they prove nothing.
	NoiseAtMost event.Number `json:"noise_at_most"`
	AtLeast     event.Number `json:"epsilon_at_least"`            // through the mechanism's curve
	CurveFree   event.Number `json:"curve_free_epsilon_at_least"` // without it
	// FalseAlarm, Power and HalfPower are chances that AtLeast exceeds the claim: of a
	// pipeline as charged, at most, of one with 0.8 of the noise, and of one with half.
	FalseAlarm float64  `json:"false_alarm"`
	Power      float64  `json:"power"`
	HalfPower  float64  `json:"power_at_half"`
	Exceeds    bool     `json:"exceeds"`
	Verdict    string   `json:"verdict"`
	Assumes    []string `json:"assumes"`

	in, out []float64 // scores with the canary and without
}

// DefaultCanaryRun is what is audited without a run file: settings at which 2,000
// pairs tell noise that is a fifth too small.
func DefaultCanaryRun() config.Run {
	run := config.Default("school", "fedavg", "sound")
	run.Name = "canary"
	run.Data.Standardise = "none"
	run.Algorithm.Rounds, run.Algorithm.Weights = 16, "equal"
	run.Algorithm.Local.Step, run.Algorithm.Local.Batch = 0.05, 3
	run.Privacy.Relation, run.Privacy.PublicSize = string(event.AddRemove), 4
	run.Privacy.Epsilon, run.Privacy.Delta = 8, 1e-4
	run.Privacy.Noise = "exact"
	return run
}

// PlayCanary audits a run's pipeline: a server that knows everything but whether the
// canary is there plays whole runs against the shipped path and guesses.
func PlayCanary(ctx context.Context, run config.Run, o CanaryOptions) (Canary, error) {
	if err := o.Check(); err != nil {
		return Canary{}, err
	}
	o.Delta, o.Confidence = cmp.Or(o.Delta, run.Privacy.Delta), cmp.Or(o.Confidence, 0.95)
	game, err := newCanaryGame(run, o.Runs)
	if err != nil {
		return Canary{}, err
	}
	plan, err := game.plan(o)
	if err != nil {
		return Canary{}, err
	}
	scores, err := game.play(ctx, game.attack, o)
	if err != nil {
		return Canary{}, err
	}
	return plan.judge(scores)
}

// Check says what cannot be played.
func (o CanaryOptions) Check() error { return o.check("runs", 10_000_000) }

// CheckGradients is Check where what is counted are canaries, in and out of one play.
func (o CanaryOptions) CheckGradients() error { return o.check("canaries", mostCanaries/2) }

func (o CanaryOptions) check(counted string, most int) error {
	switch {
	case o.Runs < 10 || o.Runs > most:
		return fmt.Errorf("canary: %s = %d; allowed: 10 to %d, and there are as many more that go without", counted, o.Runs, most)
	case !(o.Delta >= 0 && o.Delta < 1):
		return fmt.Errorf("canary: delta %v; allowed: above 0 and below 1, or 0 for the run's", o.Delta)
	case o.Confidence != 0 && !(o.Confidence >= 0.5 && o.Confidence <= 1-1e-9):
		return fmt.Errorf("canary: confidence %v; allowed: 0.5 to 0.999999999", o.Confidence)
	}
	return nil
}

// canaryPlan is everything that is settled before the runs that count: what they are
// held against, and how the server guesses.
type canaryPlan struct {
	o      CanaryOptions
	game   *canaryGame
	claim  account.Guarantee
	tight  float64
	curve  canaryCurve
	tail   float64 // threshold of the curve-free bound
	overAt int     // right guesses from which on AtLeast exceeds the claim

	falseAlarm, power, halfPower float64
}

// level is each bound's share of what may go wrong.
func (o CanaryOptions) level() float64 { return (1 - o.Confidence) / 2 }

// learned is how many runs of each side settle how the server guesses; the others
// count.
func (o CanaryOptions) learned() int { return o.Runs / 16 }

// guesses is how many count, of both sides.
func (o CanaryOptions) guesses() int { return 2 * (o.Runs - o.learned()) }

// plan looks at nothing but what was charged.
func (g *canaryGame) plan(o CanaryOptions) (*canaryPlan, error) {
	p := &canaryPlan{o: o, game: g, curve: canaryCurve{charged: g.charged, exact: g.run.Privacy.Noise != "simulated"}}
	var err error
	if p.claim, err = p.curve.claim(o.Delta); err != nil {
		return nil, err
	}
	if _, p.tight, err = p.curve.epsilon(1, o.Delta); err != nil {
		return nil, err
	}
	p.tail = g.attack.draw(1, g.attack.pilots(), 1).bestThreshold(o)
	if p.overAt, err = p.curve.critical(p.claim.Epsilon, o); err != nil {
		return nil, err
	}
	advantage, err := p.curve.advantage()
	if err != nil {
		return nil, err
	}
	p.falseAlarm = binomialAtLeast(p.overAt, o.guesses(), (1+advantage)/2)
	p.power = binomialAtLeast(p.overAt, o.guesses(), p.expected(lessNoise))
	p.halfPower = binomialAtLeast(p.overAt, o.guesses(), p.expected(0.5))
	return p, nil
}

// expected is the share of right guesses where the noise is a share of what was
// charged.
func (p *canaryPlan) expected(share float64) float64 {
	s := p.game.attack.draw(share, p.game.attack.pilots(), 2)
	return float64(s.rightGuesses(s.threshold())) / float64(len(s[0])+len(s[1]))
}

// judge turns the scores of all runs into bounds.
func (p *canaryPlan) judge(scores canaryScores) (Canary, error) {
	o, g := p.o, p.game
	privacy, err := fl.StateSpends(g.run, []account.Guarantee{p.claim}, []*account.Guarantee{nil}, nil)
	if err != nil {
		return Canary{}, err
	}
	c := Canary{
		Runs: o.Runs, Rounds: g.run.Algorithm.Rounds, Steps: g.attack[0].steps, Rate: g.attack[0].rate, Multiplier: g.attack[0].noise,
		Noise: g.run.Privacy.Noise, Confidence: o.Confidence, Privacy: privacy.Statement, Tight: event.Number(p.tight),
		FalseAlarm: p.falseAlarm, Power: p.power, HalfPower: p.halfPower, Assumes: canaryAssumes, in: scores[1], out: scores[0],
	}
	c.Guesses, c.Right = o.guesses(), scores.guess(o)
	c.Advantage = advantageAtLeast(c.Right, o)
	share, err := p.curve.noiseAtMost(c.Advantage)
	if err != nil {
		return Canary{}, err
	}
	c.NoiseAtMost = event.Number(share)
	atLeast, err := p.curve.atLeast(share, o.Delta)
	if err != nil {
		return Canary{}, err
	}
	c.AtLeast = event.Number(atLeast)
	c.CurveFree = event.Number(scores.curveFree(p.tail, o))
	c.Exceeds = max(c.AtLeast, c.CurveFree) > c.Privacy.Epsilon
	c.Verdict = c.verdict()
	return c, nil
}

// canaryAssumes is what the bounds rest on.
var canaryAssumes = []string{
	"both: the runs are independent of one another",
	"through the curve: the releases have the trade-off curve of what was charged, with all noise times one unknown factor; a silo that errs otherwise is taken for the one of these that can be guessed as well",
}

func (c *Canary) verdict() string {
	claim := float64(c.Privacy.Epsilon)
	switch {
	case c.Exceeds:
		return fmt.Sprintf("the pipeline leaks more than it claims: epsilon is at least %.4g, %.4g was charged", float64(max(c.AtLeast, c.CurveFree)), claim)
	case c.Suspicious():
		return fmt.Sprintf("the claim of %.4g is not exceeded, but the noise is at most %.3f of what was charged: something is wrong, or this is the one audit in %.0f that errs", claim, float64(c.NoiseAtMost), 2/(1-c.Confidence))
	}
	return fmt.Sprintf("nothing was found: epsilon is at least %.4g, %.4g was charged; that does not show that the claim holds", float64(c.AtLeast), claim)
}

// Suspicious says that less noise than was charged is proved.
func (c *Canary) Suspicious() bool { return c.NoiseAtMost < 1 }
