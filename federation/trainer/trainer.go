// Package trainer runs local training in a child process, in any language, and keeps everything else here.
package trainer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// ErrTrainer is wrapped by everything that a child process did wrong.
var ErrTrainer = errors.New("trainer")

// maxChunk bounds the values of one answer that holds several gradients.
const maxChunk = 1 << 24 / 4

// maxIndices bounds the examples that one request names.
const maxIndices = 4096

// Trainer is a child process that trains. It is started when it is first needed
// and again after it has failed. It is safe for concurrent use; requests queue.
type Trainer struct {
	ctx        context.Context
	spec       Spec
	parameters int

	mu       sync.Mutex
	child    *process
	id       uint64
	examples int // -1: not yet known
	delta    []float64
	rows     []float64 // gradients of one answer
	failure  error
	closed   bool
}

// Start launches the trainer and waits until it is ready for a model of so many
// parameters. When ctx ends, the process is killed.
func Start(ctx context.Context, spec Spec, parameters int) (*Trainer, error) {
	if faults := spec.Check("trainer"); len(faults) > 0 {
		return nil, faults
	}
	if parameters < 1 {
		return nil, fmt.Errorf("trainer: a model of %d parameters; allowed: 1 or more", parameters)
	}
	t := &Trainer{ctx: ctx, spec: spec, parameters: parameters, examples: -1, delta: make([]float64, parameters)}
	if err := t.ready(); err != nil {
		return nil, err
	}
	return t, nil
}

// Mode is who protects what the trainer returns: ModeMethod or one of the others.
func (t *Trainer) Mode() string { return t.spec.mode() }

// Examples is how many examples the trainer says it has. It is private: it stays
// with the participant.
func (t *Trainer) Examples() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.examples
}

// Client stands for the trainer's data where a method asks how many examples there
// are: it has that many rows of no features.
func (t *Trainer) Client() *data.Client {
	return &data.Client{Rows: data.Rows{Y: make([]float64, t.Examples())}}
}

// Failure is what went wrong since the last call, if anything: whoever answers a server
// releases something all the same, and tells the owner.
func (t *Trainer) Failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.failure
	t.failure = nil
	return err
}

func (t *Trainer) hasFailed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failure != nil
}

// Close ends the process: its input is closed, then it is asked to end, then it is
// killed with all that it started.
func (t *Trainer) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.child == nil {
		return nil
	}
	t.child.finish()
	t.child = nil
	return nil
}

// ready starts the process unless it runs.
func (t *Trainer) ready() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.start()
}

// train fetches the update of a local training: what the plan says of it is for the
// trainer to follow.
func (t *Trainer) train(l config.Local, theta []float64) ([]float64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := request{Op: "train", Epochs: l.Epochs, Step: l.Step, Batch: l.Batch, Loss: l.Loss}
	if _, err := t.ask(q, theta, t.delta); err != nil {
		return nil, err
	}
	return t.delta, nil
}
