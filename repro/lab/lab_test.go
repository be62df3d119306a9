package lab

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/sim"
)

// TestACalledOffExperimentIsNotWaitedFor: cells that cannot be stopped are left behind, and
// none is begun any more, whether a core is free for it or not.
func TestACalledOffExperimentIsNotWaitedFor(t *testing.T) {
	for _, workers := range []int{1, 3} {
		ctx, cancel := context.WithCancel(t.Context())
		l := &Lab{Options: Options{Workers: workers, Tick: func(int, int) {}}, Context: ctx}
		never := make(chan struct{})
		err := l.All([]func() error{
			func() error { return nil },
			func() error { cancel(); <-never; return nil },
			func() error { <-ctx.Done(); return ctx.Err() },
		})
		if !errors.Is(err, sim.ErrInterrupted) || !strings.Contains(err.Error(), "after 1 of 3 cells") {
			t.Errorf("%d workers: %v", workers, err)
		}
		close(never)
	}
}

// TestAllThatWasMadeCounts: an experiment that is called off when its last cell is made has
// ended, and one whose cell fails says why.
func TestAllThatWasMadeCounts(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := &Lab{Options: Options{Tick: func(int, int) {}}, Context: ctx}
	if err := l.All([]func() error{func() error { cancel(); return nil }}); err != nil {
		t.Error(err)
	}
	ill := errors.New("ill")
	l = &Lab{Options: Options{Tick: func(int, int) {}}, Context: t.Context()}
	if err := l.All([]func() error{func() error { return ill }}); !errors.Is(err, ill) {
		t.Error(err)
	}
}

// TestNoCellIsBegunAfterItsTime: what was made in time is kept, and taken up by the next
// call; the rest is an interruption, not a failure.
func TestNoCellIsBegunAfterItsTime(t *testing.T) {
	folder := t.TempDir()
	made := 0
	call := func(limit time.Duration) error {
		l := &Lab{Options: Options{Workers: 1, For: limit, Tick: func(int, int) {}}, Context: t.Context(), cells: folder, began: time.Now()}
		var jobs []func() error
		for i := range 3 {
			jobs = append(jobs, func() error {
				var into int
				return l.Remember([]any{"cell", i}, &into, func(*Lab) (any, error) {
					made++
					l.began = l.began.Add(-limit) // so long it took
					return i, nil
				})
			})
		}
		return l.All(jobs)
	}
	for after := 1; after <= 2; after++ {
		if err := call(time.Hour); !errors.Is(err, sim.ErrInterrupted) || made != after {
			t.Fatalf("%d cells were made, %v", made, err)
		}
	}
	if err := call(0); err != nil || made != 3 {
		t.Errorf("without a limit %d cells were made, %v", made, err)
	}
}

// TestACellIsStoppedInTheMiddleOfARound: its only round would take hours.
func TestACellIsStoppedInTheMiddleOfARound(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := &Lab{Options: Options{Out: t.TempDir(), Workers: 1, Tick: func(int, int) {}}, Context: ctx}
	run := config.Default("synthetic", "fedavg", "paper")
	run.Algorithm.Local.Epochs = 1 << 30
	time.AfterFunc(200*time.Millisecond, cancel)
	if _, err := l.Finish(run); !errors.Is(err, sim.ErrInterrupted) {
		t.Error(err)
	}
}
