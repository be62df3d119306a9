package pool

import "context"

// Await is what work returns, or ctx's error as soon as ctx ends: for work that cannot be
// stopped by itself, such as reading data. It then goes on unseen, and what it returns is
// given to discard, if there is no error.
func Await[T any](ctx context.Context, work func() (T, error), discard func(T)) (T, error) {
	type returned struct {
		value T
		err   error
	}
	done := make(chan returned, 1)
	go func() {
		value, err := work()
		done <- returned{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				discard(r.value)
			}
		}()
		var none T
		return none, ctx.Err()
	}
}
