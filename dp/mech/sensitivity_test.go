package mech

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// A pipeline takes a silo's vectors to integers that may leave. The tests record
// a run and replay it on a neighbouring input with the same random bits: noise
// cancels, and what is left is the true distance, in integers.
type pipeline func(data [][]float64, e *Entropy) ([]int64, error)

const clipBound = 1.0

// fineLattice shows the roundings of a float sum.
var fineLattice = Lattice{Step: 0x1p-44}

// mechanism is the pipeline as it should be; quantise says how the vectors become
// an integer sum, which is what the planted bugs replace.
func mechanism(quantise func(data [][]float64) ([]int64, error)) pipeline {
	return func(data [][]float64, e *Entropy) ([]int64, error) {
		sum, err := quantise(data)
		if err != nil {
			return nil, err
		}
		out := make([]int64, len(sum))
		if err := e.DiscreteGaussian(out, 1<<44); err != nil {
			return nil, err
		}
		for i := range out {
			out[i] += sum[i]
		}
		return out, nil
	}
}

// released is the real thing: Clip, ClippedSum, Gaussian.Release.
func released(data [][]float64, e *Entropy) ([]int64, error) {
	sum, err := NewClippedSum(3, clipBound, fineLattice)
	if err != nil {
		return nil, err
	}
	for _, v := range data {
		c, err := Clip(append([]float64(nil), v...), clipBound)
		if err != nil {
			return nil, err
		}
		if err := sum.Add(c); err != nil {
			return nil, err
		}
	}
	out := make([]int64, 3)
	_, err = Gaussian{Multiplier: 1}.Release(out, sum, addRemove, e)
	return out, err
}

// floats sums in floats; each vector is weighted first.
func floats(weight func(data [][]float64, v []float64) float64) pipeline {
	return mechanism(func(data [][]float64) ([]int64, error) {
		sum := make([]float64, 3)
		for _, v := range data {
			w := weight(data, v)
			for i, x := range v {
				sum[i] += w * x
			}
		}
		q := make([]int64, 3)
		return q, fineLattice.Truncate(q, sum)
	})
}

func clipWeight(_ [][]float64, v []float64) float64 {
	norm, _ := Norm(v)
	return min(1, clipBound/max(norm, 1e-300))
}

func noClip([][]float64, []float64) float64 { return 1 }

// privateNormaliser averages over the batch's own size instead of a public one,
// and scales back by the public one.
func privateNormaliser(data [][]float64, v []float64) float64 {
	return clipWeight(data, v) * 20 / float64(len(data))
}

// checkSensitivity compares declared and true distance on pairs of neighbours:
// one vector removed (at most the bound) or replaced (at most twice the bound),
// sizes 0 and 1 included.
func checkSensitivity(run pipeline, pairs int) error {
	source := rand.New(rand.NewPCG(11, 11))
	for pair := range pairs {
		data := make([][]float64, source.IntN(40))
		if pair%10 == 0 {
			data = data[:min(len(data), pair/10%2)]
		}
		for i := range data {
			data[i] = randomVector(source, 3, math.Exp(2*source.NormFloat64()))
		}
		neighbour := append([][]float64(nil), data...)
		limit := clipBound
		switch {
		case len(data) > 0 && pair%2 == 0:
			at := source.IntN(len(data))
			neighbour = append(neighbour[:at], neighbour[at+1:]...)
		case len(data) > 0:
			neighbour[source.IntN(len(data))] = randomVector(source, 3, 10)
			limit = 2 * clipBound
		default:
			neighbour = append(neighbour, randomVector(source, 3, 10))
		}
		first, second := keyed(byte(pair)), keyed(byte(pair))
		a, err := run(data, first)
		if err != nil {
			return err
		}
		b, err := run(neighbour, second)
		if err != nil {
			return err
		}
		for i := range a {
			a[i] -= b[i]
		}
		if !fineLattice.Within(a, limit) {
			return fmt.Errorf("pair %d, %d vectors: the outputs are %v steps apart, more than %v", pair, len(data), a, limit)
		}
		// The data must not steer how random bits are used.
		if first.pos != second.pos || first.chunk != second.chunk {
			return fmt.Errorf("pair %d: %d and %d bytes of randomness", pair, first.pos, second.pos)
		}
	}
	return nil
}

// checkFreshness says whether releases of the same data have unrelated noise.
func checkFreshness(run func(release int) ([]int64, error), releases int) error {
	var product, square float64
	var before []int64
	for i := range releases {
		out, err := run(i)
		if err != nil {
			return err
		}
		for j := range before {
			x, y := float64(out[j]), float64(before[j])
			product += x * y
			square += x * x
		}
		before = append(before[:0], out...)
	}
	n := float64((releases - 1) * len(before))
	if z := product / square * math.Sqrt(n); math.Abs(z) > zLimit {
		return fmt.Errorf("the noise of consecutive releases is correlated, z = %.1f", z)
	}
	return nil
}

func TestSensitivityByReplay(t *testing.T) {
	if err := checkSensitivity(released, 10_000); err != nil {
		t.Error(err)
	}
}

func TestPlantedNoClipIsCaught(t *testing.T) {
	if err := checkSensitivity(floats(noClip), 10_000); err == nil {
		t.Error("a sum of unclipped vectors passed")
	}
}

func TestPlantedFloatSumIsCaught(t *testing.T) {
	err := checkSensitivity(floats(clipWeight), 10_000)
	if err == nil {
		t.Error("a float sum passed")
	}
	t.Log(err)
}

func TestPlantedPrivateNormaliserIsCaught(t *testing.T) {
	if err := checkSensitivity(floats(privateNormaliser), 10_000); err == nil {
		t.Error("an average over the private batch size passed")
	}
}

func TestPlantedSeedReuseIsCaught(t *testing.T) {
	e := keyed(140)
	fresh := func(int) ([]int64, error) { return released(nil, e) }
	if err := checkFreshness(fresh, 2000); err != nil {
		t.Error(err)
	}
	// The bug: every second release draws from the same seed again.
	reused := func(release int) ([]int64, error) { return released(nil, keyed(byte(release/2%256))) }
	if err := checkFreshness(reused, 2000); err == nil {
		t.Error("reused seeds passed")
	}
}

// TestScoresSensitivity: one example moves every score by at most what the scores
// declare.
func TestScoresSensitivity(t *testing.T) {
	source := rand.New(rand.NewPCG(12, 12))
	for range 10_000 {
		bound := math.Exp(source.NormFloat64())
		examples := make([][]float64, source.IntN(10))
		for i := range examples {
			examples[i] = randomVector(source, 3, 3*bound)
		}
		score := func(examples [][]float64) Scores {
			s, err := NewLossScores(3, bound)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range examples {
				if err := s.Add(x); err != nil {
					t.Fatal(err)
				}
			}
			return s.Scores()
		}
		one := append(examples[:len(examples):len(examples)], randomVector(source, 3, 3*bound))
		other := append(examples[:len(examples):len(examples)], []float64{math.Inf(1), math.NaN(), -1})
		a, b, c := score(examples), score(one), score(other)
		for i := range a.units {
			for _, d := range []int64{b.units[i] - a.units[i], c.units[i] - b.units[i], c.units[i] - a.units[i]} {
				if magnitude(d) > uint64(a.most) {
					t.Fatalf("a score moved by %d units, declared %d", d, a.most)
				}
			}
		}
	}
	// A rate moves by 1/n when one of n examples is replaced, declared 1/(n-1).
	rates, err := ErrorRates([]int64{3, 4}, 10)
	if err != nil {
		t.Fatal(err)
	}
	if !(rates.most >= rates.of) {
		t.Errorf("declared %d/%d counts, less than one", rates.most, rates.of)
	}
}

// TestSectorSensitivityByReplay: replacing one vector of a sector moves the sum by
// at most twice the declared bound.
func TestSectorSensitivityByReplay(t *testing.T) {
	source := rand.New(rand.NewPCG(13, 13))
	l := Lattice{Step: 0x1p-10} // coarse, so that truncation shows
	for range 2000 {
		n := 1 + source.IntN(20)
		s, err := NewSector(randomVector(source, n, 1), 0.7, 1, 0.05+0.3*source.Float64())
		if err != nil {
			t.Fatal(err)
		}
		out := [2][]int64{make([]int64, n), make([]int64, n)}
		common := randomVector(source, n, 1)
		var bound float64
		for side := range out {
			sum, err := NewSectorSum(s, l)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range [][]float64{common, randomVector(source, n, 1)} {
				c, err := s.Clip(append([]float64(nil), v...))
				if err != nil {
					t.Fatal(err)
				}
				if err := sum.AddSector(c); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := (Gaussian{Multiplier: 1}).Release(out[side], sum, replaceOne, keyed(150)); err != nil {
				t.Fatal(err)
			}
			bound = sum.Bound()
		}
		for i := range out[0] {
			out[0][i] -= out[1][i]
		}
		if !l.Within(out[0], 2*bound) {
			t.Fatalf("n %d: %v steps apart, bound %v", n, out[0], 2*bound)
		}
	}
}

// Bound is what the noise multiplier is relative to.
func (s *SimulatedSum) Bound() float64 { return s.bound }

// Bound is what the noise multiplier is relative to.
func (s *ClippedSum) Bound() float64 { return s.bound }
