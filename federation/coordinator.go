package federation

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// Coordinator is the server without its network: it opens rounds, takes answers,
// closes rounds, and says who is refused and why. All it knows is in the store, so
// that another one goes on where it was killed.
type Coordinator struct {
	plan      Plan
	text      []byte
	sum       [32]byte
	run       config.Run
	names     []string
	index     map[string]int
	start     int // participants that must be present before the first round
	model     model.Model
	algorithm *fl.Algorithm
	bounds    []fl.Bound // of a release's values
	sampler   *fl.Sampler
	store     patient     // for the loop
	direct    store.Store // for what participants ask: they try again themselves
	signer    ed25519.PrivateKey
	scratch   string
	log       *slog.Logger
	seldom    *seldom // for lines that others can cause at will
	metrics   *metrics
	tracer    trace.Tracer
	span      trace.Span // of the open round

	// gate is held for reading while an answer is recorded, and for writing while a
	// round opens or closes: an answer is part of its round or refused.
	gate     sync.RWMutex
	over     string // why the run ended, if it had ended before
	state    *fl.State
	before   *fl.State // when the round was opened
	round    *openRound
	finished *Finished

	draining atomic.Bool
	presence presence
	news     bell // for participants: a round was opened, or the run has ended
	progress bell // for the loop: somebody joined, answered or left
}

// Terms are what a coordinator needs besides the run.
type Terms struct {
	Plan   Plan
	Names  []string // of the participants, by index
	Start  int      // participants that must be present before the first round
	Store  store.Store
	Signer ed25519.PrivateKey
	// Patience is how long a store may fail to answer; 0 means 10 minutes.
	Patience time.Duration
	// Scratch is a folder for releases that are too many for memory; empty: none.
	Scratch string
	Log     *slog.Logger
	Tracer  trace.Tracer // nil: no traces
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
	_, run, err := ParsePlan(text)
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
	a := run.Algorithm
	c := &Coordinator{
		plan: t.Plan, text: text, sum: sum, run: run, names: t.Names, index: map[string]int{}, start: t.Start,
		model: m, algorithm: algorithm, bounds: algorithm.ReleaseBounds(), store: patient{t.Store, t.Log, t.Patience}, direct: t.Store, signer: t.Signer, scratch: t.Scratch, log: t.Log, seldom: newSeldom(t.Log),
		sampler:  fl.NewSampler(run.Seed, "client sampling", len(t.Names), asked(run, len(t.Names)), a.Sampling == "balanced"),
		presence: newPresence(len(t.Names)),
		metrics:  newMetrics(),
	}
	if c.store.most == 0 {
		c.store.most = storePatience
	}
	if c.tracer = t.Tracer; c.tracer == nil {
		c.tracer = silent()
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

// Join is what a participant is shown when it arrives.
func (c *Coordinator) Join(ctx context.Context, name string) (text []byte, index int, receipt []byte, err error) {
	index, err = c.place(name)
	if err != nil {
		return nil, 0, nil, err
	}
	last, err := c.direct.LatestReceipt(ctx, name)
	switch {
	case err == nil:
		receipt = last.Signed
	case !errors.Is(err, store.ErrNotFound):
		return nil, 0, nil, err
	}
	if err := c.direct.Seen(ctx, c.plan.Run, name, time.Now()); err != nil {
		return nil, 0, nil, err
	}
	c.presence.joined(index)
	c.progress.ring()
	return c.text, index, receipt, nil
}

// place is the participant's index.
func (c *Coordinator) place(name string) (int, error) {
	i, ok := c.index[name]
	if !ok {
		return 0, refuse(ReasonForeign, "%q has no part in this run", name)
	}
	c.presence.heard(i)
	return i, nil
}

// checkPlan refuses requests that belong to another run or plan.
func (c *Coordinator) checkPlan(run string, sum []byte) error {
	if run != c.plan.Run || string(sum) != string(c.sum[:]) {
		return refuse(ReasonStale, "the run here is %q with plan %.8x; join again", c.plan.Run, c.sum)
	}
	return nil
}

// Next is a participant's work, or the end of the run, or nothing within the time.
// Exactly one of the results is not nil, or none.
func (c *Coordinator) Next(ctx context.Context, name, run string, sum []byte, wait time.Duration) (*Work, *Finished, error) {
	i, err := c.place(name)
	if err != nil {
		return nil, nil, err
	}
	if err := c.checkPlan(run, sum); err != nil {
		return nil, nil, err
	}
	c.presence.waits(i, +1)
	c.progress.ring() // a round may be waiting for enough to be there
	defer c.presence.waits(i, -1)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		rung := c.news.next() // before looking, so that no change is missed
		if c.draining.Load() {
			return nil, nil, refuse(ReasonDraining, "the server is about to stop; try again")
		}
		if w, f := c.look(i); w != nil || f != nil {
			return w, f, nil
		}
		select {
		case <-rung:
		case <-timer.C:
			return nil, nil, nil
		case <-ctx.Done():
			return nil, nil, nil
		}
	}
}

// drain sends everybody who waits for work away: they come back to whoever takes
// over.
func (c *Coordinator) drain() {
	c.draining.Store(true)
	c.news.ring()
}

// Work is one round that waits for a participant.
type Work struct {
	Round     int
	Broadcast content
	Left      time.Duration
	Cohort    int
}

func (c *Coordinator) look(i int) (*Work, *Finished) {
	c.gate.RLock()
	defer c.gate.RUnlock()
	if c.finished != nil {
		if c.finished.models.bytes == nil { // being told is all that there is to have
			c.presence.served(i)
			c.progress.ring()
		}
		return nil, c.finished
	}
	r := c.round
	if r == nil || !r.waitsFor(i) {
		return nil, nil
	}
	return &Work{Round: r.number, Broadcast: r.broadcast, Left: time.Until(r.deadline), Cohort: len(r.clients)}, nil
}

// Content is a broadcast that is still of use, by its hash.
func (c *Coordinator) Content(name, run string, sum []byte) ([]byte, error) {
	i, err := c.place(name)
	if err != nil {
		return nil, err
	}
	if run != c.plan.Run {
		return nil, refuse(ReasonStale, "the run here is %q; join again", c.plan.Run)
	}
	c.gate.RLock()
	defer c.gate.RUnlock()
	if c.round != nil && string(c.round.broadcast.sum[:]) == string(sum) {
		return c.round.broadcast.bytes, nil
	}
	if c.finished != nil && string(c.finished.models.sum[:]) == string(sum) {
		c.presence.served(i)
		c.progress.ring()
		return c.finished.models.bytes, nil
	}
	if c.finished != nil && string(c.finished.broadcast.sum[:]) == string(sum) {
		return c.finished.broadcast.bytes, nil
	}
	return nil, refuse(ReasonLate, "what the round began with is no longer kept: the round is over")
}

// Linger waits until everybody who is still there has fetched the models, for some
// time at most.
func (c *Coordinator) Linger(ctx context.Context, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		rung := c.progress.next()
		if c.presence.allServed() {
			return
		}
		if wait(ctx, rung, most) != nil {
			return
		}
	}
}
