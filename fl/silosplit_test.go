package fl

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/internal/rng"
)

// crowd is a round in which all silos chose the first of two models: two groups,
// whose releases lie gap apart in one direction, under noise of a deviation of their
// own.
func crowd(s *Silo, silos int, gap float64, deviation func(silo int) float64) Releases {
	length := s.ReleaseLength()
	r := Releases{Vectors: make([]float64, silos*length)}
	noise := rng.NewFamily(5, "crowd")
	for i := range silos {
		r.Clients = append(r.Clients, i)
		stream := noise.Stream(0, i)
		release := r.Vectors[i*length : (i+1)*length]
		for d := range s.n {
			release[d] = 0.5 + deviation(i)*stream.Normal()
		}
		release[1] += gap * float64(i%2)
		tail := release[s.n:]
		tail[tailWeight], tail[tailSteps] = 1, 1
		tail[tailVariance] = deviation(i) * deviation(i)
	}
	return r
}

func splitting(t *testing.T, empty string) *Silo {
	run := siloRun("ifca")
	run.Algorithm.Hypotheses, run.Algorithm.Empty, run.Algorithm.Selection.Share = 2, empty, 0.5
	return newTestSilo(t, run, 20)
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
		first, second := st.Hypotheses[1], st.Hypotheses[s.n+1]
		if math.Abs(first-0.5) > 0.15 || math.Abs(second-1.5) > 0.15 {
			t.Errorf("%s: the models are at %.2f and %.2f, the groups at 0.5 and 1.5", name, first, second)
		}
	}
}

// TestSplitOnlyWhenItHelps: not when it is not asked for, not after the last choice,
// not where nothing is empty, not from releases that are all the same or not numbers.
func TestSplitOnlyWhenItHelps(t *testing.T) {
	calm := func(int) float64 { return 0 }
	for name, try := range map[string]func(s *Silo, st *State) (*Silo, Releases){
		"keep":              func(_ *Silo, _ *State) (*Silo, Releases) { k := splitting(t, "keep"); return k, crowd(k, 20, 1, calm) },
		"after the choices": func(s *Silo, st *State) (*Silo, Releases) { st.Round = 5; return s, crowd(s, 20, 1, calm) },
		"all the same":      func(s *Silo, _ *State) (*Silo, Releases) { return s, crowd(s, 20, 0, calm) },
		"one silo":          func(s *Silo, _ *State) (*Silo, Releases) { return s, crowd(s, 1, 1, calm) },
		"too large": func(s *Silo, _ *State) (*Silo, Releases) {
			r := crowd(s, 20, 1, calm)
			r.Vectors[0] = 1e200 // its square is no number
			return s, r
		},
	} {
		s := splitting(t, "split")
		st := s.Start()
		s, r := try(s, st)
		before := slices.Clone(st.Hypotheses[s.n:])
		s.Aggregate(st, r)
		if !slices.Equal(st.Hypotheses[s.n:], before) {
			t.Errorf("%s: the empty model moved", name)
		}
	}
	s := splitting(t, "split")
	st := s.Start()
	r := crowd(s, 20, 1, calm)
	r.Vectors[19*s.ReleaseLength()+s.n+tailCluster] = 1 // one silo chose the other model
	s.Aggregate(st, r)
	if st.Hypotheses[s.n+1] != 1.5 || math.Abs(st.Hypotheses[1]-(0.5+9./19)) > 1e-12 {
		t.Errorf("no model was empty, but they are at %v and %v", st.Hypotheses[1], st.Hypotheses[s.n+1])
	}
}
