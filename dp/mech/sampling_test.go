package mech

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/rng"
)

func openSampler(t *testing.T, sampling event.Sampling, rate float64, batch int, key int) *Sampler {
	t.Helper()
	family := rng.NewFamily(7, "sampler")
	s := new(Sampler)
	if err := s.Open(sampling, rate, batch, NewEntropy(family.Stream(0, key))); err != nil {
		t.Fatal(err)
	}
	return s
}

// poissonOff is by how many standard deviations the number of examples in batches of a
// rate differs from that of a claimed one, and the largest such difference of any
// single position of the batch modulo 7 (a sampler that favours some places shows).
func poissonOff(t *testing.T, rate, claimed float64, size, batches, key int) (all, worst float64) {
	s := openSampler(t, event.Poisson, rate, 0, key)
	var count [7]float64
	for range batches {
		batch, err := s.Batch(size)
		if err != nil {
			t.Fatal(err)
		}
		last := -1
		for _, i := range batch {
			if i <= last || i >= size {
				t.Fatalf("example %d after %d of %d", i, last, size)
			}
			last = i
			count[i%7]++
		}
	}
	off := func(got, draws float64) float64 {
		return (got - draws*claimed) / math.Sqrt(draws*claimed*(1-claimed))
	}
	total := 0.0
	for i, c := range count {
		total += c
		places := float64((size + 6 - i) / 7)
		worst = max(worst, math.Abs(off(c, places*float64(batches))))
	}
	return off(total, float64(size)*float64(batches)), worst
}

// TestPoissonDrawsAtItsRate: streams are keyed, so it gives the same answer every
// time; at fresh keys 4.9 standard deviations are passed once in a million, 5.3 by one
// of seven. A rate 1.2 times as high is caught at every rate, tiny ones too, where
// floats of 53 bits lose it.
func TestPoissonDrawsAtItsRate(t *testing.T) {
	for i, c := range []struct {
		rate          float64
		size, batches int
	}{
		{0.5, 1000, 100}, {0.05, 10_000, 100}, {0.999, 700, 100}, {1e-3, 1_000_000, 10}, {1e-9, 1 << 40, 10}, {1e-12, 1 << 50, 10},
	} {
		all, worst := poissonOff(t, c.rate, c.rate, c.size, c.batches, i)
		if math.Abs(all) > 4.9 || worst > 5.3 {
			t.Errorf("rate %v: %.2f standard deviations off, one place in seven %.2f", c.rate, all, worst)
		}
		planted := min(1.2*c.rate, (1+c.rate)/2)
		if all, _ := poissonOff(t, planted, c.rate, c.size, c.batches, i); all < 4.9 {
			t.Errorf("rate %v for %v went unnoticed: %.2f", planted, c.rate, all)
		}
	}
	s := openSampler(t, event.Poisson, 1, 0, 0)
	if all, err := s.Batch(5); err != nil || len(all) != 5 {
		t.Errorf("rate 1 leaves examples out: %v, %v", all, err)
	}
	s = openSampler(t, event.Poisson, 0, 0, 0)
	if none, err := s.Batch(1 << 50); err != nil || len(none) != 0 {
		t.Errorf("rate 0 takes %v, %v", none, err)
	}
}

// TestRateIsRoundedDown: the rate that is drawn is never above the one accounted.
func TestRateIsRoundedDown(t *testing.T) {
	for _, rate := range []float64{1e-15, 1e-9, 0.1, 1.0 / 3, 0.5, 0.9, 1 - 0x1p-53} {
		s := openSampler(t, event.Poisson, rate, 0, 0)
		drawn := -math.Expm1(-float64(s.left) / gapSteps)
		if drawn > rate || drawn < rate*(1-0.01) {
			t.Errorf("rate %v is drawn at %v", rate, drawn)
		}
	}
}

func TestOtherSamplings(t *testing.T) {
	s := openSampler(t, event.WithoutReplacement, 0, 3, 1)
	seen := map[int]int{}
	for range 3000 {
		batch, err := s.Batch(10)
		if err != nil || len(batch) != 3 || batch[0] == batch[1] || batch[1] == batch[2] || batch[0] == batch[2] {
			t.Fatal(batch, err)
		}
		for _, i := range batch {
			seen[i]++
		}
	}
	for i := range 10 {
		if n := seen[i]; math.Abs(float64(n)-900) > 4.9*math.Sqrt(3000*0.3*0.7) {
			t.Errorf("example %d is in %d of 3000 batches of 3 of 10", i, n)
		}
	}
	s = openSampler(t, event.Shuffle, 0, 4, 2)
	for epoch := range 5 {
		seen := map[int]bool{}
		for range 2 {
			batch, err := s.Batch(10)
			if err != nil || len(batch) != 4 {
				t.Fatal(batch, err)
			}
			for _, i := range batch {
				if seen[i] {
					t.Errorf("epoch %d has example %d twice", epoch, i)
				}
				seen[i] = true
			}
		}
	}
	if _, err := s.Batch(3); err == nil {
		t.Error("batches of 4 from 3 examples")
	}
	s = openSampler(t, event.FullBatch, 0, 4, 2)
	for _, size := range []int{10, 7, 0} {
		if batch, err := s.Batch(size); err != nil || len(batch) != size || size > 0 && batch[size-1] != size-1 {
			t.Errorf("all of %d examples: %v, %v", size, batch, err)
		}
	}
	for name, err := range map[string]error{
		"rate":       new(Sampler).Open(event.Poisson, 1.1, 0, SystemEntropy()),
		"NaN":        new(Sampler).Open(event.Poisson, math.NaN(), 0, SystemEntropy()),
		"batch":      new(Sampler).Open(event.Shuffle, 0, 0, SystemEntropy()),
		"unknown":    new(Sampler).Open("by lot", 0, 3, SystemEntropy()),
		"no entropy": new(Sampler).Open(event.Poisson, 0.1, 0, nil),
	} {
		if err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// BenchmarkPoisson draws a batch of about a hundred: time goes with the batch, not
// with the examples.
func BenchmarkPoisson(b *testing.B) {
	for _, size := range []int{10_000, 100_000_000} {
		b.Run("", func(b *testing.B) {
			s := new(Sampler)
			if err := s.Open(event.Poisson, 100/float64(size), 0, SystemEntropy()); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := s.Batch(size); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestBatchesAhead: what is drawn ahead is what would be drawn, whoever draws when; and
// nothing is drawn twice.
func TestBatchesAhead(t *testing.T) {
	plain, other := openSampler(t, event.Poisson, 0.1, 0, 1), openSampler(t, event.Poisson, 0.1, 0, 1)
	for i := range 20 {
		want, err := plain.Batch(500)
		if err != nil {
			t.Fatal(err)
		}
		got, err := other.Batch(500)
		if err != nil {
			t.Fatal(err)
		}
		if i%3 > 0 {
			other.Ahead(500)
			other.Ahead(500) // once is enough
		}
		if !slices.Equal(got, want) { // the batch at hand stays
			t.Fatalf("batch %d is another one", i)
		}
	}
	other.Ahead(500)
	if _, err := other.Batch(400); err == nil {
		t.Error("a batch of 400 examples was drawn ahead of 500")
	}
	other.Ahead(500)
	other.Settle()
	if _, err := other.Batch(400); err != nil {
		t.Error(err)
	}
}
