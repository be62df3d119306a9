package boundeddp

import (
	"errors"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/repro/lab"
)

// aligned is how much vectors of one training point in one direction, by round.
type aligned struct {
	Updates  []float64 // mean cosine of two clients' updates
	Examples []float64 // of two examples' gradients, at the same models
	Angle    []float64 // largest between an update and the mean of all, in degrees
	Before   []float64 // mean cosine of an update and the last round's mean; none in the first
	Accuracy float64   // after the last round
}

// figure54 trains as figure 5.4 does: so many clients make five local steps from one model,
// the mean of theirs is the next one.
func figure54(l *lab.Lab, run config.Run, p pictures, clients []data.Client) (out aligned, err error) {
	t, err := begin(l, run, clients)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	t.rounds.KeepReleases()
	n := t.model.Parameters()
	family := rng.NewFamily(run.Seed, "bounded-dp: examples")
	gradients, before := make([]float64, len(clients)*n), make([]float64, n)
	var last []float64
	for round := range run.Algorithm.Rounds {
		copy(before, t.rounds.State.Hypotheses)
		all := p.pool
		for i := range len(clients) {
			one := []int{family.Stream(round, i).Below(all.Len())}
			if err := t.learner.Gradient(gradients[i*n:(i+1)*n], before, &all, one, &model.Step{Divisor: 1}); err != nil {
				return out, err
			}
		}
		out.Examples = append(out.Examples, meanCosine(slices.Clone(gradients), n))
		if err := t.rounds.Make(t.everybody); err != nil {
			return out, err
		}
		updates := slices.Clone(t.rounds.Releases.Vectors)
		for i := range updates {
			updates[i] -= before[i%n]
		}
		mean := meanOf(updates, n)
		out.Updates = append(out.Updates, meanCosine(slices.Clone(updates), n))
		out.Angle = append(out.Angle, 180/math.Pi*math.Acos(slices.Min(cosinesTo(updates, mean))))
		if last != nil {
			out.Before = append(out.Before, average(cosinesTo(updates, last)))
		}
		last = mean
	}
	out.Accuracy, err = t.accuracy(p.test)
	return out, err
}

// meanCosine is that of all pairs among vectors of length n, which are made units.
func meanCosine(vectors []float64, n int) float64 {
	k := float64(len(vectors) / n)
	for from := 0; from < len(vectors); from += n {
		normalise(vectors[from : from+n])
	}
	sum := meanOf(vectors, n)
	var square float64
	for _, v := range sum {
		square += v * v * k * k
	}
	return (square - k) / (k * (k - 1)) // |sum of units|^2 holds every pair twice, and k ones
}

// normalise makes v a unit; zero stays zero.
func normalise(v []float64) {
	var square float64
	for _, x := range v {
		square += x * x
	}
	if square == 0 {
		return
	}
	for i := range v {
		v[i] /= math.Sqrt(square)
	}
}

// meanOf is the mean of vectors of length n.
func meanOf(vectors []float64, n int) []float64 {
	mean, k := make([]float64, n), float64(len(vectors)/n)
	for i, v := range vectors {
		mean[i%n] += v / k
	}
	return mean
}

// cosinesTo are those of vectors with a direction.
func cosinesTo(vectors, direction []float64) []float64 {
	n, out := len(direction), []float64(nil)
	unit, v := slices.Clone(direction), make([]float64, len(direction))
	normalise(unit)
	for from := 0; from < len(vectors); from += n {
		copy(v, vectors[from:from+n])
		normalise(v)
		var dot float64
		for i, x := range v {
			dot += x * unit[i]
		}
		out = append(out, max(-1, min(1, dot)))
	}
	return out
}

func average(values []float64) float64 { return lab.MeanAndDeviation(values).Middle }
