package membership

import (
	"errors"
	"math"
	"testing"

	"github.com/coterie-fl/coterie/internal/rng"
)

// level is the usual one.
var level = Level{Delta: 1e-5, Confidence: 0.95}

// halved judges scores with every second one in the first half.
func halved(t *testing.T, s Scores, l Level) Figures {
	t.Helper()
	var first, second Scores
	for i, v := range s.Members {
		if i%2 == 0 {
			first.Members = append(first.Members, v)
		} else {
			second.Members = append(second.Members, v)
		}
	}
	for i, v := range s.Others {
		if i%2 == 0 {
			first.Others = append(first.Others, v)
		} else {
			second.Others = append(second.Others, v)
		}
	}
	f, err := Judge(s, first, second, l)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFiguresAgainstCounting: AUC, rates and curve, counted pair by pair and threshold by
// threshold, on scores with ties.
func TestFiguresAgainstCounting(t *testing.T) {
	family := rng.NewFamily(1, "scores")
	s := family.Stream(0, 0)
	var scores Scores
	for range 60 {
		scores.Members = append(scores.Members, float64(2+s.Below(9)))
	}
	for range 50 {
		scores.Others = append(scores.Others, float64(s.Below(9)))
	}
	f := halved(t, scores, level)
	var pairs float64
	for _, m := range scores.Members {
		for _, o := range scores.Others {
			switch {
			case m > o:
				pairs++
			case m == o:
				pairs += 0.5
			}
		}
	}
	if want := pairs / 3000; math.Abs(float64(f.AUC.Value)-want) > 1e-12 || f.AUC.Low == nil || *f.AUC.Low >= f.AUC.Value {
		t.Errorf("AUC %+v, counted %v", f.AUC, want)
	}
	count := func(values []float64, above float64) (n int) {
		for _, v := range values {
			if v > above {
				n++
			}
		}
		return n
	}
	for _, r := range f.Rates {
		best := 0
		for threshold := -1.0; threshold < 12; threshold++ {
			if float64(count(scores.Others, threshold)) <= float64(r.At)*50 {
				best = max(best, count(scores.Members, threshold))
			}
		}
		if want := float64(best) / 60; float64(r.TruePositive) != want || !(r.Low < r.TruePositive && r.TruePositive < r.High) {
			t.Errorf("at %v: %+v, counted %v", r.At, r, want)
		}
	}
	if f.Rates[0].FalsePositives != 5 || f.Rates[1].FalsePositives != 0 {
		t.Errorf("false positives %+v", f.Rates)
	}
	last := Place{}
	for _, p := range f.ROC {
		if p.FalsePositive < last.FalsePositive || p.TruePositive < last.TruePositive {
			t.Errorf("the curve falls from %v to %v", last, p)
		}
		last = p
	}
	if last != (Place{1, 1}) {
		t.Errorf("the curve ends at %v", last)
	}
}

// TestEpsilonOfRandomisedResponse: scores that are randomised answers at epsilon 1 have
// exactly that epsilon, so that the bound exceeds it in one of 20 draws at most. Over 200
// draws more than 24 would be seen by chance once in 20,000 times. Rates without their
// limits exceed it in about half of the draws.
func TestEpsilonOfRandomisedResponse(t *testing.T) {
	const draws, n = 200, 150
	yes := math.E / (1 + math.E)
	exceeds, sum := 0, 0.0
	family := rng.NewFamily(3, "randomised answers")
	for draw := range draws {
		s := family.Stream(draw, 0)
		var scores Scores
		answer := func(p float64) float64 {
			if s.Float64() < p {
				return 1 + s.Float64() // what is noise may be looked at, too
			}
			return s.Float64()
		}
		for range n {
			scores.Members, scores.Others = append(scores.Members, answer(yes)), append(scores.Others, answer(1-yes))
		}
		e := halved(t, scores, Level{Confidence: 0.95}).Epsilon
		if e.AtLeast > 1 {
			exceeds++
		}
		if e.AtLeast > e.Most {
			t.Fatalf("at least %v of at most %v", e.AtLeast, e.Most)
		}
		sum += float64(e.AtLeast)
	}
	if exceeds > 24 {
		t.Errorf("the bound exceeds the truth in %d of %d draws", exceeds, draws)
	}
	if m := sum / draws; m < 0.2 {
		t.Errorf("the mean bound is %v: it says too little", m)
	}
}

// TestEpsilonLooksAtBothSides: where a few others are known for certain and no member is,
// the bound comes from the negatives.
func TestEpsilonLooksAtBothSides(t *testing.T) {
	var s Scores
	for i := range 400 {
		s.Members, s.Others = append(s.Members, float64(i%7)), append(s.Others, float64(i%7))
		if i%4 < 2 {
			s.Others[i] = -1
		}
	}
	e := halved(t, s, level).Epsilon
	// 100 of 200 are known, none of 200 members is taken for one: the limits are 0.4287 and
	// 1 - 0.025^(1/200).
	want := math.Log((0.4286584 - 1e-5) / (1 - math.Pow(0.025, 1./200)))
	if e.Says != "non-member" || math.Abs(float64(e.AtLeast)-want) > 0.01 || e.FalsePositive != 0 || e.TruePositive != 0.5 {
		t.Errorf("%+v, want at least %v of non-members", e, want)
	}
}

func TestScoresThatCannotBeJudged(t *testing.T) {
	good := Scores{[]float64{1, 2}, []float64{0, 1}}
	for name, s := range map[string]Scores{
		"no members": {nil, []float64{1}}, "no others": {[]float64{1}, nil},
		"no number": {[]float64{math.NaN()}, []float64{1}}, "infinite": {[]float64{1}, []float64{math.Inf(1)}},
	} {
		if _, err := Judge(good, good, s, level); !errors.Is(err, ErrScores) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, l := range []Level{{Delta: 1, Confidence: 0.9}, {Delta: math.NaN(), Confidence: 0.9}, {Delta: 0, Confidence: 1}} {
		if _, err := Judge(good, good, good, l); err == nil {
			t.Errorf("%+v was taken", l)
		}
	}
}

// TestRatio: of examples that differ in how hard they are, the plain loss tells little, a
// mean over references more, and the likelihood ratio, which knows what either kind of
// model makes of an example, most. An example of which one kind of model is missing has a
// score all the same.
func TestRatio(t *testing.T) {
	const examples, models = 2000, 15
	family := rng.NewFamily(2, "losses of models")
	s := family.Stream(0, 0)
	hard, gain := make([]float64, examples), make([]float64, examples)
	for i := range hard {
		hard[i], gain[i] = 5+s.Normal(), 0.3*math.Exp(s.Normal())
	}
	draw := func() (losses, []bool) {
		l, in := make(losses, examples), make([]bool, examples)
		for i := range l {
			l[i] = hard[i] + 0.2*s.Normal()
			if in[i] = s.Below(2) == 0; in[i] {
				l[i] -= gain[i]
			}
		}
		return l, in
	}
	target, member := draw()
	var references []losses
	var statistics [][]float64
	var in [][]bool
	for range models {
		l, i := draw()
		references, statistics, in = append(references, l), append(statistics, statistic(l, false)), append(in, i)
	}
	for r := range in {
		in[r][0], in[r][1] = true, false
	}
	auc := func(score []float64) float64 {
		all := split(score, member, func(int) bool { return true })
		return float64(halved(t, all, level).AUC.Value)
	}
	ratio := byRatio(statistic(target, false), statistics, in)
	plain, mean, best := auc(byLoss(target)), auc(byOthers(target, references)), auc(ratio)
	if !(plain > 0.55 && plain < 0.7 && mean > plain+0.1 && best > mean+0.01) {
		t.Errorf("AUC %v of the loss, %v of references, %v of the ratio", plain, mean, best)
	}
}

// TestStatistic: the logit of the right class's probability, also where that rounds to 1.
func TestStatistic(t *testing.T) {
	got := statistic(losses{math.Log(4), 0}, true)
	if math.Abs(got[0]-math.Log(1./3)) > 1e-12 || math.IsInf(got[1], 0) || got[1] < 20 {
		t.Errorf("%v", got)
	}
}

// TestThresholdIsChosenElsewhere: scores that all lie beyond the threshold which the first
// half has chosen say nothing, though another threshold would tell them apart.
func TestThresholdIsChosenElsewhere(t *testing.T) {
	of := func(member, other float64) (s Scores) {
		for range 50 {
			s.Members, s.Others = append(s.Members, member), append(s.Others, other)
		}
		return s
	}
	first, second := of(10, 0), of(20, 15)
	f, err := Judge(second, first, second, level)
	if err != nil || f.Epsilon.AtLeast != 0 || f.AUC.Value != 1 {
		t.Errorf("epsilon %+v, AUC %v; %v", f.Epsilon, f.AUC.Value, err)
	}
	if f, err = Judge(second, second, second, level); err != nil || f.Epsilon.AtLeast != f.Epsilon.Most || f.Epsilon.AtLeast < 2 {
		t.Errorf("of scores that are told apart: %+v; %v", f.Epsilon, err)
	}
}
