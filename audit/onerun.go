package audit

import (
	"cmp"
	"context"
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

// The kinds of canaries of a one-run audit.
const (
	CanaryGradients = "gradients" // against the mechanism: the attacker sees every step
	CanaryExamples  = "examples"  // against the model: the attacker sees what is returned
)

// OneRunOptions say what is planted in the one training.
type OneRunOptions struct {
	Canaries   int
	Guesses    int     // 0: a tenth of the canaries
	Kind       string  // empty: CanaryGradients
	StepsOnly  bool    // gradients alone: no data and no model, a coordinate a canary
	Client     string  // whose steps; empty: the first one's
	Delta      float64 // at which epsilon is compared; 0: the run's
	Confidence float64 // 0: 0.95
	Tick       func(round int)
}

// OneRun is what one training reveals of its canaries. Epsilons are at Privacy.Delta.
type OneRun struct {
	Kind       string  `json:"canaries_are"` // gradients or examples
	Canaries   int     `json:"canaries"`
	In         int     `json:"in"`      // by their coins
	Guesses    int     `json:"guesses"` // fixed beforehand
	Right      int     `json:"right"`
	StepsOnly  bool    `json:"steps_only"`
	Client     string  `json:"client"`
	Parameters int     `json:"parameters"`
	Rounds     int     `json:"rounds"`
	Steps      int     `json:"steps"` // in all
	Rate       float64 `json:"rate"`
	Multiplier float64 `json:"noise_multiplier"` // as charged
	Noise      string  `json:"noise"`            // simulated, exact or exact-seeded
	Score      string  `json:"score"`
	Confidence float64 `json:"confidence"`
	// Privacy is the claim: what was charged, by the run's own accountant.
	Privacy event.Statement `json:"privacy"`
	AtLeast event.Number    `json:"epsilon_at_least"`
	// Ceiling is what AtLeast could have been, had every guess been right.
	Ceiling event.Number `json:"epsilon_ceiling"`
	Exceeds bool         `json:"exceeds"`
	Verdict string       `json:"verdict"`
	Assumes []string     `json:"assumes"`

	in, out []float64 // scores of canaries that are in and out
}

// Check says what cannot be played.
func (o OneRunOptions) Check() error {
	switch {
	case o.Canaries < 10 || o.Canaries > mostCanaries:
		return fmt.Errorf("one run: %d canaries; allowed: 10 to %d", o.Canaries, mostCanaries)
	case o.Guesses < 0 || o.Guesses > o.Canaries:
		return fmt.Errorf("one run: %d guesses about %d canaries; allowed: 1 to %d, or 0 for a tenth", o.Guesses, o.Canaries, o.Canaries)
	case o.Kind != "" && o.Kind != CanaryGradients && o.Kind != CanaryExamples:
		return fmt.Errorf("one run: canaries that are %q; allowed: %s, %s", o.Kind, CanaryGradients, CanaryExamples)
	case o.StepsOnly && o.Kind == CanaryExamples:
		return fmt.Errorf("one run: steps alone train no model that examples could show in; allowed: canaries that are %s", CanaryGradients)
	case !(o.Delta >= 0 && o.Delta < 1):
		return fmt.Errorf("one run: delta %v; allowed: above 0 and below 1, or 0 for the run's", o.Delta)
	case o.Confidence != 0 && !(o.Confidence >= 0.5 && o.Confidence <= 1-1e-9):
		return fmt.Errorf("one run: confidence %v; allowed: 0.5 to 0.999999999", o.Confidence)
	}
	return nil
}

// settled is the options with what was left open.
func (o OneRunOptions) settled(run config.Run) OneRunOptions {
	o.Kind = cmp.Or(o.Kind, CanaryGradients)
	o.Guesses = cmp.Or(o.Guesses, o.Canaries/10)
	o.Delta, o.Confidence = cmp.Or(o.Delta, run.Privacy.Delta), cmp.Or(o.Confidence, 0.95)
	return o
}

// PlayOneRun plants canaries in one training of a run and guesses afterwards which of
// them were in. Data come from the folder, if the run needs it. What was trained is thrown
// away.
func PlayOneRun(ctx context.Context, run config.Run, folder *data.Folder, o OneRunOptions) (OneRun, error) {
	return playOneRun(ctx, run, o, func() (*data.Federation, error) { return folder.Load(run.Data, run.Seed) })
}

func playOneRun(ctx context.Context, run config.Run, o OneRunOptions, load func() (*data.Federation, error)) (OneRun, error) {
	if err := o.Check(); err != nil {
		return OneRun{}, err
	}
	if faults := append(fl.Check(run), CheckGradients(run)...); len(faults) > 0 {
		return OneRun{}, fmt.Errorf("one run: %w", faults)
	}
	o = o.settled(run)
	played := oneRun{run: run, o: o, canaries: coinCanaries(o.Canaries, run.Seed)}
	if o.StepsOnly {
		played.client, played.parameters = o.Client, o.Canaries
		if err := played.canaries.playSteps(ctx, run, o.Client, nil, o.Tick); err != nil {
			return OneRun{}, err
		}
		return played.judge()
	}
	federation, err := load()
	if err != nil {
		return OneRun{}, err
	}
	if err := played.train(ctx, federation); err != nil {
		return OneRun{}, err
	}
	return played.judge()
}

// oneRun is a training with canaries that has been made.
type oneRun struct {
	run        config.Run
	o          OneRunOptions
	canaries   *gradientCanaries // of examples, too: their coins, scores and charges
	client     string
	parameters int
	uncovered  []string
}

// What the attacker goes by.
const (
	scoreSteps = "likelihood ratio of the canary's coordinate, over all noised steps"
	scoreLoss  = "loss of the canary under the returned model"
)

// judge turns scores into the bound.
func (p *oneRun) judge() (OneRun, error) {
	o, g := p.o, p.canaries
	if len(g.charged) == 0 {
		return OneRun{}, fmt.Errorf("one run: %q was asked in none of the %d rounds; name another participant, or ask more of them a round (algorithm.clients_per_round)", p.client, p.run.Algorithm.Rounds)
	}
	curve := canaryCurve{charged: g.charged, exact: p.run.Privacy.Noise != "simulated"}
	claim, err := curve.claim(o.Delta)
	if err != nil {
		return OneRun{}, fmt.Errorf("one run: %w", err)
	}
	privacy, err := fl.StateSpends(p.run, []account.Guarantee{claim}, []*account.Guarantee{nil}, p.uncovered)
	if err != nil {
		return OneRun{}, fmt.Errorf("one run: %w", err)
	}
	out := OneRun{
		Kind: o.Kind, Canaries: o.Canaries, Guesses: o.Guesses, StepsOnly: o.StepsOnly, Client: p.client, Parameters: p.parameters,
		Rounds: len(g.charged), Rate: g.round.rate, Multiplier: g.round.noise, Noise: p.run.Privacy.Noise,
		Score: scoreSteps, Confidence: o.Confidence, Privacy: privacy.Statement, Assumes: oneRunAssumes,
		Right: guessByRank(g.scores, g.in, o.Guesses),
	}
	if o.Kind == CanaryExamples {
		out.Score = scoreLoss
	}
	for _, r := range g.charged {
		round := canaryRound{}
		if err := round.read(r.What, 1); err != nil {
			return OneRun{}, fmt.Errorf("one run: %w", err)
		}
		out.Steps += round.steps
	}
	sides := g.sides()
	out.out, out.in, out.In = sides[0], sides[1], len(sides[1])
	bound, err := OneRunBound(o.Canaries, o.Guesses, out.Right, o.Delta, o.Confidence)
	if err != nil {
		return OneRun{}, err
	}
	ceiling, err := OneRunCeiling(o.Canaries, o.Guesses, o.Delta, o.Confidence)
	if err != nil {
		return OneRun{}, err
	}
	out.AtLeast, out.Ceiling = event.Number(bound), event.Number(ceiling)
	out.Exceeds = out.AtLeast > out.Privacy.Epsilon
	out.Verdict = out.verdict()
	return out, nil
}

// oneRunAssumes is what the bound rests on.
var oneRunAssumes = []string{
	"every canary was in or out by a fair coin of its own, and nothing but the training depends on the coins",
	"the number of guesses was fixed beforehand: the best one chosen afterwards is no bound",
}

func (r *OneRun) verdict() string {
	least, ceiling, claim := float64(r.AtLeast), float64(r.Ceiling), float64(r.Privacy.Epsilon)
	switch {
	case r.Exceeds:
		return fmt.Sprintf("the training leaks more than it claims: epsilon is at least %.4g, %.4g was charged", least, claim)
	case ceiling < claim:
		return fmt.Sprintf("nothing was found: epsilon is at least %.4g, %.4g was charged; %d guesses about %d canaries could not have shown more than %.4g, so that this audit cannot refute the claim", least, claim, r.Guesses, r.Canaries, ceiling)
	}
	return fmt.Sprintf("nothing was found: epsilon is at least %.4g, %.4g was charged; that does not show that the claim holds", least, claim)
}
