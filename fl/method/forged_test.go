package method

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
)

// TestForgedDeclarations: a release comes from outside and must not harm the others.
func TestForgedDeclarations(t *testing.T) {
	for name, run := range fltest.Variants() {
		s := fltest.New(t, run, 2)
		length := s.ReleaseLength()
		if length == 0 || !s.Outline().Declares {
			continue
		}
		for _, tail := range [][fl.DeclarationLength]float64{
			{math.NaN(), 0, 0, 1}, {math.Inf(1), 0, 0, 1}, {-1, 0, 0, 1}, {1, -1, 0, 1}, {1, 1e18, 0, 1}, {1, math.NaN(), 0, 1},
			{1, 0.5, 0, 1}, {1, 0, -1, 1}, {1, 0, math.NaN(), 1}, {1, 0, 0, 0}, {1, 0, 0, math.NaN()},
		} {
			st := s.Start()
			before := slices.Clone(st.Hypotheses)
			r := fl.Releases{Clients: []int{0, 7}, Vectors: make([]float64, 2*length)} // and a silo that is not there
			for i := range r.Clients {
				r.Vectors[i*length] = 0.001
				copy(r.Vectors[(i+1)*length-fl.DeclarationLength:], tail[:])
			}
			s.Aggregate(st, r)
			if !slices.Equal(st.Hypotheses, before) {
				t.Errorf("%s: a release that declares %v moved the model", name, tail)
			}
		}
	}
}

// TestStrangersReleases: without declarations, a silo that is not there counts for
// nothing where every model has its own place.
func TestStrangersReleases(t *testing.T) {
	s := fltest.New(t, fltest.Variants()["mocha"], 2)
	st, n := s.Start(), s.Model().Parameters()
	r := fl.Releases{Clients: []int{0, 7}, Vectors: slices.Repeat([]float64{0.5}, 2*n)}
	out := s.Aggregate(st, r)
	if !slices.Equal(out.Assigned, []int{0, -1}) || !slices.Equal(st.Hypotheses, slices.Repeat([]float64{0.25}, n)) {
		t.Errorf("assigned %v, the mean is %v", out.Assigned, st.Hypotheses)
	}
}

// TestForgedBroadcasts: a server that sends something else than models gets an error,
// and a silo keeps what it has.
func TestForgedBroadcasts(t *testing.T) {
	train, _ := fltest.Silos(2, 30, fltest.Features, 0.2)
	runs := fltest.Variants()
	for name, run := range fltest.Variants() {
		run = fltest.Unprotected(run)
		runs[name+", nothing"] = run
		run.Privacy.Protects, run.Privacy.NoiseMultiplier, run.Algorithm.Selection.Rule = "update", 5, "nearest"
		runs[name+", update"] = run
	}
	for name, run := range runs {
		s := fltest.New(t, run, 2)
		n := s.Model().Parameters()
		for _, length := range []int{0, 1, n - 1, n + 1, 7 * n} {
			for _, round := range []int{0, 5, run.Algorithm.Rounds} {
				p := fl.Participant{ID: 1, Data: &train[1]}
				if err := s.Prepare(&p); err != nil {
					t.Fatal(err)
				}
				b := fl.Broadcast{Round: round, Hypotheses: make([]float64, length), Memory: make([]float64, length)}
				out, dst := make([]float64, s.ReleaseLength()), make([]float64, n)
				_, err := s.Respond(new(fl.Worker), b, &p, out)
				if err == nil {
					t.Errorf("%s, round %d: %d values pass for models", name, round, length)
				}
				s.Adopt(dst, b, &p, nil)
			}
		}
	}
}
