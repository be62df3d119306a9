package trainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"
)

// start launches the process and greets it, unless it runs. The caller holds mu.
func (t *Trainer) start() error {
	if t.child != nil {
		return nil
	}
	if t.closed {
		return fmt.Errorf("%w: it was closed", ErrTrainer)
	}
	if err := t.ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrTrainer, err)
	}
	child, err := launch(t.ctx, t.spec)
	if err != nil {
		return t.failed(fmt.Errorf("%w: cannot start %s: %w", ErrTrainer, strings.Join(t.spec.Command, " "), err))
	}
	t.child = child
	hello := request{Op: "hello", Protocol: protocol, Parameters: t.parameters}
	a, err := t.exchange(hello, nil, nil, t.spec.startTime())
	switch {
	case err != nil:
		return err
	case a.Protocol != protocol:
		return t.end("hello", fmt.Errorf("it speaks protocol %d, expected is %d", a.Protocol, protocol))
	case a.Parameters != t.parameters:
		return t.end("hello", fmt.Errorf("its model has %d parameters, the plan's has %d", a.Parameters, t.parameters))
	case a.Examples < 0 || a.Examples > math.MaxInt32:
		return t.end("hello", fmt.Errorf("it says that it has %d examples; allowed: 0 to %d", a.Examples, math.MaxInt32))
	case t.examples >= 0 && a.Examples != t.examples:
		return t.end("hello", fmt.Errorf("it had %d examples before and has %d now: a run's data must not change; join anew", t.examples, a.Examples))
	}
	t.examples = a.Examples
	return nil
}

// ask makes sure that the process runs, and exchanges one request for one answer.
func (t *Trainer) ask(q request, values, dst []float64) (answer, error) {
	if err := t.start(); err != nil {
		return answer{}, err
	}
	return t.exchange(q, values, dst, t.spec.requestTime())
}

func (t *Trainer) exchange(q request, values, dst []float64, limit time.Duration) (answer, error) {
	t.id++
	q.ID = t.id
	c := t.child
	c.allow(time.Now().Add(limit))
	// A context that ends makes the pipes' waits end at once.
	stop := context.AfterFunc(t.ctx, func() { c.allow(time.Now()) })
	defer stop()
	// Writing and reading at once: a child that talks out of turn is found out, and
	// neither side waits for the other for ever.
	wrote := make(chan error, 1)
	go func() {
		err := writeFrame(c.in, q, values, c.written)
		if err != nil {
			c.allow(time.Now())
		}
		wrote <- err
	}()
	ofExamples := q.Op == "gradients" || q.Op == "losses"
	a, err := readFrame(c.out, q.ID, dst, !ofExamples, c.piece)
	if err != nil {
		c.allow(time.Now())
	}
	if unwritten := <-wrote; err == nil || errors.Is(err, os.ErrDeadlineExceeded) && unwritten != nil {
		err = unwritten
	}
	if err != nil {
		return answer{}, t.end(q.Op, t.explain(err, limit))
	}
	if a.Error != "" {
		return answer{}, t.failed(fmt.Errorf("%w: it refused %s: %s", ErrTrainer, q.Op, printable(a.Error)))
	}
	return a, nil
}

var errClosedInput = errors.New("it closed its input")

func (t *Trainer) explain(err error, limit time.Duration) error {
	switch {
	case t.ctx.Err() != nil:
		return t.ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("it did not finish within %v", limit)
	case errors.Is(err, errPipe):
		return errClosedInput
	case errors.Is(err, fs.ErrClosed):
		return errors.New("it was closed")
	}
	return err
}

// end kills the process and reports why, with its last words.
func (t *Trainer) end(op string, why error) error {
	var wait time.Duration // how it ends says more than how we end it
	switch {
	case errors.Is(why, errEnded):
		wait = 10 * graceTime
	case errors.Is(why, errClosedInput):
		wait = graceTime
	}
	last := t.child.kill(wait)
	t.child = nil
	return t.failed(fmt.Errorf("%w: %s failed: %w%s", ErrTrainer, op, why, last))
}

// failed keeps the first failure for whoever cannot be given an error.
func (t *Trainer) failed(err error) error {
	if t.failure == nil {
		t.failure = err
	}
	return err
}

// gradients fetches the gradient of every example of a batch, a few at a time, and
// hands each on; the next one overwrites it.
func (t *Trainer) gradients(theta []float64, batch []int, each func(k int, gradient []float64) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.parameters
	few := min(max(1, maxChunk/n), maxIndices)
	if need := min(few, len(batch)) * n; cap(t.rows) < need {
		t.rows = make([]float64, need)
	}
	for done := 0; done < len(batch); {
		some := batch[done:min(done+few, len(batch))]
		rows := t.rows[:len(some)*n]
		if _, err := t.ask(request{Op: "gradients", Examples: some}, theta, rows); err != nil {
			return err
		}
		for k := range some {
			if err := each(done+k, rows[k*n:(k+1)*n]); err != nil {
				return t.failed(fmt.Errorf("%w: the gradient of example %d: %w", ErrTrainer, some[k], err))
			}
		}
		done += len(some)
	}
	return nil
}

// printable is a child's text, bounded and without control characters.
func printable(s string) string {
	if len(s) > tailSize {
		s = "…" + s[len(s)-tailSize:]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return '·'
		}
		return r
	}, strings.ToValidUTF8(s, "·"))
}
