package sim_test

import (
	"math"
	"testing"

	_ "github.com/coterie-fl/coterie/all"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/sim"
)

// TestOneTestSetForAll: the figure is that of the best of the server's models over all
// examples that anybody holds out, and not over those that were trained on.
func TestOneTestSetForAll(t *testing.T) {
	for _, method := range []string{"fedavg", "ifca"} {
		run := config.Default("synthetic", method, "paper")
		run.Judge.By, run.Data.TestShare, run.Algorithm.Rounds = "test", 0.3, 20
		s, err := sim.New(run, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for more := true; more; {
			if more, err = s.Step(); err != nil {
				t.Fatal(err)
			}
		}
		res, err := s.Result()
		if err != nil {
			t.Fatal(err)
		}
		f := s.Federation()
		held := append([]data.Client(nil), f.Validation...)
		for _, c := range f.Train {
			held = append(held, *c.Held)
		}
		m, err := model.Of(run, f.Shape())
		if err != nil {
			t.Fatal(err)
		}
		l, err := m.Learner()
		if err != nil {
			t.Fatal(err)
		}
		want := math.Inf(1)
		for _, theta := range res.History.Returned {
			var sum, n float64
			for i := range held {
				loss, _, err := l.Judge(theta, &held[i])
				if err != nil {
					t.Fatal(err)
				}
				sum += loss * float64(held[i].Len())
				n += float64(held[i].Len())
			}
			want = min(want, sum/n)
		}
		if got := float64(res.Metrics.Loss); math.Abs(got-want) > 1e-12*want || res.Judge != "test" {
			t.Errorf("%s: %v by judge %s, want %v", method, got, res.Judge, want)
		}
	}
}
