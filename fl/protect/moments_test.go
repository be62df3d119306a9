package protect

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
	"github.com/coterie-fl/coterie/internal/rng"
)

// paidRun has features in public ranges of ±width around 0.
func paidRun(kind, relation string, width float64) config.Run {
	run := fltest.Run(kind)
	run.Data.Standardise = "paid"
	run.Data.Centre, run.Data.Scale = make([]float64, fltest.Features), slices.Repeat([]float64{width}, fltest.Features)
	run.Algorithm.Mode, run.Privacy.Accounting, run.Privacy.MomentsShare = "sound", "sound", 0.25
	run.Privacy.Relation, run.Algorithm.Weights = relation, "equal"
	if relation == "add-remove" {
		run.Privacy.PublicSize = 40
	}
	return run
}

var bothRelations = []string{"replace-one", "add-remove"}

// preparedSilo is a silo that is ready for its first round, and its protection.
func preparedSilo(t testing.TB, run config.Run, c *data.Client) (*fl.Algorithm, *example, *fl.Participant) {
	t.Helper()
	s := fltest.New(t, run, 1)
	return s, s.Protection().(*example), fltest.Prepared(t, s, fl.Participant{Data: c})
}

// TestMomentsArePartOfTheTarget: what is spent in all is the target, whatever share
// the moments have; recomputed here from formulas, not by the accountant.
func TestMomentsArePartOfTheTarget(t *testing.T) {
	train, _ := fltest.Silos(1, 40, fltest.Features, 0.2)
	for _, relation := range bothRelations {
		for _, batch := range []int{10, 0} {
			if batch == 10 && relation == "replace-one" {
				continue // no closed form at hand
			}
			run := paidRun("mr-mtl", relation, 3)
			run.Algorithm.Local.Batch = batch
			plain := run
			plain.Data.Standardise = "none"
			_, _, without := preparedSilo(t, plain, &train[0])
			_, ps, _ := fltest.Federate(t, run, train)
			plan := ps[0].Plan
			if ps[0].Paid.Moments != 1 || !(plan.Noise > without.Plan.Noise) {
				t.Fatalf("%s: paid %+v, noise %v, without moments %v", relation, ps[0].Paid, plan.Noise, without.Plan.Noise)
			}
			steps := float64(run.Algorithm.Rounds * plan.Steps)
			total := totalEpsilon(relation, plan.Rate, plan.Noise, steps, plan.Moments, run.Privacy.Delta)
			if math.Abs(total/run.Privacy.Epsilon-1) > 0.01 {
				t.Errorf("%s, batch %d: by the formulas all costs %v, the target is %v", relation, batch, total, run.Privacy.Epsilon)
			}
			if g, _, err := plan.Spend(ps[0].Paid); err != nil || g.Epsilon > run.Privacy.Epsilon || g.Epsilon < 0.999*run.Privacy.Epsilon || g.Claim != event.ClaimProved {
				t.Errorf("%s, batch %d: spent %+v, %v", relation, batch, g, err)
			}
			// A plan that forgets the moments is seen.
			if forgot := totalEpsilon(relation, plan.Rate, without.Plan.Noise, steps, plan.Moments, run.Privacy.Delta); forgot < 1.01*run.Privacy.Epsilon {
				t.Errorf("%s, batch %d: moments beside a whole target cost %v in all", relation, batch, forgot)
			}
			// The share is what the moments cost by themselves.
			alone := totalEpsilon(relation, 1, plan.Moments, 1, math.Inf(1), run.Privacy.Delta)
			if want := 0.25 * run.Privacy.Epsilon; math.Abs(alone/want-1) > 0.01 {
				t.Errorf("%s: the moments alone cost %v, want %v", relation, alone, want)
			}
		}
	}
}

// totalEpsilon is that of Poisson-sampled Gaussian steps and one Gaussian release:
// Rényi divergences of integer orders (Mironov, Talwar and Zhang 2019, section 3.3),
// converted as in Canonne, Kamath and Steinke 2020, proposition 12.
func totalEpsilon(relation string, rate, noise, steps, moments, delta float64) float64 {
	if relation == "replace-one" {
		if rate < 1 {
			panic("no amplification here")
		}
		noise, moments = noise/2, moments/2
	}
	best := math.Inf(1)
	for order := 2; order < 200; order++ {
		a := float64(order)
		var sum float64
		for k := 0; k <= order; k++ {
			choose, _ := math.Lgamma(a + 1)
			left, _ := math.Lgamma(float64(k) + 1)
			right, _ := math.Lgamma(a - float64(k) + 1)
			sum += math.Exp(choose-left-right+float64(k*(k-1))/(2*noise*noise)) * math.Pow(rate, float64(k)) * math.Pow(1-rate, a-float64(k))
		}
		divergence := steps*math.Log(sum)/(a-1) + a/(2*moments*moments)
		best = min(best, divergence+math.Log((a-1)/a)-(math.Log(delta)+math.Log(a))/(a-1))
	}
	return best
}

// TestMomentsSensitivity: no row's part is longer than the bound, wherever the row
// lies, and the bound is not too large either.
func TestMomentsSensitivity(t *testing.T) {
	family := rng.NewFamily(1, "rows")
	s := family.Stream(0, 0)
	norm := func(v []float64) float64 {
		sum := 0.0
		for _, x := range v {
			sum += x * x
		}
		return math.Sqrt(sum)
	}
	for _, relation := range []event.Relation{event.ReplaceOne, event.AddRemove} {
		m, err := newMoments(paidRun("mr-mtl", string(relation), 3))
		if err != nil {
			t.Fatal(err)
		}
		bound, longest, unshifted := m.bound(relation), 0.0, 0.0
		for range 20_000 {
			x := make([]float64, fltest.Features)
			for j := range x {
				switch s.Below(4) {
				case 0:
					x[j] = 3 * (2*s.Float64() - 1)
				case 1:
					x[j] = 10 * s.Normal()
				case 2:
					x[j] = math.Inf(1) * (s.Float64() - 0.5)
				}
			}
			v := m.part(x, relation)
			longest = max(longest, norm(v))
			for j := range fltest.Features { // squares without the shift are a wrong sensitivity
				v[fltest.Features+j]++
			}
			unshifted = max(unshifted, norm(v))
		}
		if longest > bound*(1+1e-15) || longest < 0.999*bound {
			t.Errorf("%s: the longest part is %v, the bound %v", relation, longest, bound)
		}
		if unshifted < 1.2*bound {
			t.Errorf("%s: the planted bug is not seen: %v for a bound of %v", relation, unshifted, bound)
		}
		low, high := m.part([]float64{-9, -9, -9, -9}, relation), m.part([]float64{9, 9, 9, 9}, relation)
		for j := range low {
			low[j] -= high[j]
		}
		if d := norm(low); relation == event.ReplaceOne && math.Abs(d-2*bound) > 1e-12 {
			t.Errorf("two rows are %v apart; replace-one is charged for %v", d, 2*bound)
		}
	}
}

// TestMomentsNoise holds the noise of the sums against the plan: variance, and how
// well two neighbours can be told apart. False alarm: 1e-6 for every check (4.9
// standard errors). Noise for half the sensitivity is caught.
func TestMomentsNoise(t *testing.T) {
	const draws = 4000
	row := func(x float64) []float64 { return slices.Repeat([]float64{x}, fltest.Features) }
	silo := func(last float64) *data.Client {
		r := data.Rows{Features: fltest.Features, X: slices.Concat(row(0.5), row(-1), row(last)), Y: make([]float64, 3)}
		return &data.Client{Rows: r}
	}
	for _, relation := range bothRelations {
		for _, kind := range []string{"simulated", fl.NoiseSeeded} {
			run := paidRun("mr-mtl", relation, 3)
			_, s, p := preparedSilo(t, run, silo(9))
			_, _, q := preparedSilo(t, run, silo(-9))
			m, claimed := s.moments, p.Plan.Moments
			measure := func(noise float64) (variance, apart float64) {
				p.Plan.Moments, q.Plan.Moments = noise, noise
				k := 0.0
				for id := range draws {
					p.ID, q.ID = id, draws+id
					a, err := m.sums(p, paidMoments(t, p), kind)
					if err != nil {
						t.Fatal(err)
					}
					b, err := m.sums(q, paidMoments(t, q), kind)
					if err != nil {
						t.Fatal(err)
					}
					for j := range a {
						middle := 0.0 // what the sums are without noise, but for the last row
						if j < fltest.Features {
							middle = 0.5/3 - 1.0/3
							apart += (a[j] - b[j]) / (2 * math.Sqrt(fltest.Features) * draws)
							a[j]--
						} else if j < 2*fltest.Features {
							middle = 0.25/9 - 1 + 1.0/9 - 1
						} else {
							middle = 3 * m.counter(event.Relation(relation))
						}
						variance += (a[j] - middle) * (a[j] - middle)
						k++
					}
				}
				return variance / k, apart
			}
			k := float64(draws * m.length(event.Relation(relation)))
			sd := claimed * m.bound(event.Relation(relation))
			fits := func(variance, apart float64) bool {
				return math.Abs(variance/(sd*sd)-1) < 4.9*math.Sqrt(2/k) && math.Abs(apart-math.Sqrt(fltest.Features)) < 4.9*sd*math.Sqrt(2.0/draws)/2
			}
			if v, apart := measure(claimed); !fits(v, apart) {
				t.Errorf("%s, %s: variance %v, want %v; neighbours %v apart, want %v", relation, kind, v, sd*sd, apart, math.Sqrt(fltest.Features))
			}
			if v, apart := measure(claimed / 2); fits(v, apart) {
				t.Errorf("%s, %s: half the noise goes unnoticed", relation, kind)
			}
		}
	}
}

// paidMoments is what a silo's first round pays for its moments.
func paidMoments(t *testing.T, p *fl.Participant) *mech.Paid {
	t.Helper()
	r, err := p.Plan.Release(false, true)
	if err != nil {
		t.Fatal(err)
	}
	paid, err := mech.NewPaid(r)
	if err != nil {
		t.Fatal(err)
	}
	return paid
}

// TestMomentsComeNearTheTrueOnes, and with much noise to the public range; never to
// a scale that is not positive.
func TestMomentsComeNearTheTrueOnes(t *testing.T) {
	family := rng.NewFamily(2, "rows")
	s := family.Stream(0, 0)
	large := data.Client{Rows: data.Rows{Features: fltest.Features}}
	for range 20_000 {
		large.X = append(large.X, 7+s.Normal(), -4+2*s.Normal(), 0.1*s.Normal(), 5)
		large.Y = append(large.Y, 0)
	}
	tiny := data.Client{Rows: data.Rows{Features: fltest.Features, X: large.X[:2*fltest.Features], Y: large.Y[:2]}}
	for _, relation := range bothRelations {
		run := paidRun("mr-mtl", relation, 20)
		for _, kind := range []string{"simulated", "exact", fl.NoiseSeeded} {
			run.Privacy.Noise = kind
			_, a, p := preparedSilo(t, run, &large)
			centre, scale, err := a.moments.draw(a, p, paidMoments(t, p))
			if err != nil {
				t.Fatal(err)
			}
			// Within 7 deviations of their noise, which one run in 1e11 leaves; the sampling
			// error of so many rows is small beside it.
			noise := p.Plan.Moments * a.moments.bound(event.Relation(relation)) / 20_000
			for j, want := range [][2]float64{{7, 1}, {-4, 2}, {0, 0}, {5, 0}} {
				mean, variance := want[0]/20, max(2*noise, want[1]*want[1]/400)
				off := math.Abs(scale[j]*scale[j]/400 - variance)
				if math.Abs(centre[j]/20-mean) > 7*noise+0.002 || off > 7*noise*math.Sqrt(1+4*mean*mean)+0.05*variance {
					t.Errorf("%s, %s: feature %d has %v and %v, want %v", relation, kind, j, centre[j], scale[j], want)
				}
			}
			run := run
			run.Algorithm.Local.Batch, run.Privacy.Epsilon = 2, 0.5
			_, a, p = preparedSilo(t, run, &tiny)
			if centre, scale, err = a.moments.draw(a, p, paidMoments(t, p)); err != nil {
				t.Fatal(err)
			}
			for j := range centre {
				// A noised count that lies 7 deviations above the true one halves the scale.
				if scale[j] < 10 || scale[j] > 20 || relation == "replace-one" && scale[j] != 20 || math.Abs(centre[j]) > 20 {
					t.Errorf("%s, %s: two rows give %v and %v, not the public range", relation, kind, centre, scale)
				}
			}
		}
	}
}

// TestMomentsHelpWhereRangesAreWide: rows that fill a small part of their public
// range are learned from as if they were scaled, and hardly at all by the range.
func TestMomentsHelpWhereRangesAreWide(t *testing.T) {
	train, test := fltest.Silos(3, 3000, fltest.Features, 0.2)
	for _, relation := range bothRelations {
		run := paidRun("mr-mtl", relation, 20)
		run.Privacy.PublicSize, run.Algorithm.Local.Batch = 3000, 100
		models, ps, _ := fltest.Federate(t, run, train)
		scaled := make([]data.Client, len(test))
		for i := range test {
			scaled[i] = *ps[i].Standardised(&test[i])
		}
		paid := fltest.Error(t, models, scaled)
		run.Data.Standardise = "none" // public constants, applied by hand
		wide := make([]data.Client, len(train))
		for i := range train {
			wide[i] = data.Client{Rows: train[i].Standardised(run.Data.Centre, run.Data.Scale)}
			scaled[i] = data.Client{Rows: test[i].Standardised(run.Data.Centre, run.Data.Scale)}
		}
		models, _, _ = fltest.Federate(t, run, wide)
		if public := fltest.Error(t, models, scaled); paid > 0.7*public {
			t.Errorf("%s: test error %v with paid moments, %v with the public range", relation, paid, public)
		}
	}
}
