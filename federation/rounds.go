package federation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/fl"
)

// ErrInterrupted means that the server was stopped; started again it goes on.
var ErrInterrupted = errors.New("interrupted")

// content is bytes and their name.
type content struct {
	bytes []byte
	sum   [32]byte
}

func newContent(b []byte) content { return content{bytes: b, sum: sha256.Sum256(b)} }

// openRound is the round that is collecting answers.
type openRound struct {
	number    int
	clients   []int
	broadcast content
	deadline  time.Time

	mu      sync.Mutex
	answers map[int]store.AnswerKind
	offers  map[int]offer
}

func newRound(number int, clients []int, b content, deadline time.Time) *openRound {
	r := &openRound{
		number: number, clients: clients, broadcast: b, deadline: deadline,
		answers: make(map[int]store.AnswerKind, len(clients)), offers: map[int]offer{},
	}
	for _, c := range clients {
		r.answers[c] = store.Waiting
	}
	return r
}

func (r *openRound) waitsFor(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers[i] == store.Waiting
}

func (r *openRound) settle(i int, kind store.AnswerKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[i] = kind
	delete(r.offers, i)
}

// tally counts what has come in.
func (r *openRound) tally() (waiting, released, declined int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.answers {
		switch a {
		case store.Waiting:
			waiting++
		case store.Released:
			released++
		default:
			declined++
		}
	}
	return waiting, released, declined
}

// Run makes the rounds until the run ends. When ctx ends it returns ErrInterrupted;
// nothing is lost.
func (c *Coordinator) Run(ctx context.Context) (Finished, error) {
	for {
		if stopped := c.ended(); stopped != "" {
			return c.finish(ctx, stopped)
		}
		if c.round == nil { // only this goroutine changes it
			if err := c.waitForEnough(ctx); err != nil {
				return Finished{}, err
			}
			if c.ended() != "" {
				continue
			}
			if err := c.open(ctx); err != nil {
				return Finished{}, fmt.Errorf("open round %d: %w", c.state.Round+1, err)
			}
		}
		if err := c.collect(ctx); err != nil {
			return Finished{}, err
		}
		if err := c.close(ctx); err != nil {
			return Finished{}, fmt.Errorf("close round %d: %w", c.state.Round+1, err)
		}
	}
}

// ended says why the run is over, if it is.
func (c *Coordinator) ended() string {
	if c.over != "" || c.round != nil {
		return c.over
	}
	if c.state.Round >= c.run.Algorithm.Rounds {
		return StoppedRounds
	}
	if _, left := c.presence.count(); len(c.names)-left < max(1, c.plan.Minimum) {
		return StoppedBudget
	}
	return ""
}

// waitForEnough waits until a round can succeed: rounds that nobody answers would
// use up the run.
func (c *Coordinator) waitForEnough(ctx context.Context) error {
	need := c.plan.Minimum
	if c.state.Round == 0 {
		need = max(need, c.start)
	}
	told := false
	for {
		rung := c.progress.next()
		present, left := c.presence.count()
		if present >= min(need, len(c.names)-left) {
			return nil
		}
		if !told {
			c.log.Info("waiting for participants", "present", present, "needed", need)
			told = true
		}
		if err := wait(ctx, rung, absence); err != nil {
			return err
		}
	}
}

// wait until the bell rings, for some time at most.
func wait(ctx context.Context, rung <-chan struct{}, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-rung:
	case <-timer.C:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrInterrupted, context.Cause(ctx))
	}
	return nil
}

func (c *Coordinator) deadline() time.Time {
	return time.Now().Add(time.Duration(c.plan.DeadlineSeconds * float64(time.Second)))
}

// beginning is what the round begins with. The state before is kept: a round that is
// abandoned leaves no trace in it.
func (c *Coordinator) beginning() (fl.Broadcast, error) {
	c.before = cloneState(c.state)
	return c.algorithm.Broadcast(c.state)
}

// open draws the participants of the next round and records them before anyone is
// asked.
func (c *Coordinator) open(ctx context.Context) error {
	b, err := c.beginning()
	if err != nil {
		return err
	}
	clients := append([]int(nil), c.sampler.Sample(c.state.Round)...)
	sampler, err := encodeGob(c.sampler.State)
	if err != nil {
		return err
	}
	err = c.store.OpenRound(ctx, store.Round{
		Run: c.plan.Run, Number: c.state.Round, Clients: clients, Sampler: sampler,
		Deadline: c.deadline(), Opened: time.Now(), Status: store.RoundOpen,
	})
	if err != nil {
		return err
	}
	// The store may have taken its time: that is not the participants'.
	c.ask(newRound(c.state.Round, clients, newContent(EncodeBroadcast(b)), c.deadline()))
	return nil
}

// resume goes on with a round that was open when the server was killed. Everybody
// gets the whole time again: they, too, must find their way back.
func (c *Coordinator) resume(ctx context.Context, last store.Round) error {
	b, err := c.beginning()
	if err != nil {
		return err
	}
	answers, err := c.store.Answers(ctx, c.plan.Run, last.Number)
	if err != nil {
		return err
	}
	r := newRound(last.Number, last.Clients, newContent(EncodeBroadcast(b)), c.deadline())
	for _, a := range answers {
		r.settle(a.Participant, a.Kind)
	}
	c.log.Info("going on with a round", "round", r.number+1, "asked", len(r.clients))
	c.ask(r)
	return nil
}

func (c *Coordinator) ask(r *openRound) {
	c.gate.Lock()
	c.round = r
	c.gate.Unlock()
	c.metrics.opened(r)
	_, c.span = c.tracer.Start(context.Background(), "round", trace.WithAttributes(
		attribute.Int("coterie.round", r.number+1), attribute.Int("coterie.asked", len(r.clients))))
	c.log.Info("round opened", "round", r.number+1, "asked", len(r.clients))
	c.news.ring()
}

// collect waits until everybody has answered, or enough have, or time is up.
func (c *Coordinator) collect(ctx context.Context) error {
	r := c.round
	for {
		rung := c.progress.next()
		for _, i := range r.clients {
			if c.presence.hasLeft(i) && r.waitsFor(i) {
				err := c.recordDecline(ctx, c.store, r, i, leftRun)
				if err != nil && reasonOf(err) != ReasonAnswered {
					return err
				}
			}
		}
		waiting, released, _ := r.tally()
		left := time.Until(r.deadline)
		if waiting == 0 || released >= c.plan.Quorum || left <= 0 {
			return nil
		}
		if err := wait(ctx, rung, left); err != nil {
			return err
		}
	}
}

// abandon gives a round up: nothing of it is left in the models.
func (c *Coordinator) abandon(ctx context.Context, r *openRound, reason string) error {
	if err := c.store.AbandonRound(ctx, c.plan.Run, r.number, reason, time.Now()); err != nil {
		return err
	}
	c.state = c.before // opening the round may have rounded the models
	c.state.Round++
	c.metrics.closed(true)
	return nil
}

// close aggregates what was released, or gives the round up. The new state and the
// end of the round are recorded together. A state that cannot begin another round is
// never recorded: a server started again would fail with it for ever.
func (c *Coordinator) close(ctx context.Context) error {
	c.gate.Lock() // from here on answers are late
	r := c.round
	c.round = nil
	c.gate.Unlock()
	defer c.span.End()

	answers, err := c.store.Answers(ctx, c.plan.Run, r.number)
	if err != nil {
		return err
	}
	released := 0
	for _, a := range answers {
		if a.Kind == store.Released {
			released++
		}
	}
	if released < c.plan.Minimum {
		reason := fmt.Sprintf("%d of %d participants released; the minimum is %d", released, len(r.clients), c.plan.Minimum)
		c.log.Warn("round abandoned", "round", r.number+1, "reason", reason)
		return c.abandon(ctx, r, reason)
	}
	if err := c.aggregate(ctx, r, answers, released); err != nil {
		return err
	}
	if err := c.checkOpens(c.state); err != nil {
		c.log.Error("round abandoned: with its releases no further round could begin; they are not used", "round", r.number+1, "released", released, "error", err)
		return c.abandon(ctx, r, fmt.Sprintf("its releases were not used: the next round could not begin with them: %v", err))
	}
	state, err := encodeGob(c.state)
	if err != nil {
		return err
	}
	if err := c.store.CloseRound(ctx, c.plan.Run, r.number, state, time.Now()); err != nil {
		return err
	}
	c.metrics.closed(false)
	c.log.Info("round closed", "round", r.number+1, "released", released, "asked", len(r.clients))
	return nil
}
