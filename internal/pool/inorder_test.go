package pool

import (
	"context"
	"errors"
	"io"
	"testing"
)

// TestInOrder: what jobs make comes in their order, whoever is done first; an error of
// either side, or the context's, ends it.
func TestInOrder(t *testing.T) {
	const jobs = 200
	errStop := errors.New("stop")
	for _, c := range []struct {
		name     string
		nextFail int // -1: never
		takeFail int
		cancel   int
		want     error
	}{
		{"all", -1, -1, -1, nil}, {"next fails", 50, -1, -1, errStop}, {"take fails", -1, 50, -1, errStop}, {"stopped", -1, -1, 50, context.Canceled},
	} {
		for _, workers := range []int{1, 3} {
			ctx, cancel := context.WithCancel(t.Context())
			given, taken := 0, 0
			err := InOrder(ctx, workers, func() (func() int, error) {
				if given == jobs {
					return nil, io.EOF
				}
				if given == c.nextFail {
					return nil, errStop
				}
				k := given
				given++
				return func() int { return k }, nil
			}, func(k int) error {
				if k != taken {
					t.Fatalf("%s: %d came as number %d", c.name, k, taken)
				}
				taken++
				if k == c.cancel {
					cancel()
				}
				if k == c.takeFail {
					return errStop
				}
				return nil
			})
			cancel()
			if !errors.Is(err, c.want) || c.want == nil && (err != nil || taken != jobs) {
				t.Errorf("%s, %d workers: %v after %d", c.name, workers, err, taken)
			}
		}
	}
}
