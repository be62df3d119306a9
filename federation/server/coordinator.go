// Package server is the federation's server: it opens rounds, takes releases in, signs
// for them, and aggregates them.
package server

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/evaluate"
	"github.com/coterie-fl/coterie/model"
)

// Coordinator is the server without its network: it opens rounds, takes answers,
// closes rounds, and says who is refused and why. All it knows is in the store, so
// that another one goes on where it was killed.
type Coordinator struct {
	plan      plan.Plan
	text      []byte
	sum       [32]byte
	run       config.Run
	names     []string
	index     map[string]int
	start     int // participants that must be present before the first round
	model     model.Model
	algorithm *fl.Algorithm
	bounds    []fl.Bound // of a release's values
	small     int64      // bytes up to which a release is recorded with others
	sampler   *fl.Sampler
	// evaluation is the round after the last one; nil: the plan has none.
	evaluation *evaluate.Evaluation
	store      patient     // for the loop
	direct     store.Store // for what participants ask: they try again themselves
	signer     func() (ed25519.PrivateKey, error)
	scratch    string
	log        *slog.Logger
	seldom     *seldom // for lines that others can cause at will
	metrics    *metrics
	tracer     trace.Tracer
	span       trace.Span // of the open round
	spans      roundSpans // for the calls that belong to a round

	// gate is held for reading while an answer is recorded, and for writing while a
	// round opens or closes: an answer is part of its round or refused.
	gate     sync.RWMutex
	over     string // why the run ended, if it had ended before
	state    *fl.State
	before   *fl.State // when the round was opened
	round    *openRound
	reached  int // the last round that was opened; -1: none
	finished *Finished

	learnt    bool       // a round of training was closed
	evaluated *evaluated // what came of the evaluation, once it has ended

	draining atomic.Bool
	presence presence
	// chronicle is what those who watch are told.
	chronicle *chronicle
	news      bell // for participants: a round was opened, or the run has ended
	progress  bell // for the loop: somebody joined, answered or left
}

// Terms are what a coordinator needs besides the run.
type Terms struct {
	Plan  plan.Plan
	Names []string // of the participants, by index
	Start int      // participants that must be present before the first round
	Store store.Store
	// Signer is the key for receipts. It is asked for each time: keys may be rotated.
	Signer func() (ed25519.PrivateKey, error)
	// Patience is how long a store may fail to answer; 0 means 10 minutes.
	Patience time.Duration
	// Scratch is a folder for releases that are too many for memory; empty: none.
	Scratch string
	Log     *slog.Logger
	Tracer  trace.Tracer // nil: no traces

	small int64 // bytes up to which a release is recorded with others; 0: as many as a store takes
}

// Finished is a run that has ended.
type Finished struct {
	Rounds      int    `json:"rounds"`
	Abandoned   int    `json:"abandoned"`
	Stopped     string `json:"stopped"`
	ModelSHA256 string `json:"model_sha256"`

	models    content // safetensors
	broadcast content // what a further round would begin with
}

// The reasons why a run ends.
const (
	StoppedRounds = "rounds" // all rounds were made
	StoppedBudget = "budget" // so many have declined the rest that no round can succeed
)

// NewCoordinator prepares a run, or goes on with it if the store knows it.
func NewCoordinator(ctx context.Context, t Terms) (*Coordinator, error) {
	text, sum, err := t.Plan.Encode()
	if err != nil {
		return nil, err
	}
	_, run, err := plan.Parse(text)
	if err != nil {
		return nil, err
	}
	m, err := model.Of(run, t.Plan.Shape)
	if err != nil {
		return nil, err
	}
	if err := fl.Affordable(run, m.Parameters()); err != nil {
		return nil, err
	}
	algorithm, err := fl.New(run, m, len(t.Names))
	if err != nil {
		return nil, err
	}
	evaluation, err := evaluate.New(run, t.Plan.Shape, algorithm)
	if err != nil {
		return nil, err
	}
	a := run.Algorithm
	c := &Coordinator{
		evaluation: evaluation,
		plan:       t.Plan, text: text, sum: sum, run: run, names: t.Names, index: map[string]int{}, start: t.Start,
		model: m, algorithm: algorithm, bounds: algorithm.ReleaseBounds(), store: patient{t.Store, t.Log, t.Patience}, direct: t.Store, signer: t.Signer, scratch: t.Scratch, log: t.Log, seldom: newSeldom(t.Log),
		sampler:  fl.NewSampler(fl.DrawSeed(run), "client sampling", len(t.Names), plan.Asked(run, len(t.Names)), a.Sampling == "balanced"),
		presence: newPresence(len(t.Names)),
		reached:  -1,
		metrics:  newMetrics(), chronicle: newChronicle(len(t.Names)),
	}
	if c.small = t.small; c.small == 0 {
		c.small = store.SmallBytes
	}
	if c.store.most == 0 {
		c.store.most = storePatience
	}
	c.spans.kept = t.Tracer != nil
	if c.tracer = t.Tracer; c.tracer == nil {
		c.tracer = silent() // and no span is made
	}
	c.news.ring()
	c.progress.ring()
	for i, name := range t.Names {
		if _, twice := c.index[name]; twice {
			return nil, fmt.Errorf("participant %q is named twice", name)
		}
		c.index[name] = i
	}
	// A radius that falls has ever finer lattices.
	end := algorithm.Start()
	end.Round = a.Rounds
	if err := c.checkOpens(end); err != nil {
		return nil, fmt.Errorf("%w: the last of %d rounds could not begin even with the models of the first one; set a larger privacy.radius or privacy.radius_decay, or fewer algorithm.rounds: %w", config.ErrInvalid, a.Rounds, err)
	}
	return c, c.restore(ctx)
}

// drain sends everybody who waits for work away: they come back to whoever takes
// over.
func (c *Coordinator) drain() {
	c.draining.Store(true)
	c.news.ring()
}

// linger waits until everybody who is still there has fetched the models, for some
// time at most.
func (c *Coordinator) linger(ctx context.Context, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		rung := c.progress.next()
		if c.presence.allServed() {
			return
		}
		if transfer.Wait(ctx, rung, most) != nil {
			return
		}
	}
}
