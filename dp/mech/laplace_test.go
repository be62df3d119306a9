package mech

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/rng"
)

// laplaceDraws fills rows of n coordinates with noise alone: base and update 0.
func laplaceDraws(t *testing.T, l Laplace, n, rows int, radius float64) [][]float64 {
	t.Helper()
	family := rng.NewFamily(11, fmt.Sprint("laplace", l, n))
	src := family.Stream(0, 0)
	zero := make([]float64, n)
	out := make([][]float64, rows)
	for i := range out {
		c, err := Clip(make([]float64, n), radius)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = make([]float64, n)
		if _, err := l.Simulate(out[i], zero, c, src); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// papersDraws are the same as the papers draw them: a uniform direction times a
// Gamma(n, 1/eps) norm.
func papersDraws(nu float64, n, rows int, radius float64) [][]float64 {
	family := rng.NewFamily(11, fmt.Sprint("norm and direction", nu, n))
	src := family.Stream(0, 0)
	eps := float64(n) / (nu * radius)
	out := make([][]float64, rows)
	for i := range out {
		row := make([]float64, n)
		var sum float64
		for sum == 0 {
			for j := range row {
				row[j] = rng.Normal(src)
				sum += row[j] * row[j]
			}
		}
		scale := rng.Gamma(src, float64(n)) / (eps * math.Sqrt(sum))
		for j := range row {
			row[j] *= scale
		}
		out[i] = row
	}
	return out
}

// laplaceFaults compares noise with proposition 3.1 of paper 000: |rho| ~
// Gamma(n, 1/eps), the direction uniform, each component of variance (n+1)/eps^2.
// Every check fails a right sampler with probability at most falseAlarm.
func laplaceFaults(rows [][]float64, eps float64) error {
	n := len(rows[0])
	norms, angles := make([]float64, len(rows)), make([]float64, len(rows))
	var mean, square, fourth float64
	for i, row := range rows {
		norm, err := Norm(row)
		if err != nil {
			return err
		}
		norms[i] = norm
		angles[i] = row[0] / norm
		mean += row[n-1]
		square += row[0] * row[0]
		fourth += row[0] * row[0] * row[0] * row[0]
	}
	m := float64(len(rows))
	mean, square, fourth = mean/m, square/m, fourth/m
	if err := checkKolmogorov(norms, distuv.Gamma{Alpha: float64(n), Beta: eps}.CDF); err != nil {
		return fmt.Errorf("norm: %w", err)
	}
	if n > 1 {
		// One coordinate of a uniform direction: (u+1)/2 ~ Beta((n-1)/2, (n-1)/2).
		half := float64(n-1) / 2
		beta := distuv.Beta{Alpha: half, Beta: half}
		if err := checkKolmogorov(angles, func(u float64) float64 { return beta.CDF((u + 1) / 2) }); err != nil {
			return fmt.Errorf("direction: %w", err)
		}
	}
	want := float64(n+1) / (eps * eps)
	if z := (square - want) / math.Sqrt((fourth-square*square)/m); math.Abs(z) > zLimit {
		return fmt.Errorf("component variance %v, want %v (%.1f standard errors)", square, want, z)
	}
	if z := mean / math.Sqrt(want/m); math.Abs(z) > zLimit {
		return fmt.Errorf("mean %v (%.1f standard errors)", mean, z)
	}
	return nil
}

func TestLaplaceDistribution(t *testing.T) {
	for _, n := range []int{1, 2, 11, 1000} {
		rows := 100_000
		if n == 1000 {
			rows = 20_000
		}
		const nu, radius = 5, 0.3
		eps := float64(n) / (nu * radius)
		for name, draws := range map[string][][]float64{
			"mixture":            laplaceDraws(t, Laplace{Multiplier: nu}, n, rows, radius),
			"norm and direction": papersDraws(nu, n, rows, radius),
		} {
			if err := laplaceFaults(draws, eps); err != nil {
				t.Errorf("n = %d, %s: %v", n, name, err)
			}
			// Planted: noise 5 % too narrow must be caught.
			for _, row := range draws {
				for i := range row {
					row[i] *= 0.95
				}
			}
			if laplaceFaults(draws, eps) == nil {
				t.Errorf("n = %d: noise 5 %% too narrow passed", n)
			}
		}
	}
}

func TestLaplaceDirectionFaultIsCaught(t *testing.T) {
	// Planted: a norm of the right law along a fixed set of axes.
	rows := laplaceDraws(t, Laplace{Multiplier: 5}, 3, 50_000, 1)
	for i, row := range rows {
		norm, _ := Norm(row)
		clear(row)
		row[i%3] = norm * float64(1-2*(i/3%2))
	}
	if laplaceFaults(rows, 3.0/5) == nil {
		t.Error("noise along the axes passed for a uniform direction")
	}
}

func TestLaplaceFormsAgree(t *testing.T) {
	// The two forms against each other: KS of two samples, limit at 1e-6.
	const rows = 50_000
	a := laplaceDraws(t, Laplace{Multiplier: 2}, 11, rows, 1)
	b := papersDraws(2, 11, rows, 1)
	compare := func(scale float64) float64 {
		var x, y []float64
		for i := range a {
			x = append(x, math.Abs(a[i][3]))
			y = append(y, scale*math.Abs(b[i][3]))
		}
		return kolmogorovBetween(x, y)
	}
	limit := math.Sqrt(math.Log(2/falseAlarm) / rows)
	if d := compare(1); d > limit {
		t.Errorf("the forms differ by %.4f, limit %.4f", d, limit)
	}
	if d := compare(1.05); d <= limit {
		t.Errorf("a scale error of 5 %% between the forms passed: %.4f, limit %.4f", d, limit)
	}
}

func TestLaplaceNamesItsEvent(t *testing.T) {
	l := Laplace{Multiplier: 5}
	public, _ := Clip([]float64{0.1, 0}, 0.3)
	own, _ := OwnRadius([]float64{3, 4}, 1e-6, 10)
	if r := l.Release(public); r.Claim != event.ClaimMetric || r.What != (event.MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 0.3}) {
		t.Errorf("public radius: %+v", r)
	}
	r := l.Release(own)
	e := r.What.(event.MetricLaplace)
	if r.Claim != event.ClaimHeuristic || e.Radius != 5 || e.Leak() != 0.4 || math.Abs(e.Epsilon()-0.08) > 1e-15 {
		t.Errorf("own radius: %+v, epsilon %v, leak %v", r, e.Epsilon(), e.Leak())
	}
}

func TestLaplaceRefuses(t *testing.T) {
	c, _ := Clip([]float64{1, 2}, 1)
	two := make([]float64, 2)
	src := rng.NewFamily(1, "x")
	for name, try := range map[string]func() error{
		"no noise": func() error { _, err := Laplace{}.Simulate(two, two, c, src.Stream(0, 0)); return err },
		"NaN noise": func() error {
			_, err := Laplace{Multiplier: math.NaN()}.Simulate(two, two, c, src.Stream(0, 0))
			return err
		},
		"unclipped": func() error {
			_, err := Laplace{Multiplier: 1}.Simulate(two, two, Clipped{}, src.Stream(0, 0))
			return err
		},
		"wrong length": func() error {
			_, err := Laplace{Multiplier: 1}.Simulate(two, make([]float64, 3), c, src.Stream(0, 0))
			return err
		},
	} {
		if try() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestOnLatticeKeepsCentreAndScale(t *testing.T) {
	// Base and update survive exactly, and the noise has the mechanism's variance.
	const n, rows = 2, 40_000
	l := Laplace{Multiplier: 5}
	lattice, err := LatticeFor(5 * 0.3 * math.Sqrt(3) / 2)
	if err != nil {
		t.Fatal(err)
	}
	from := keyed(3)
	base := []int64{1 << 22, -5}
	draws := make([][]float64, rows)
	for i := range draws {
		c, _ := Clip([]float64{0.1, -0.2}, 0.3)
		sum := make([]int64, n)
		if _, err := l.OnLattice(sum, base, c, lattice, from); err != nil {
			t.Fatal(err)
		}
		sum[0] -= base[0] + int64(0.1/lattice.Step)
		sum[1] -= base[1] - int64(0.2/lattice.Step)
		draws[i] = make([]float64, n)
		lattice.Float(draws[i], sum)
	}
	if err := laplaceFaults(draws, n/(5*0.3)); err != nil {
		t.Error(err)
	}
}

func BenchmarkSimulatedLaplace(b *testing.B) {
	const n = 1_206_590
	dst, base, update := make([]float64, n), make([]float64, n), make([]float64, n)
	c, err := Clip(update, 1)
	if err != nil {
		b.Fatal(err)
	}
	family := rng.NewFamily(1, "bench")
	src := family.Stream(0, 0)
	for b.Loop() {
		if _, err := (Laplace{Multiplier: 5}).Simulate(dst, base, c, src); err != nil {
			b.Fatal(err)
		}
	}
}

// kolmogorovBetween is the distance between two samples of equal size. It sorts
// them.
func kolmogorovBetween(x, y []float64) float64 {
	slices.Sort(x)
	slices.Sort(y)
	i, j, worst := 0, 0, 0.0
	for i < len(x) && j < len(y) {
		if x[i] <= y[j] {
			i++
		} else {
			j++
		}
		worst = max(worst, math.Abs(float64(i-j))/float64(len(x)))
	}
	return worst
}

// Release is the event with its terms: metric at a public bound, heuristic when
// the bound came from private data.
func (l Laplace) Release(c Clipped) event.Release {
	claim := event.ClaimHeuristic
	if c.public {
		claim = event.ClaimMetric
	}
	return event.Release{
		Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: claim,
		Trust: event.TrustLocal, What: l.Event(c),
	}
}
