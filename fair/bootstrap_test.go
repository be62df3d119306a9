package fair

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/coterie-fl/coterie/internal/rng"
)

// falseAlarm is the rate at which a statistical test of this package would fail
// if nothing were wrong and its seed were drawn anew.
const falseAlarm = 1e-6

// unitsOfKinds has units of the kinds given, so many copies of each.
func unitsOfKinds(copies ...int32) *sample {
	s := &sample{groups: 1, copies: copies}
	for kind, n := range copies {
		for range n {
			s.kindOf = append(s.kindOf, int32(kind))
		}
	}
	s.units = len(s.kindOf)
	return s
}

// drawsLookRight draws many times and checks that times is multinomial: how often
// each kind is drawn (chi-square) and, if the kinds are not very many, how much
// that varies between draws.
func drawsLookRight(s *sample, draw func(*rng.Stream) []int32) bool {
	const draws = 4000
	family := rng.NewFamily(7, "test draws")
	kinds := len(s.copies)
	total, squares := make([]float64, kinds), make([]float64, kinds)
	n := float64(s.units)
	for i := range draws {
		sum := 0
		for kind, count := range draw(family.Stream(i, 0)) {
			sum += int(count)
			mean := float64(s.copies[kind])
			total[kind] += float64(count)
			squares[kind] += (float64(count) - mean) * (float64(count) - mean)
		}
		if sum != s.units {
			return false
		}
	}
	chi := 0.0
	for kind := range kinds {
		expected := float64(s.copies[kind]) * draws
		chi += (total[kind] - expected) * (total[kind] - expected) / expected
	}
	if kinds == 1 {
		return true // all draws fall on it
	}
	if (distuv.ChiSquared{K: float64(kinds - 1)}).Survival(chi) < falseAlarm/2 {
		return false
	}
	// Squares of small counts are skewed: the normal quantile of a thousandth of the
	// rate leaves room for that.
	z := distuv.UnitNormal.Quantile(1 - falseAlarm/4000/float64(kinds))
	if kinds > 100 {
		return true
	}
	for kind := range kinds {
		p := float64(s.copies[kind]) / n
		variance := n * p * (1 - p)
		spread := math.Sqrt((2 + (1-6*p*(1-p))/variance) / draws) // of a binomial's squared deviation
		if math.Abs(squares[kind]/draws/variance-1) > z*spread {
			return false
		}
	}
	return true
}

func TestDraws(t *testing.T) {
	for _, s := range []*sample{
		unitsOfKinds(40, 1, 300, 7, 52), unitsOfKinds(13, 11), unitsOfKinds(1, 1, 1, 1, 1, 1, 1),
		unitsOfKinds(200, 100, 3), unitsOfKinds(900, 1, 1, 2, 1), unitsOfKinds(5),
	} {
		if !drawsLookRight(s, s.drawer().draw) {
			t.Errorf("wrong distribution over %v", s.copies)
		}
	}
	// Within a block, favoured units would show; beyond one, favoured blocks.
	if s := allDifferent(3000); !drawsLookRight(s, s.drawer().draw) {
		t.Errorf("wrong distribution over %d units", s.units)
	}
	if s := allDifferent(2*blockUnits + 100); !drawsLookRight(pooled(s)) {
		t.Errorf("wrong distribution over %d units", s.units)
	}
}

func allDifferent(units int) *sample {
	copies := make([]int32, units)
	for i := range copies {
		copies[i] = 1
	}
	return unitsOfKinds(copies...)
}

// pooled watches many kinds by the hundred.
func pooled(s *sample) (*sample, func(*rng.Stream) []int32) {
	const size = 100
	pools := make([]int32, (len(s.copies)+size-1)/size)
	for kind, n := range s.copies {
		pools[kind/size] += n
	}
	drawer, times := s.drawer(), make([]int32, len(pools))
	return unitsOfKinds(pools...), func(src *rng.Stream) []int32 {
		clear(times)
		for kind, n := range drawer.draw(src) {
			times[kind/size] += n
		}
		return times
	}
}

func TestPlantedDrawsAreCaught(t *testing.T) {
	s := unitsOfKinds(40, 1, 300, 7, 52)
	times := make([]int32, len(s.copies))
	for name, draw := range map[string]func(*rng.Stream) []int32{
		"every unit once": func(*rng.Stream) []int32 { return s.copies },
		"kinds equally likely": func(src *rng.Stream) []int32 {
			clear(times)
			for range s.units {
				times[src.Below(len(times))]++
			}
			return times
		},
		"the last unit is never drawn": func(src *rng.Stream) []int32 {
			clear(times)
			for range s.units {
				times[s.kindOf[src.Below(s.units-1)]]++
			}
			return times
		},
		"one draw too few": func(src *rng.Stream) []int32 {
			copy(times, s.drawer().draw(src))
			times[2]--
			return times
		},
	} {
		if drawsLookRight(s, draw) {
			t.Errorf("not caught: %s", name)
		}
	}
}

// TestBinomial compares with the exact probabilities by chi-square.
func TestBinomial(t *testing.T) {
	const draws = 200_000
	right := func(trials int, share, whole uint64, p float64) bool {
		family := rng.NewFamily(3, "test binomial")
		src := family.Stream(trials, int(whole))
		seen := make([]float64, trials+1)
		for range draws {
			seen[binomial(src, trials, share, whole)]++
		}
		law := distuv.Binomial{N: float64(trials), P: p}
		chi, cells, rest, restSeen := 0.0, 0.0, 0.0, 0.0
		for k, n := range seen {
			if expected := law.Prob(float64(k)) * draws; expected >= 10 {
				chi += (n - expected) * (n - expected) / expected
				cells++
			} else {
				rest, restSeen = rest+expected, restSeen+n
			}
		}
		if rest > 0 {
			chi += (restSeen - rest) * (restSeen - rest) / rest
			cells++
		}
		return (distuv.ChiSquared{K: cells - 1}).Survival(chi) >= falseAlarm
	}
	for _, c := range []struct {
		trials       int
		share, whole uint64
	}{{1, 1, 3}, {10, 3, 7}, {64, 1, 2}, {65, 5, 6}, {200, 1, 100}, {130, 1<<40 + 1, 1<<41 - 3}} {
		p := float64(c.share) / float64(c.whole)
		if !right(c.trials, c.share, c.whole, p) {
			t.Errorf("binomial(%d, %d/%d) has the wrong distribution", c.trials, c.share, c.whole)
		}
		if right(c.trials, c.share, c.whole, p*1.02) {
			t.Errorf("binomial(%d, %d/%d): 2 %% more goes unnoticed", c.trials, c.share, c.whole)
		}
	}
}

func TestIntervalTakesOrderStatistics(t *testing.T) {
	nan := math.NaN()
	r := &resampled{Bootstrap: Bootstrap{Resamples: 19, Level: 0.8}} // rank 2
	for i := range 19 {
		r.columns = append(r.columns, float64(i+1))
	}
	if low, high, undefined, ok := r.interval(0); low != 2 || high != 18 || undefined != 0 || !ok {
		t.Errorf("interval %v to %v, %d undefined, %v", low, high, undefined, ok)
	}
	// One undefined resample takes the place of an outermost one on either side.
	r.columns = append([]float64{nan}, r.columns[:18]...)
	if low, high, undefined, ok := r.interval(0); low != 1 || high != 18 || undefined != 1 || !ok {
		t.Errorf("interval %v to %v, %d undefined, %v", low, high, undefined, ok)
	}
	r.columns = append([]float64{nan}, r.columns[:18]...)
	if _, _, undefined, ok := r.interval(0); undefined != 2 || ok {
		t.Errorf("%d undefined resamples, %v: the ends fall among them", undefined, ok)
	}
}

// TestGroupsThatVanish: a group of 2 clusters among 40 is missing from one
// resample in eight; that is counted, and leaves no interval at 95 %.
func TestGroupsThatVanish(t *testing.T) {
	var r Rows
	for cluster := range 40 {
		group := "large"
		if cluster < 2 {
			group = "small"
		}
		for i := range 4 {
			r.Truth = append(r.Truth, i%2)
			r.Predicted = append(r.Predicted, (i+cluster)/2%2)
			r.Group = append(r.Group, group)
			r.Cluster = append(r.Cluster, cluster)
		}
	}
	report, err := Assess(r, Bootstrap{Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	e := report.Metrics.DemographicParityDifference
	missing := DefaultResamples * math.Pow(1-2.0/40, 40) // 257
	slack := 4.8916 * math.Sqrt(missing)                 // two-sided 1e-6
	if e.Value == nil || e.Low != nil || math.Abs(float64(e.UndefinedResamples)-missing) > slack ||
		!strings.Contains(e.Why, "of 2000 resamples") {
		t.Errorf("%+v, want %.0f undefined resamples", e, missing)
	}
	if large := report.Groups[0].SelectionRate; large.Low == nil || large.UndefinedResamples != 0 {
		t.Errorf("the large group is not concerned: %+v", large)
	}
	// At 50 % the ends are further in than the undefined resamples reach.
	if report, err = Assess(r, Bootstrap{Seed: 4, Level: 0.5}); err != nil {
		t.Fatal(err)
	}
	if e := report.Metrics.DemographicParityDifference; e.Low == nil || e.UndefinedResamples == 0 {
		t.Errorf("%+v", e)
	}
}

func TestSeedDecides(t *testing.T) {
	r := simulatedRows(rng.NewFamily(1, "test seed"), 0, 30, 10)
	assess := func(b Bootstrap) *Report {
		report, err := Assess(r, b)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	if !reflect.DeepEqual(assess(Bootstrap{Seed: 1}), assess(Bootstrap{Seed: 1, Resamples: DefaultResamples, Level: DefaultLevel})) {
		t.Error("the same seed gives two results")
	}
	low := func(b Bootstrap) float64 { return *assess(b).Groups[0].VersusRest.SelectionRate.Low }
	if low(Bootstrap{Seed: 1}) == low(Bootstrap{Seed: 2}) {
		t.Error("two seeds give the same interval")
	}
	if !(low(Bootstrap{Seed: 1, Level: 0.99}) < low(Bootstrap{Seed: 1})) {
		t.Error("a higher level does not widen the interval")
	}
}

func TestBadBootstrapIsRefused(t *testing.T) {
	for want, b := range map[string]Bootstrap{
		"level is 1.5":                {Level: 1.5},
		"level is -0.1":               {Level: -0.1},
		"level is NaN":                {Level: math.NaN()},
		"level is 1:":                 {Level: 1},
		"-5 resamples are too few":    {Resamples: -5},
		"take at least 39":            {Resamples: 38},
		"2000 resamples are too few":  {Level: 0.9999},
		"do not fit in memory":        {Resamples: 1 << 40},
		"4000000 resamples of 27 fig": {Resamples: 4_000_000},
	} {
		if _, err := Assess(handRows(), b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", b, err, want)
		}
	}
	if _, err := Assess(handRows(), Bootstrap{Resamples: 39}); err != nil {
		t.Error(err)
	}
}
