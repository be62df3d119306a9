package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrInterrupted means that server or participant were stopped; started again they go
// on.
var ErrInterrupted = errors.New("interrupted")

// Wait until the bell rings, for some time at most.
func Wait(ctx context.Context, rung <-chan struct{}, most time.Duration) error {
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

// ErrNothing means that a run has ended without a model: no round had enough releases.
var ErrNothing = errors.New("nothing was learnt")
