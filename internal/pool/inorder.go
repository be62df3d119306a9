package pool

import (
	"context"
	"errors"
	"io"
	"sync"
)

// InOrder does jobs on some workers and hands on what they make in the order in which next
// gives them, until it gives io.EOF. Few are under way at a time. Whatever happens,
// nothing runs any more when it returns.
func InOrder[T any](ctx context.Context, workers int, next func() (func() T, error), take func(T) error) error {
	type job struct {
		do   func() T
		done chan T
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	waiting, order := make(chan job), make(chan job, workers+2)
	var failed error // read when order is closed
	running.Go(func() {
		defer close(order)
		defer close(waiting)
		for {
			do, err := next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					failed = err
				}
				return
			}
			j := job{do, make(chan T, 1)}
			select {
			case order <- j:
			case <-ctx.Done():
				return
			}
			select {
			case waiting <- j:
			case <-ctx.Done():
				return
			}
		}
	})
	for range workers {
		running.Go(func() {
			for j := range waiting {
				j.done <- j.do()
			}
		})
	}
	for j := range order {
		select {
		case made := <-j.done:
			if err := take(made); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if failed != nil {
		return failed
	}
	return ctx.Err()
}
