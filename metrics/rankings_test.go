package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/coterie-fl/coterie/model"
)

// households draws examples in units of four, who share most of what makes them positive,
// and two scores that see a part of it each, rounded so that there are ties.
func households(src *rand.Rand, units int) (a, b []float64, positive []bool, unit []uint32) {
	for u := range units {
		shared := src.NormFloat64()
		for range 4 {
			z, both := 1.5*shared+0.2*src.NormFloat64(), 0.3*src.NormFloat64()
			a = append(a, math.Round(4*(z+both+0.3*src.NormFloat64()))/4)
			b = append(b, math.Round(4*(z+both+0.6*src.NormFloat64()))/4)
			positive = append(positive, src.Float64() < 1/(1+math.Exp(3-1.5*z)))
			unit = append(unit, uint32(u))
		}
	}
	return a, b, positive, unit
}

// weighted are the average precision and the AUC of examples that count more than once, by
// their definitions.
func weighted(scores []float64, positive []bool, weight []float64) (precision, area float64) {
	var in, out float64
	for i, p := range positive {
		if p {
			in += weight[i]
		} else {
			out += weight[i]
		}
	}
	for i, p := range positive {
		if !p {
			continue
		}
		var above, through, below float64
		for k, s := range scores {
			if s >= scores[i] {
				through += weight[k]
				if positive[k] {
					above += weight[k]
				}
			}
			switch {
			case positive[k]:
			case s < scores[i]:
				below += weight[k]
			case s == scores[i]:
				below += weight[k] / 2
			}
		}
		precision += weight[i] * above / through / in
		area += weight[i] * below / (in * out)
	}
	return precision, area
}

// TestRankInfluences: figures are those of the definition, and a unit's influence is how
// they move when it counts a little more.
func TestRankInfluences(t *testing.T) {
	src := rand.New(rand.NewPCG(3, 1))
	scores, _, positive, unit := households(src, 12)
	positive[5], positive[6] = true, false
	r, err := Rank(scores, positive, unit, 12)
	if err != nil {
		t.Fatal(err)
	}
	weight := make([]float64, len(scores))
	for i := range weight {
		weight[i] = 1
	}
	precision, area := weighted(scores, positive, weight)
	if !near(value(r.AveragePrecision), precision) || !near(value(r.AUC), area) {
		t.Fatalf("average precision %v and AUC %v, want %v and %v", value(r.AveragePrecision), value(r.AUC), precision, area)
	}
	const step = 1e-6
	for u := range uint32(12) {
		more := make([]float64, len(weight))
		for i := range more {
			if more[i] = 1; unit[i] == u {
				more[i] += step
			}
		}
		p, a := weighted(scores, positive, more)
		n := float64(len(scores)) / step
		if math.Abs((p-precision)*n-r.precision[u]) > 1e-3 || math.Abs((a-area)*n-r.area[u]) > 1e-3 {
			t.Errorf("unit %d moves the figures by %v and %v, its influences are %v and %v", u, (p-precision)*n, (a-area)*n, r.precision[u], r.area[u])
		}
	}
}

// TestRankIsDeLong: with every example a unit of its own, the AUC's interval is DeLong's but
// for the ends of degrees of freedom.
func TestRankIsDeLong(t *testing.T) {
	a := logistic(rand.New(rand.NewPCG(4, 1)), 2000, -1, 1)
	positive, unit := make([]bool, 2000), make([]uint32, 2000)
	for i, y := range a.Targets {
		positive[i], unit[i] = y == 1, uint32(i)
	}
	r, err := Rank(a.Outputs, positive, unit, len(unit))
	if err != nil {
		t.Fatal(err)
	}
	f, err := OfClient(Task{Classes: 2, Loss: model.CrossEntropy}, a)
	if err != nil {
		t.Fatal(err)
	}
	own, theirs := float64(*r.AUC.High-*r.AUC.Low), float64(*f.AUC.High-*f.AUC.Low)
	if !near(value(r.AUC), value(f.AUC)) || !near(value(r.AveragePrecision), value(f.AveragePrecision)) || math.Abs(own/theirs-1) > 2e-3 {
		t.Errorf("AUC %v within %v, want %v within %v", value(r.AUC), own, value(f.AUC), theirs)
	}
}

// TestRankingsCover: the truth lies within the 95 % intervals of an average precision, and
// of a paired difference, about that often: of 400 draws fewer than 360 or more than 396 come
// in about one run in 2,000 (binomial, each). With persons for units instead of households,
// intervals of the average precision would be too short: that is seen, too.
func TestRankingsCover(t *testing.T) {
	src := rand.New(rand.NewPCG(6, 1))
	rank := func(units int, alone bool) (a, b Ranking) {
		one, other, positive, unit := households(src, units)
		if alone {
			for i := range unit {
				unit[i] = uint32(i)
			}
			units = len(unit)
		}
		var err error
		if a, err = Rank(one, positive, unit, units); err == nil {
			b, err = Rank(other, positive, unit, units)
		}
		if err != nil {
			t.Fatal(err)
		}
		return a, b
	}
	less := func(a, b Ranking) *Figure {
		d, _, err := a.Less(b)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a, b := rank(80_000, false)
	truth, gain := a.AveragePrecision.Value, less(a, b).Value
	in := func(f *Figure, truth float64) int {
		if float64(*f.Low) <= truth && truth <= float64(*f.High) {
			return 1
		}
		return 0
	}
	var whole, paired, alone int
	for range 400 {
		a, b := rank(400, false)
		whole += in(a.AveragePrecision, float64(truth))
		d := less(a, b)
		paired += in(d, float64(gain))
		if float64(*d.High-*d.Low) > 0.8*float64(*a.AveragePrecision.High-*a.AveragePrecision.Low) {
			t.Fatalf("the paired interval %v is as long as %v", d, a.AveragePrecision)
		}
		a, _ = rank(400, true)
		alone += in(a.AveragePrecision, float64(truth))
	}
	t.Logf("of 400 intervals cover: %d, paired %d; with persons for units %d", whole, paired, alone)
	if whole < 360 || whole > 396 || paired < 360 || paired > 396 {
		t.Errorf("of 400 intervals %d cover %v, and %d of the paired ones %v", whole, truth, paired, gain)
	}
	if alone >= 360 {
		t.Errorf("persons for units cover %d times, households %d", alone, whole)
	}
}

// TestRankRefusals: what cannot be ranked has no figure, what does not fit is refused.
func TestRankRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		scores   []float64
		positive []bool
	}{"one class": {[]float64{1, 2}, []bool{true, true}}, "no number": {[]float64{1, math.NaN()}, []bool{true, false}}} {
		r, err := Rank(c.scores, c.positive, []uint32{0, 1}, 2)
		if err != nil || r.AUC != nil || r.AveragePrecision != nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if d, _, err := r.Less(r); d != nil || err != nil {
			t.Errorf("%s: the difference to itself is %v, %v", name, d, err)
		}
	}
	r, err := Rank([]float32{3, 2, 2}, []bool{true, false, false}, []uint32{0, 1, 2}, 3)
	if err != nil || value(r.AUC) != 1 || r.AUC.Low != nil {
		t.Errorf("one positive: %+v, %v", r.AUC, err)
	}
	if _, err := Rank([]float64{1}, []bool{true}, []uint32{1}, 1); err == nil {
		t.Error("a unit beyond all is no fault")
	}
	if _, err := Rank([]float64{1, 2}, []bool{true}, []uint32{0}, 1); err == nil {
		t.Error("a score too many is no fault")
	}
	if _, _, err := r.Less(Ranking{}); err == nil {
		t.Error("rankings of others were compared")
	}
}
