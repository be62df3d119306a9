package audit

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/pool"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// pipeline is the shipped path, as far as the game needs it.
type pipeline interface {
	Start() *fl.State
	ReleaseLength() int
	Prepare(p *fl.Participant) error
	Broadcast(st *fl.State) (fl.Broadcast, error)
	Respond(w *fl.Worker, b fl.Broadcast, p *fl.Participant, out []float64) (bool, error)
}

// canaryGame is a hostile server against the shipped path of one silo. A run goes
// through all its rounds; the server sends what it likes and sees what comes back.
type canaryGame struct {
	run       config.Run
	algorithm pipeline
	silo      [2]data.Client // without the canary, with it
	prepared  [2]fl.Participant
	start     float64 // the canary's weight in every broadcast
	unit      float64 // what turns a change of that weight into clips
	// The trial run's, which all others must repeat whoever is in the silo: what is
	// charged.
	charged []event.Release
	attack  canaryAttack
}

// newCanaryGame prepares the silo and makes one trial run, which tells what is
// charged.
func newCanaryGame(run config.Run, runs int) (*canaryGame, error) {
	if faults := append(fl.Check(run), CheckCanary(run)...); len(faults) > 0 {
		return nil, fmt.Errorf("canary: %w", faults)
	}
	run.Data.Standardise, run.Data.Centre, run.Data.Scale = "none", nil, nil
	silo, m, err := canarySilo(run)
	if err != nil {
		return nil, err
	}
	g := &canaryGame{run: run, silo: silo}
	algorithm, err := fl.New(run, m, 2*runs+1)
	if err != nil {
		return nil, fmt.Errorf("canary: %w", err)
	}
	g.algorithm = algorithm
	for side := range g.prepared {
		p := &g.prepared[side]
		p.Name, p.Data = "canary audit", &g.silo[side]
		if err := g.algorithm.Prepare(p); err != nil {
			return nil, fmt.Errorf("canary: %w", err)
		}
	}
	plan, clip, step := &g.prepared[0].Plan, run.Privacy.Clip, run.Algorithm.Local.Step
	g.unit = float64(plan.Batch) / (step * clip)
	// However a round's noise falls, the weight stays above the clip, where every
	// loss has a steep gradient that points the same way.
	steps := float64(plan.Steps)
	g.start = clip + (steps+40*plan.Noise*math.Sqrt(steps))/g.unit

	trial, err := g.playOne(new(fl.Worker), 2*runs, 0, nil)
	if err != nil {
		return nil, err
	}
	g.charged = trial.charged
	g.attack, err = newCanaryAttack(g.charged)
	return g, err
}

// canaryRun is one run as the server saw it, and what the silo paid for it.
type canaryRun struct {
	score   float64
	charged []event.Release
}

// Reserve notes what a release costs: the purse of a silo that allows everything.
func (r *canaryRun) Reserve(_ int, release event.Release) error {
	r.charged = append(r.charged, release)
	return nil
}

// playOne plays a run with a silo of its own: id keys the silo's randomness.
func (g *canaryGame) playOne(w *fl.Worker, id, side int, attack canaryAttack) (canaryRun, error) {
	var seen canaryRun
	p := g.prepared[side]
	p.ID, p.Personal, p.Purse = id, slices.Clone(p.Personal), &seen
	st := g.algorithm.Start()
	out := make([]float64, g.algorithm.ReleaseLength())
	for round := range g.run.Algorithm.Rounds {
		st.Round = round
		clear(st.Hypotheses)
		st.Hypotheses[canaryFeature] = g.start
		b, err := g.algorithm.Broadcast(st)
		if err != nil {
			return seen, fmt.Errorf("canary: %w", err)
		}
		released, err := g.algorithm.Respond(w, b, &p, out)
		if err != nil {
			return seen, fmt.Errorf("canary: %w", err)
		}
		if !released {
			return seen, fmt.Errorf("canary: %w: the silo declines round %d although its purse allows everything", fl.ErrRefused, round+1)
		}
		if attack != nil {
			seen.score += attack[round].logRatio((g.start - out[canaryFeature]) * g.unit)
		}
	}
	return seen, nil
}

// canaryScores are what the attack made of every run: the higher, the more it looks
// as if the canary were there.
type canaryScores [2][]float64 // without the canary, with it

// playedAtOnce is how many runs are made between two looks at the context.
const playedAtOnce = 256

// play makes all runs. Which worker makes which does not show.
func (g *canaryGame) play(ctx context.Context, attack canaryAttack, o CanaryOptions) (canaryScores, error) {
	var scores canaryScores
	for side := range scores {
		scores[side] = make([]float64, o.Runs)
	}
	workers := pool.New(runtime.GOMAXPROCS(0))
	defer workers.Close()
	memory := make([]fl.Worker, workers.Workers())
	faults := make([]error, 2*playedAtOnce)
	for from := 0; from < o.Runs; from += playedAtOnce {
		if err := ctx.Err(); err != nil {
			return scores, err
		}
		n := min(playedAtOnce, o.Runs-from)
		workers.Each(2*n, func(worker, i int) {
			run, side := from+i/2, i%2
			seen, err := g.playOne(&memory[worker], 2*run+side, side, attack)
			if err == nil {
				err = g.repeats(seen, side)
			}
			scores[side][run], faults[i] = seen.score, err
		})
		for _, err := range faults[:2*n] {
			if err != nil {
				return scores, err
			}
		}
		if o.Tick != nil {
			o.Tick(from + n)
		}
	}
	return scores, nil
}

// repeats holds what carries no noise against the trial run: it must be the same
// whatever is in the silo.
func (g *canaryGame) repeats(seen canaryRun, side int) error {
	who := [2]string{"without", "with"}[side]
	if !reflect.DeepEqual(seen.charged, g.charged) {
		return fmt.Errorf("canary: %w: what is charged differs from run to run (%s the canary): the price must follow from public numbers alone", ErrCanary, who)
	}
	return nil
}

// The tiny silo: a few ordinary rows, and a feature that the canary alone has.
const (
	ordinaryRows     = 7
	ordinaryFeatures = 3
	canaryFeature    = ordinaryFeatures
	// canaryValue makes the canary's gradient far longer than any clip, and its share
	// of the intercept's gradient a millionth.
	canaryValue = 1000
)

// noCanary finds people, of whom no canary is made: nothing else of their run file matters.
func noCanary(c *config.Checker, shape data.Shape, kind string) {
	c.Require(shape.Windows == 0, "data.kind", "is %s, whose people are in each other's examples: a canary is one example, and this audit plants no person with its contacts; allowed: data of rows or pictures (coterie audit mechanism plays the noised steps of such a run)", kind)
}

// CheckCanary lists what a run file must say so that its pipeline can be audited.
func CheckCanary(run config.Run) config.Faults {
	var c config.Checker
	d, a, p := run.Data, run.Algorithm, run.Privacy
	shape, _ := data.ShapeOf(d)
	if noCanary(&c, shape, d.Kind); len(c.Faults()) > 0 {
		return c.Faults()
	}
	c.Require(!shape.Pictures(), "data.kind", "is %q; a canary is a row: allowed: data of rows", d.Kind)
	c.Require(p.Protects == "example", "privacy.protects", "is %q; a canary is one example: allowed: example", p.Protects)
	c.Require(a.Kind == "fedavg" && a.WarmStart == 0, "algorithm.kind", "is %q with warm_start %v; the canary audit plays fedavg without a warm start", a.Kind, a.WarmStart)
	c.Require(a.Mode == "sound", "algorithm.mode", "is %q; allowed: sound, where claims are proved", a.Mode)
	c.Require(p.Relation == string(event.AddRemove), "privacy.relation", "is %q; the canary is there or not: allowed: add-remove, with privacy.public_size", p.Relation)
	c.Require(p.Epsilon > 0 || p.NoiseMultiplier > 0, "privacy.epsilon", "is 0 without privacy.noise_multiplier: nothing is claimed that could be audited; give one of them")
	c.Require(d.Standardise != string(data.ByPaid), "data.standardise", "is paid, but the audit's rows are not scaled; allowed: public, none")
	return c.Faults()
}

// canarySilo is the silo without the canary and with it.
func canarySilo(run config.Run) ([2]data.Client, model.Model, error) {
	classes := 0
	if run.Data.Kind != "school" {
		classes = 2
	}
	var silo [2]data.Client
	family := rng.NewFamily(run.Seed, "canary silo")
	s := family.Stream(0, 0)
	rows := data.Rows{Features: ordinaryFeatures + 1}
	for range ordinaryRows {
		for range ordinaryFeatures {
			rows.X = append(rows.X, s.Normal())
		}
		rows.X = append(rows.X, 0)
		y := s.Normal()
		if classes == 2 {
			y = float64(s.Below(2))
		}
		rows.Y = append(rows.Y, y)
	}
	silo[0].Rows = rows
	silo[1].Rows = data.Rows{
		Features: rows.Features,
		X:        append(append([]float64{}, rows.X...), 0, 0, 0, canaryValue*max(1, run.Privacy.Clip)),
		Y:        append(append([]float64{}, rows.Y...), 0),
	}
	m, err := model.Of(run, data.Shape{Features: rows.Features, Classes: classes})
	if err != nil {
		return silo, nil, fmt.Errorf("canary: %w", err)
	}
	return silo, m, nil
}
