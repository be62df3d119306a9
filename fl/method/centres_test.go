package method

import (
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
	_ "github.com/coterie-fl/coterie/fl/protect"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

func TestRelocationAfterIdleRounds(t *testing.T) {
	run := config.Default("synthetic", "ifca", "paper")
	releases := fl.Releases{Clients: []int{0, 1, 2}, Vectors: []float64{0, 0, 1, 0, 0, 3}}
	for _, empty := range []string{"relocate", "keep"} {
		run.Algorithm.Empty = empty
		g := fltest.New(t, run, 100)
		s := &fl.State{Hypotheses: []float64{0, 0, 90, 90}, Idle: make([]int, 2)}
		for round := 1; round <= 3; round++ {
			out := g.Aggregate(s, releases)
			moved := round == 3 && empty == "relocate"
			if (out.Relocated == 1) != moved {
				t.Errorf("%s, round %d: %d hypotheses moved", empty, round, out.Relocated)
			}
			if want := []float64{0, 3}; moved && !slices.Equal(s.Hypotheses[2:], want) {
				t.Errorf("moved to %v, the farthest release is %v", s.Hypotheses[2:], want)
			}
			if !moved && s.Hypotheses[2] != 90 {
				t.Errorf("%s, round %d: the idle hypothesis is at %v", empty, round, s.Hypotheses[2:])
			}
		}
	}
}

func TestRoundWithoutReleasesChangesNothing(t *testing.T) {
	g := fltest.New(t, config.Default("synthetic", "ifca", "paper"), 100)
	s := fltest.TwoHypotheses()
	g.Aggregate(s, fl.Releases{Declined: 7})
	if !slices.Equal(s.Hypotheses, fltest.TwoHypotheses().Hypotheses) || s.Round != 1 || s.Idle[0] != 0 {
		t.Errorf("%+v", s)
	}
}

// BenchmarkAggregate is the server's half of a round of 1,000 releases, the part
// that workers cannot share.
func BenchmarkAggregate(b *testing.B) {
	run := config.Default("synthetic", "group-private", "paper")
	g, err := fl.New(run, model.Linear{Features: 2}, 1000)
	if err != nil {
		b.Fatal(err)
	}
	f := rng.NewFamily(1, "bench")
	s := f.Stream(0, 0)
	r := fl.Releases{Clients: make([]int, 1000)}
	for i := range 1000 {
		r.Vectors = append(r.Vectors, 5+s.Normal(), float64(6-10*(i%2))+s.Normal())
	}
	state := g.Start()
	b.ReportAllocs()
	for b.Loop() {
		copy(state.Hypotheses, []float64{4, 5, 4, -4})
		g.Aggregate(state, r)
	}
}
