package audit

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// chargedSteps is a silo's price for some rounds of one step.
func chargedSteps(t *testing.T, rounds int, rate, noise float64) []event.Release {
	t.Helper()
	r, err := account.Training{
		Terms: account.Terms{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved}, Trust: event.TrustLocal,
		Sampling: event.Poisson, Rate: rate, Noise: noise, Steps: 1,
	}.Release()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Repeat([]event.Release{r}, rounds)
}

// TestAdvantageHolds counts exactly, over all outcomes, how often the bound on the
// advantage is wrong: never more often than its level, however the errors are shared
// between the sides (Hoeffding 1956).
func TestAdvantageHolds(t *testing.T) {
	o := CanaryOptions{Runs: 40, Confidence: 0.95}
	n := o.guesses() / 2
	closest := 0.0
	for advantage := 0.01; advantage < 0.99; advantage += 0.02 {
		for falsePositive := 0.0; falsePositive+advantage <= 1; falsePositive += 0.1 {
			with := distuv.Binomial{N: float64(n), P: falsePositive + advantage}
			without := distuv.Binomial{N: float64(n), P: 1 - falsePositive}
			wrong := 0.0
			for a := range n + 1 {
				for b := range n + 1 {
					if advantageAtLeast(a+b, o) > advantage {
						wrong += with.Prob(float64(a)) * without.Prob(float64(b))
					}
				}
			}
			if wrong > o.level() {
				t.Errorf("advantage %v, false positives %v: the bound is wrong with probability %v, level %v", advantage, falsePositive, wrong, o.level())
			}
			closest = max(closest, wrong)
		}
	}
	if closest < 0.8*o.level() {
		t.Errorf("the bound is never wrong with more than %v: it is not the one meant", closest)
	}
}

// TestCurveFreeHolds does so for a mechanism that is (epsilon, delta) and no better.
func TestCurveFreeHolds(t *testing.T) {
	o := CanaryOptions{Runs: 60, Delta: 0.01, Confidence: 0.95}
	for _, epsilon := range []float64{0.1, 0.7, 2} {
		for _, fpr := range []float64{0.02, 0.1, 0.3} {
			tpr := min(math.Exp(epsilon)*fpr+o.Delta, 1-math.Exp(-epsilon)*(1-fpr-o.Delta))
			without, with := distuv.Binomial{N: float64(o.Runs), P: fpr}, distuv.Binomial{N: float64(o.Runs), P: tpr}
			wrong := 0.0
			for a := range o.Runs + 1 {
				for b := range o.Runs + 1 {
					if curveFreeEpsilon(a, b, o.Runs, o) > epsilon {
						wrong += without.Prob(float64(a)) * with.Prob(float64(b))
					}
				}
			}
			if wrong > o.level() {
				t.Errorf("epsilon %v, false positives %v: wrong with probability %v, level %v", epsilon, fpr, wrong, o.level())
			}
		}
	}
	if e := curveFreeEpsilon(0, o.Runs, o.Runs, o); !(e > 1) || math.IsInf(e, 0) {
		t.Errorf("a perfect attack shows %v", e)
	}
	if e := curveFreeEpsilon(o.Runs, 0, o.Runs, o); e != 0 {
		t.Errorf("a useless attack shows %v", e)
	}
}

// TestNoiseFromAdvantage holds the search against the closed form of full batches:
// the advantage is 2*Phi(mu/2) - 1 at mu = sqrt(rounds)/noise.
func TestNoiseFromAdvantage(t *testing.T) {
	curve := canaryCurve{charged: chargedSteps(t, 4, 1, 2)}
	for _, want := range []float64{0.1, 0.8, 1, 1.3, 20} {
		mu := 1 / want
		advantage := 2*distuv.UnitNormal.CDF(mu/2) - 1
		got, err := curve.noiseAtMost(advantage)
		if err != nil || got < want || got > want*(1+2*shareClose) {
			t.Errorf("advantage %v: noise at most %v, want %v (%v)", advantage, got, want, err)
		}
		exact, err := account.GaussianEpsilon(2*want, 4, 1e-5, event.AddRemove)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := curve.atLeast(got, 1e-5); err != nil || e > exact || e < exact*(1-10*shareClose) {
			t.Errorf("noise times %v: epsilon at least %v, it is %v (%v)", want, e, exact, err)
		}
	}
	if share, err := curve.noiseAtMost(0); err != nil || !math.IsInf(share, 1) {
		t.Errorf("no advantage: noise at most %v, %v", share, err)
	}
	if share, err := curve.noiseAtMost(1 - 1e-12); err != nil || share > 0.1 {
		t.Errorf("full advantage: noise at most %v, %v", share, err)
	}
	if as, err := curve.advantage(); err != nil || math.Abs(as-(2*distuv.UnitNormal.CDF(0.5)-1)) > 2e-4 {
		t.Errorf("advantage as charged %v, %v", as, err)
	}
	// Of sampled batches, by the attack itself: 0.013 is six standard deviations of
	// 100,000 runs.
	charged := chargedSteps(t, 6, 0.6, 1.2)
	attack, err := newCanaryAttack(charged)
	if err != nil {
		t.Fatal(err)
	}
	s := attack.draw(1, mostPilots, 9)
	drawn := float64(s.rightGuesses(0))/mostPilots - 1
	low, high, err := canaryCurve{charged: charged}.epsilon(1, 1e-5)
	if err != nil || !(low < high) {
		t.Fatal(low, high, err)
	}
	if e, err := (canaryCurve{charged: charged}).atLeast(1, 1e-5); err != nil || e != low {
		t.Errorf("a lower bound of %v, between %v and %v (%v)", e, low, high, err)
	}
	if as, err := (canaryCurve{charged: charged}).advantage(); err != nil || math.Abs(as-drawn) > 0.013 {
		t.Errorf("advantage as charged %v, drawn %v, %v", as, drawn, err)
	}
}

// TestCriticalCount: the chances that the audit states are those of its own verdict.
func TestCriticalCount(t *testing.T) {
	o := CanaryOptions{Runs: 2000, Delta: 1e-5, Confidence: 0.95}
	curve := canaryCurve{charged: chargedSteps(t, 4, 1, 1.7)}
	claim, err := curve.claim(o.Delta)
	if err != nil {
		t.Fatal(err)
	}
	at, err := curve.critical(claim.Epsilon, o)
	if err != nil {
		t.Fatal(err)
	}
	bound := func(right int) float64 {
		share, err := curve.noiseAtMost(advantageAtLeast(right, o))
		if err != nil {
			t.Fatal(err)
		}
		e, err := curve.atLeast(share, o.Delta)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	// The searches stop within a share of 0.001 of noise: two guesses.
	if low, high := bound(at-3), bound(at+3); low > claim.Epsilon || high <= claim.Epsilon {
		t.Errorf("claim %v: %d right guesses show %v, %d show %v", claim.Epsilon, at-3, low, at+3, high)
	}
	if none, err := curve.critical(1e9, CanaryOptions{Runs: 20, Delta: 1e-5, Confidence: 0.95}); err != nil || none != 39 {
		t.Errorf("no number of guesses shows a billion: %v, %v", none, err)
	}
}

// TestFalseAlarms makes 3,000 audits of the mechanism as charged: the bound is above
// the tight epsilon in 2.5 % of them at most. 120 are the limit that a binomial count
// with that mean passes once in a million.
func TestFalseAlarms(t *testing.T) {
	o := CanaryOptions{Runs: 200, Delta: 1e-3, Confidence: 0.95}
	charged := chargedSteps(t, 1, 1, 0.8)
	attack, err := newCanaryAttack(charged)
	if err != nil {
		t.Fatal(err)
	}
	curve := canaryCurve{charged: charged}
	audits := func(share float64) (alarms int) {
		for seed := range uint64(3000) {
			most, err := curve.noiseAtMost(advantageAtLeast(attack.draw(share, o.Runs, 100+seed).guess(o), o))
			if err != nil {
				t.Fatal(err)
			}
			if most < 1 {
				alarms++
			}
		}
		return alarms
	}
	as, weak := audits(1), audits(lessNoise)
	t.Logf("%d of 3000 audits find less noise than charged, %d where there are 0.8 of it", as, weak)
	if as > 120 || weak < 600 {
		t.Errorf("%d of 3000 audits alarm falsely, %d rightly", as, weak)
	}
}

// TestLogRatio holds the attack's statistic against the densities, by brute force.
func TestLogRatio(t *testing.T) {
	r, err := account.Training{
		Terms: account.Terms{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved}, Trust: event.TrustLocal,
		Sampling: event.Poisson, Rate: 0.3, Noise: 0.9, Steps: 3,
	}.Release()
	if err != nil {
		t.Fatal(err)
	}
	attack, err := newCanaryAttack([]event.Release{r})
	if err != nil || attack[0].steps != 3 || attack[0].rate != 0.3 || attack[0].noise != 0.9 {
		t.Fatal(attack, err)
	}
	for _, x := range []float64{-4, 0, 0.7, 3, 9} {
		with := 0.0
		for drawn := range 8 { // which of three steps draw the canary
			k, p := 0.0, 1.0
			for step := range 3 {
				if drawn>>step&1 == 1 {
					k, p = k+1, p*0.3
				} else {
					p *= 0.7
				}
			}
			with += p * distuv.Normal{Mu: k, Sigma: 0.9 * math.Sqrt(3)}.Prob(x)
		}
		want := math.Log(with / distuv.Normal{Sigma: 0.9 * math.Sqrt(3)}.Prob(x))
		if got := attack[0].logRatio(x); math.Abs(got-want) > 1e-9 {
			t.Errorf("at %v: %v, want %v", x, got, want)
		}
	}
	full := canaryRound{steps: 2, rate: 1, noise: 1.5}
	if got, want := full.logRatio(1.2), (2*1.2-2.0)/(2*1.5*1.5); math.Abs(got-want) > 1e-12 {
		t.Errorf("full batches: %v, want %v", got, want)
	}
}

// TestPipelineFallsAsCharged compares every score of the pipeline with those of the
// mechanism, by Kolmogorov and Smirnov's distance at 1e-6; units that are a tenth
// off are seen. A run and its partner have nothing in common: five standard
// deviations of their correlation are passed once in a million.
func TestPipelineFallsAsCharged(t *testing.T) {
	for _, epochs := range []int{1, 3} {
		run := canaryRunOf(3, 4, epochs, 6)
		run.Privacy.Clip = 2.5
		game, err := newCanaryGame(run, 4000)
		if err != nil {
			t.Fatal(err)
		}
		drawn := game.attack.draw(1, 50_000, 4)
		distance := func() (worst float64) {
			played, err := game.play(t.Context(), game.attack, CanaryOptions{Runs: 4000})
			if err != nil {
				t.Fatal(err)
			}
			for side := range played {
				worst = max(worst, apartness(played[side], drawn[side]))
			}
			if r := stat.Correlation(played[0], played[1], nil); math.Abs(r) > 5/math.Sqrt(4000) {
				t.Errorf("the scores of a run and its partner have the correlation %v", r)
			}
			return worst
		}
		const limit = 2.73 // 2*exp(-2*x^2) = 1e-6/2, two sides
		if d := distance(); d > limit {
			t.Errorf("%d steps: distance %v", game.attack[0].steps, d)
		}
		game.unit *= 1.1
		if d := distance(); d < limit {
			t.Errorf("%d steps: units that are a tenth off have the distance %v", game.attack[0].steps, d)
		}
	}
}

// apartness is the largest distance between two samples' distributions, in units of
// its scale.
func apartness(a, b []float64) float64 {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	worst, j := 0.0, 0
	for i, x := range a {
		for j < len(b) && b[j] <= x {
			j++
		}
		at := float64(j) / float64(len(b))
		worst = max(worst, math.Abs(at-float64(i)/float64(len(a))), math.Abs(at-float64(i+1)/float64(len(a))))
	}
	n, m := float64(len(a)), float64(len(b))
	return worst * math.Sqrt(n*m/(n+m))
}
