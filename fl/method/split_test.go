package method

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
	"github.com/coterie-fl/coterie/internal/rng"
)

// tail is a declaration as it stands at the end of a release.
func tail(weight, cluster, variance, steps float64) []float64 {
	return []float64{weight, cluster, variance, steps}
}

// crowd is a round in which all silos chose the first of two models: two groups,
// whose releases lie gap apart in one direction, under noise of a deviation of their
// own.
func crowd(s *fl.Algorithm, silos int, gap float64, deviation func(silo int) float64) fl.Releases {
	length, n := s.ReleaseLength(), s.Model().Parameters()
	r := fl.Releases{Vectors: make([]float64, silos*length)}
	noise := rng.NewFamily(5, "crowd")
	for i := range silos {
		r.Clients = append(r.Clients, i)
		stream := noise.Stream(0, i)
		release := r.Vectors[i*length : (i+1)*length]
		for d := range n {
			release[d] = 0.5 + deviation(i)*stream.Normal()
		}
		release[1] += gap * float64(i%2)
		copy(release[n:], tail(1, 0, deviation(i)*deviation(i), 1))
	}
	return r
}

func splitting(t *testing.T, empty string) *fl.Algorithm {
	run := fltest.Run("ifca")
	run.Algorithm.Hypotheses, run.Algorithm.Empty, run.Algorithm.Selection.Share = 2, empty, 0.5
	return fltest.New(t, run, 20)
}

// TestSplitFindsTheGroups: an empty model and the one that everybody chose become the
// means of the two groups, under noise and with one silo much noisier than the rest.
func TestSplitFindsTheGroups(t *testing.T) {
	for name, deviation := range map[string]func(int) float64{
		"no noise":  func(int) float64 { return 0 },
		"noise":     func(int) float64 { return 0.1 },
		"one noisy": func(i int) float64 { return 0.1 + 1.4*float64(i/19) },
	} {
		s := splitting(t, "split")
		st := s.Start()
		out := s.Aggregate(st, crowd(s, 20, 1, deviation))
		for _, c := range out.Assigned {
			if c != 0 {
				t.Fatalf("%s: assigned %v, but silos chose the first model", name, out.Assigned)
			}
		}
		first, second := st.Hypotheses[1], st.Hypotheses[s.Model().Parameters()+1]
		if math.Abs(first-0.5) > 0.15 || math.Abs(second-1.5) > 0.15 {
			t.Errorf("%s: the models are at %.2f and %.2f, the groups at 0.5 and 1.5", name, first, second)
		}
	}
}

// TestSplitOnlyWhenItHelps: not when it is not asked for, not after the last choice,
// not where nothing is empty, not from releases that are all the same or not numbers.
func TestSplitOnlyWhenItHelps(t *testing.T) {
	calm := func(int) float64 { return 0 }
	for name, try := range map[string]func(s *fl.Algorithm, st *fl.State) (*fl.Algorithm, fl.Releases){
		"keep": func(_ *fl.Algorithm, _ *fl.State) (*fl.Algorithm, fl.Releases) {
			k := splitting(t, "keep")
			return k, crowd(k, 20, 1, calm)
		},
		"after the choices": func(s *fl.Algorithm, st *fl.State) (*fl.Algorithm, fl.Releases) {
			st.Round = 5
			return s, crowd(s, 20, 1, calm)
		},
		"all the same": func(s *fl.Algorithm, _ *fl.State) (*fl.Algorithm, fl.Releases) { return s, crowd(s, 20, 0, calm) },
		"one silo":     func(s *fl.Algorithm, _ *fl.State) (*fl.Algorithm, fl.Releases) { return s, crowd(s, 1, 1, calm) },
		"too large": func(s *fl.Algorithm, _ *fl.State) (*fl.Algorithm, fl.Releases) {
			r := crowd(s, 20, 1, calm)
			r.Vectors[0] = 1e200 // its square is no number
			return s, r
		},
	} {
		s := splitting(t, "split")
		st := s.Start()
		s, r := try(s, st)
		before := slices.Clone(st.Hypotheses[s.Model().Parameters():])
		s.Aggregate(st, r)
		if !slices.Equal(st.Hypotheses[s.Model().Parameters():], before) {
			t.Errorf("%s: the empty model moved", name)
		}
	}
	s := splitting(t, "split")
	st := s.Start()
	r := crowd(s, 20, 1, calm)
	copy(r.Vectors[20*s.ReleaseLength()-fl.DeclarationLength:], tail(1, 1, 0, 1)) // one silo chose the other model
	s.Aggregate(st, r)
	if st.Hypotheses[s.Model().Parameters()+1] != 1.5 || math.Abs(st.Hypotheses[1]-(0.5+9./19)) > 1e-12 {
		t.Errorf("no model was empty, but they are at %v and %v", st.Hypotheses[1], st.Hypotheses[s.Model().Parameters()+1])
	}
}
