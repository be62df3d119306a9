package theory

import (
	"errors"
	"math"
	"testing"

	"github.com/coterie-fl/coterie/internal/rng"
)

// Gammas of the authors' script for a mean of 10 trials; its own search is good to
// about 2e-4.
func TestGammaOfTheAuthors(t *testing.T) {
	for eta, want := range map[float64]float64{-0.5: 0.0027688, 0: 0.0269181, 0.5: 0.0624999} {
		trials, err := NegativeBinomialTrials(eta, 10)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "gamma", trials.Gamma, want, 1e-3)
		if trials.Mean < 10 {
			t.Errorf("eta %v: the mean is %v, below what was asked for", eta, trials.Mean)
		}
	}
}

func distributions(t *testing.T) []Trials {
	t.Helper()
	var all []Trials
	for _, eta := range []float64{-0.5, -1e-7, 0, 1e-7, 0.5, 1, 2, 5} {
		trials, err := NegativeBinomialTrials(eta, 4)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, trials)
	}
	for _, mean := range []float64{1, 4, 2000} {
		trials, err := PoissonTrials(mean)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, trials)
	}
	return all
}

func TestTrialsAreADistribution(t *testing.T) {
	for _, d := range distributions(t) {
		sum, mean, half := 0.0, 0.0, 0.0
		for h := range 5000 {
			p := d.Probability(h)
			sum += p
			mean += float64(h) * p
			half += p * math.Pow(0.5, float64(h))
			if p == 0 && float64(h) > d.Mean {
				break
			}
		}
		near(t, "the sum of all probabilities", sum, 1, 1e-9)
		near(t, "the mean", mean, d.Mean, 1e-8)
		if d.Mean < 100 {
			near(t, "E[2^-h]", d.generating(0.5), half, 1e-9)
		}
	}
}

// TestDrawsFollowTheDistribution: chi-square over the most frequent counts; it
// passes its limit once in a million. A shape that is off by 0.1 must be seen.
func TestDrawsFollowTheDistribution(t *testing.T) {
	const n = 200_000
	f := rng.NewFamily(3, "trials")
	for i, d := range distributions(t) {
		if d.Mean > 100 {
			continue
		}
		counts := map[int]int{}
		s := f.Stream(0, i)
		for range n {
			counts[d.Count(s.Float64())]++
		}
		chi, cells := chiSquare(d, counts, n)
		// Wilson and Hilferty's cube root, at 4.75 standard deviations.
		limit := float64(cells) * math.Pow(1-2/(9*float64(cells))+4.75*math.Sqrt(2/(9*float64(cells))), 3)
		if chi > limit {
			t.Errorf("%+v: chi-square %.1f, limit %.1f", d, chi, limit)
		}
		if d.Poisson || d.Eta < 0 {
			continue
		}
		wrong, err := NegativeBinomialTrials(d.Eta+0.1, 4)
		if err != nil {
			t.Fatal(err)
		}
		if chi, _ := chiSquare(wrong, counts, n); chi < limit && d.Eta < 2 {
			t.Errorf("%+v: a wrong shape was not seen: chi-square %.1f, limit %.1f", d, chi, limit)
		}
	}
}

func chiSquare(d Trials, counts map[int]int, n float64) (chi float64, cells int) {
	left, seen := n, n
	for h := range 200 {
		want := n * d.Probability(h)
		if want < 10 {
			continue
		}
		got := float64(counts[h])
		chi += (got - want) * (got - want) / want
		left -= want
		seen -= got
		cells++
	}
	if left > 10 {
		chi += (seen - left) * (seen - left) / left
	}
	return chi, cells
}

func TestBestOf(t *testing.T) {
	values := []float64{3, 1, 2, 7}
	s := rng.NewFamily(1, "best of")
	for i, d := range distributions(t) {
		if d.Mean > 100 {
			continue
		}
		const n = 100_000
		var m moments
		src := s.Stream(0, i)
		for range n {
			best := 100.0
			for range d.Count(src.Float64()) {
				best = math.Min(best, values[src.Below(len(values))])
			}
			m.add(best)
		}
		if z := math.Abs(m.mean-d.BestOf(values, 100)) / m.standardError(); z > 4.9 {
			t.Errorf("%+v: %v, drawn %v: %.1f standard errors", d, d.BestOf(values, 100), m.mean, z)
		}
	}
}

func TestTrialsRefused(t *testing.T) {
	for _, c := range [][2]float64{{-1, 10}, {math.NaN(), 10}, {0, 1}, {0, math.Inf(1)}, {math.Inf(1), 10}, {-0.9999, 1e8}} {
		if _, err := NegativeBinomialTrials(c[0], c[1]); !errors.Is(err, ErrRange) {
			t.Errorf("eta %v, mean %v: %v", c[0], c[1], err)
		}
	}
	if _, err := PoissonTrials(0.5); !errors.Is(err, ErrRange) {
		t.Errorf("Poisson of mean 0.5: %v", err)
	}
}
