package mech

import (
	"crypto/rand"
	"errors"
	"io"
	"math"
	"slices"
	"sync"
	"testing"
)

// goroutines is a Runner of so many.
type goroutines int

func (g goroutines) Workers() int { return int(g) }

func (g goroutines) Each(n int, job func(worker, i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { job(i%int(g), i) })
	}
	all.Wait()
}

// spreadSum is a StepSum with a runner, for its noise alone.
func spreadSum(workers int) *StepSum {
	s := new(StepSum)
	s.Spread(goroutines(workers))
	return s
}

// TestNoiseOfManyGoroutines: every value is drawn, with the variance that is asked for, and no
// goroutine draws what another one does. (False alarms: below 1e-9 in each of 40 parts, by the
// chi-square's normal limit at 6.5 deviations; values that are equal by chance, 1e-8.)
func TestNoiseOfManyGoroutines(t *testing.T) {
	const sigma = MaxSigma
	for _, c := range []struct{ workers, n int }{{4, 5*leastDrawn + 3}, {3, 3 * leastDrawn}, {8, leastDrawn - 1}, {2, 40000}} {
		dst := make([]int64, c.n)
		if err := spreadSum(c.workers).draw(SystemEntropy(), dst, sigma); err != nil {
			t.Fatal(err)
		}
		for k := range 10 {
			part := dst[len(dst)*k/10 : len(dst)*(k+1)/10]
			var square float64
			for _, v := range part {
				square += float64(v) / sigma * float64(v) / sigma
			}
			n := float64(len(part))
			if off := (square - n) / math.Sqrt(2*n); math.Abs(off) > 6.5 {
				t.Errorf("%d workers, %d values: part %d has a variance of %v, %.1f deviations off", c.workers, c.n, k, square/n, off)
			}
		}
		slices.Sort(dst)
		if equal := len(dst) - len(slices.Compact(slices.Clone(dst))); equal > 0 {
			t.Errorf("%d workers, %d values: %d are there more than once", c.workers, c.n, equal)
		}
	}
}

// TestSeededNoiseIsOneStream: what follows from a seed does not depend on the number of goroutines.
func TestSeededNoiseIsOneStream(t *testing.T) {
	const n, sigma = 3 * leastDrawn, 1 << 30
	want, got := make([]int64, n), make([]int64, n)
	if err := NewEntropy(streamOf(7, "noise")).DiscreteGaussian(want, sigma); err != nil {
		t.Fatal(err)
	}
	if err := spreadSum(3).draw(NewEntropy(streamOf(7, "noise")), got, sigma); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Error("other noise by three goroutines")
	}
}

// failing is an entropy source that ends.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestNoiseThatCannotBeDrawn: one goroutine without entropy is enough for an error.
func TestNoiseThatCannotBeDrawn(t *testing.T) {
	s := spreadSum(3)
	e := SystemEntropy()
	if err := s.draw(e, make([]int64, 3*leastDrawn), 1<<30); err != nil {
		t.Fatal(err)
	}
	s.sources[1].Reset(failing{})
	if err := s.draw(e, make([]int64, 3*leastDrawn), 1<<30); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if e.source != rand.Reader {
		t.Error("the first one draws from somewhere else")
	}
}
