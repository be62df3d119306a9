package protect

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
)

// TestServerNoiseOfClientLevel: the noise on a round's mean is that of the plan. The
// sum of n squared standard normals leaves n ± 4.9*sqrt(2n) about once in a million.
func TestServerNoiseOfClientLevel(t *testing.T) {
	for _, noise := range []string{"simulated", fl.NoiseSeeded} {
		run := fltest.ClientRun()
		run.Privacy.Noise, run.Algorithm.Rounds = noise, 400
		s := fltest.New(t, run, 10)
		m := s.Protection().(*client)
		measure := func(scale float64) float64 {
			st := s.Start()
			var squares float64
			n := 0
			r := fl.Releases{Clients: []int{0}, Vectors: make([]float64, s.ReleaseLength())}
			for range 400 {
				before := slices.Clone(st.Hypotheses)
				if out := s.Aggregate(st, r); out.Err != nil {
					t.Fatal(out.Err)
				}
				for i, v := range st.Hypotheses {
					z := (v - before[i]) / (scale * m.noise * run.Privacy.UpdateClip / 10)
					squares += z * z
					n++
				}
			}
			return (squares - float64(n)) / math.Sqrt(2*float64(n))
		}
		if z := measure(1); math.Abs(z) > 4.9 {
			t.Errorf("%s: the noise is off by %.1f standard errors", noise, z)
		}
		if z := measure(1.15); math.Abs(z) < 4.9 { // planted: noise that is 15 % too small
			t.Errorf("%s: the test does not see a wrong scale (%.1f)", noise, z)
		}
	}
}
