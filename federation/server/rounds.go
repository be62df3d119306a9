package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/fl"
)

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
	opened    time.Time
	deadline  time.Time
	clusters  clusters // once it was aggregated

	mu      sync.Mutex
	answers map[int]store.AnswerKind
	counts  map[store.AnswerKind]int // of the answers: nobody walks over them all to know
	words   map[int]string           // of those who declined
	offers  map[int]offer
	taking  map[int]bool // small releases that are being recorded
}

func newRound(number int, clients []int, b content, deadline time.Time) *openRound {
	r := &openRound{
		number: number, clients: clients, broadcast: b, opened: time.Now(), deadline: deadline,
		answers: make(map[int]store.AnswerKind, len(clients)), words: map[int]string{}, offers: map[int]offer{}, taking: map[int]bool{},
		counts: map[store.AnswerKind]int{},
	}
	for _, c := range clients {
		r.answers[c] = store.Waiting
	}
	r.counts[store.Waiting] = len(r.answers)
	return r
}

func (r *openRound) waitsFor(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers[i] == store.Waiting
}

// settle notes an answer, with the word of who declined, and says whether it is news.
func (r *openRound) settle(i int, kind store.AnswerKind, word string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, asked := r.answers[i]
	if asked {
		r.counts[before]--
	}
	r.answers[i] = kind
	r.counts[kind]++
	if kind == store.Declined {
		r.words[i] = word
	}
	delete(r.offers, i)
	return before != kind
}

// tally counts what has come in.
func (r *openRound) tally() (waiting, released, declined int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[store.Waiting], r.counts[store.Released], r.counts[store.Declined]
}

// Run makes the rounds until the run ends. When ctx ends it returns ErrInterrupted;
// nothing is lost.
func (c *Coordinator) Run(ctx context.Context) (Finished, error) {
	for {
		if stopped := c.ended(); stopped != "" {
			return c.finish(ctx, stopped)
		}
		if c.round == nil { // only this goroutine changes it
			if !c.evaluating() { // then there are models, and whoever is away misses it
				if err := c.waitForEnough(ctx); err != nil {
					return Finished{}, err
				}
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
	if c.evaluating() {
		return ""
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
	defer c.chronicle.waits(false)
	for {
		rung := c.progress.next()
		present, left := c.presence.count()
		if present >= min(need, len(c.names)-left) {
			return nil
		}
		if !told {
			c.log.Info("waiting for participants", "present", present, "needed", need)
			c.chronicle.waits(true)
			told = true
		}
		if err := transfer.Wait(ctx, rung, absence); err != nil {
			return err
		}
		// Everybody who comes rings, and everybody is counted: not more often than that costs
		// next to nothing.
		if err := transfer.Wait(ctx, nil, time.Duration(len(c.names))*10*time.Microsecond); err != nil {
			return err
		}
	}
}

func (c *Coordinator) deadline() time.Time {
	return time.Now().Add(time.Duration(c.plan.DeadlineSeconds * float64(time.Second)))
}

// beginning is what the round begins with. The state before is kept: a round that is
// abandoned leaves no trace in it, and neither does an evaluation.
func (c *Coordinator) beginning() (fl.Broadcast, error) {
	c.before = c.state.Clone()
	if c.evaluating() {
		return c.algorithm.Broadcast(c.state.Clone())
	}
	return c.algorithm.Broadcast(c.state)
}

// open draws the participants of the next round and records them before anyone is
// asked.
func (c *Coordinator) open(ctx context.Context) error {
	b, err := c.beginning()
	if err != nil {
		return err
	}
	clients := c.drawn()
	sampler, err := transfer.EncodeGob(c.sampler.State)
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
	c.ask(newRound(c.state.Round, clients, newContent(transfer.EncodeBroadcast(b)), c.deadline()))
	return nil
}

func (c *Coordinator) ask(r *openRound) {
	_, c.span = c.tracer.Start(context.Background(), "round", trace.WithAttributes(
		attribute.Int("coterie.round", r.number+1), attribute.Int("coterie.asked", len(r.clients))))
	c.spans.begins(r.number, c.span.SpanContext())
	c.gate.Lock()
	c.round, c.reached = r, r.number
	c.gate.Unlock()
	c.metrics.opened(r)
	c.log.Info("round opened", "round", r.number+1, "asked", len(r.clients))
	c.news.ring()
}

// collect waits until everybody has answered, or enough have, or time is up.
func (c *Coordinator) collect(ctx context.Context) error {
	r, known := c.round, -1
	for {
		rung := c.progress.next()
		if gone := c.presence.departures(); gone != known { // or everybody would be looked at for every answer
			if err := c.declineForThoseWhoLeft(ctx, r); err != nil {
				return err
			}
			known = gone
		}
		waiting, released, _ := r.tally()
		left := time.Until(r.deadline)
		if waiting == 0 || released >= c.enough() || left <= 0 {
			return nil
		}
		if err := transfer.Wait(ctx, rung, left); err != nil {
			return err
		}
	}
}

// declineForThoseWhoLeft records the answer of those who declined the rest of the run.
func (c *Coordinator) declineForThoseWhoLeft(ctx context.Context, r *openRound) error {
	for _, i := range r.clients {
		if !c.presence.hasLeft(i) || !r.waitsFor(i) {
			continue
		}
		if err := c.recordDecline(ctx, c.store, r, i, leftRun); err != nil && transfer.ReasonOf(err) != transfer.ReasonAnswered {
			return err
		}
	}
	return nil
}

// aggregate moves the state on by a round's releases.
func (c *Coordinator) aggregate(ctx context.Context, r *openRound, answers []store.Answer, released int) error {
	var out fl.Outcome
	declined := len(r.clients) - released
	if sum := c.algorithm.NewSum(); sum != nil {
		if err := c.sumUp(ctx, r, answers, sum); err != nil {
			return err
		}
		out = c.algorithm.Aggregate(c.state, fl.Releases{Clients: sum.Clients, Sum: sum, Declined: declined})
	} else {
		room, clients, err := c.read(ctx, r, answers, released)
		if err != nil {
			return err
		}
		defer room.free()
		out = c.algorithm.Aggregate(c.state, fl.Releases{Clients: clients, Vectors: room.values, Declined: declined})
	}
	r.clusters = clustersOf(c.state, c.algorithm.Outline().Models, out)
	if out.Err != nil {
		c.log.Warn("the round's releases could not be used; the models are as before", "round", r.number+1, "error", out.Err)
	}
	return nil
}

// sumUp adds a round's releases up in client order, one after another in the same memory.
func (c *Coordinator) sumUp(ctx context.Context, r *openRound, answers []store.Answer, sum *fl.Sum) error {
	n, _ := c.expected(r.number)
	room, err := newVectors(n, "")
	if err != nil {
		return err
	}
	early := newAhead()
	for _, a := range answers {
		if a.Kind != store.Released {
			continue
		}
		if err := c.readUpdate(ctx, r.number, a, early, room.bytes); err != nil {
			return fmt.Errorf("the release of %s: %w", c.names[a.Participant], err)
		}
		room.settle()
		sum.Add(a.Participant, room.values)
	}
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
	defer c.metrics.ended(r.opened, time.Now())

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
	if c.isEvaluation(r.number) {
		return c.tally(ctx, r, answers, released)
	}
	if err := c.aggregate(ctx, r, answers, released); err != nil {
		return err
	}
	if err := c.checkOpens(c.state); err != nil {
		c.log.Error("round abandoned: with its releases no further round could begin; they are not used", "round", r.number+1, "released", released, "error", err)
		return c.abandon(ctx, r, fmt.Sprintf("its releases were not used: the next round could not begin with them: %v", err))
	}
	state, err := transfer.EncodeGob(c.state)
	if err != nil {
		return err
	}
	if err := c.store.CloseRound(ctx, c.plan.Run, r.number, state, time.Now()); err != nil {
		return err
	}
	c.learnt = true
	c.chronicle.ended(false, time.Since(r.opened))
	c.chronicle.remember(r.end(false))
	c.metrics.closed(false)
	c.log.Info("round closed", "round", r.number+1, "released", released, "asked", len(r.clients))
	return nil
}

// abandon gives a round up: nothing of it is left in the models.
func (c *Coordinator) abandon(ctx context.Context, r *openRound, reason string) error {
	if err := c.store.AbandonRound(ctx, c.plan.Run, r.number, reason, time.Now()); err != nil {
		return err
	}
	c.state = c.before // opening the round may have rounded the models
	if c.isEvaluation(r.number) {
		c.evaluated = &evaluated{Asked: len(r.clients), Reason: reason}
	} else {
		c.state.Round++
		c.chronicle.ended(true, 0)
		c.chronicle.remember(r.end(true))
	}
	c.metrics.closed(true)
	return nil
}
