package clipping

import (
	"math"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// TestSplit: both noises together cost what one does, and line 13 as printed costs more
// than it claims.
func TestSplit(t *testing.T) {
	s, err := runSplit(nil)
	if err != nil {
		t.Fatal(err)
	}
	printed := 0
	for _, r := range s.Rows {
		if r.Verdict != study.Agrees && r.Verdict != study.NoNumber {
			t.Errorf("%s, %s: %v, %s", r.Section, r.Label, *r.Measured, r.Verdict)
		}
		if strings.HasPrefix(r.Label, "epsilon of line 13") {
			printed++
		}
	}
	if printed != len(digits.epsilons) {
		t.Errorf("%d rows on line 13", printed)
	}
	nu, err := noiseFor(3, 5, digits.steps(), mnistSize)
	if err != nil {
		t.Fatal(err)
	}
	paid, err := costOf(nu, 5)
	if err != nil || math.Abs(paid-3) > 1e-3 {
		t.Errorf("noise for epsilon 3 costs %v (%v)", paid, err)
	}
	if less, err := costOf(rule*nu/math.Sqrt2, 5); err != nil || less < 5 {
		t.Errorf("line 13 costs %v (%v)", less, err)
	}
}

// TestNoisedCosine: noise of as much length as the vector turns it by 45 degrees. The mean
// of 20 draws has a standard deviation of about 0.002, so that a false alarm has a
// probability below 1e-20; half the noise would give 0.894.
func TestNoisedCosine(t *testing.T) {
	const n = 10000
	truth, bent := make([]float64, n), make([]float64, n)
	truth[7], bent[7], bent[8] = 1, 0.6, 0.8
	streams := rng.NewFamily(1, "test")
	src := streams.Stream(0, 0)
	mean := func(v []float64, deviation float64) (sum float64) {
		for range 20 {
			sum += noisedCosine(v, truth, deviation, src) / 20
		}
		return sum
	}
	if got := mean(truth, 0.01); math.Abs(got-math.Sqrt(0.5)) > 0.02 {
		t.Errorf("as much noise as vector: %v", got)
	}
	if got := mean(bent, 0); math.Abs(got-0.6) > 1e-12 {
		t.Errorf("without noise: %v", got)
	}
	if got := noisedCosine(bent, make([]float64, n), 0, src); got != 0 {
		t.Errorf("with nothing: %v", got)
	}
}

// TestProminence: a peak inside the range agrees if all seeds show it; a flat curve, one that
// rises to the end, and a peak that seeds disagree on differ; one seed is not judged.
func TestProminence(t *testing.T) {
	peak := func(height float64) func(i int) float64 {
		return func(i int) float64 { return 0.1 + height*max(0, 1-0.25*math.Abs(float64(i-4))) }
	}
	rising := func(i int) float64 { return 0.1 * float64(i+1) }
	for name, c := range map[string]struct {
		seeds []func(i int) float64
		want  study.Verdict
	}{
		"peak":     {[]func(i int) float64{peak(0.1), peak(0.11), peak(0.09)}, study.Agrees},
		"flat":     {[]func(i int) float64{peak(0.01), peak(0.011), peak(0.009)}, study.Differs},
		"rising":   {[]func(i int) float64{rising, rising}, study.Differs},
		"one peak": {[]func(i int) float64{peak(0.2), peak(0.01), peak(0)}, study.Differs}, // 1.4 in the geometric mean
		"one seed": {[]func(i int) float64{peak(0.1)}, study.Incomparable},
	} {
		var at []look
		for _, cosine := range c.seeds {
			one := look{Steps: 100, Clips: clips(9)}
			for i := range one.Clips {
				one.Cosine = append(one.Cosine, cosine(i))
			}
			at = append(at, one)
		}
		curve := lab.Curve(name, at[0].Clips, func(j int) lab.Spread {
			return lab.MeanAndDeviation(lab.Pick(at, func(c look) float64 { return c.Cosine[j] }))
		})
		if got := cosineRows(at, curve)[0]; got.Verdict != c.want {
			t.Errorf("%s: %s (%v, from %v to %v)", name, got.Verdict, *got.Measured, *got.Low, *got.High)
		}
	}
}

// TestLookNoisesTheMean: a batch of equal examples that are not clipped has their gradient
// as its mean, and noise of S*C over the batch's size. A false alarm has a probability
// below 1e-20, as in TestNoisedCosine; noise that is not divided would give 0.16.
func TestLookNoisesTheMean(t *testing.T) {
	const features, size, clip = 10000, 64, 100
	c := &data.Client{Rows: data.Rows{Features: features}}
	x := make([]float64, features)
	x[3] = 1
	for range size {
		c.X, c.Y = append(c.X, x...), append(c.Y, 0.5)
	}
	learner, err := model.Linear{Features: features, Loss: model.SquaredError}.Learner()
	if err != nil {
		t.Fatal(err)
	}
	streams := rng.NewFamily(1, "test")
	// The gradient is -2*0.5 in one place: its length is 1, and so is the noise's.
	noise := size * 0.01 / float64(clip)
	one, err := figure31{draws: 20}.look(learner, make([]float64, features), c, noise, streams.Stream(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	last := len(one.Clips) - 1
	if one.Clips[last] != clip || math.Abs(one.Cosine[last]-math.Sqrt(0.5)) > 0.02 {
		t.Errorf("clip %v: cosine %v", one.Clips[last], one.Cosine[last])
	}
	if one.Norms != [3]float64{1, 1, 1} {
		t.Errorf("norms %v", one.Norms)
	}
}
