package sim

import (
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
)

// pricedRun makes a run and returns its result, and what the most exposed participant had
// spent after every round, asked at that time.
func pricedRun(t *testing.T, run config.Run, folder *data.Folder) (Result, []float64) {
	t.Helper()
	s, err := New(run, folder)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	byRound := make([][]float64, 0, run.Algorithm.Rounds)
	for more := true; more; {
		if more, err = s.Step(); err != nil {
			t.Fatal(err)
		}
		now := make([]float64, len(s.rounds.Participants))
		for i := range now {
			g, _, err := s.rounds.Algorithm.Spend(&s.rounds.Participants[i])
			if err != nil {
				t.Fatal(err)
			}
			now[i] = g.Epsilon
		}
		byRound = append(byRound, now)
	}
	res, err := s.Result()
	if err != nil {
		t.Fatal(err)
	}
	most, last := 0, byRound[len(byRound)-1]
	for i, e := range last {
		if e > last[most] {
			most = i
		}
	}
	totals := make([]float64, len(byRound))
	for i := range totals {
		totals[i] = byRound[i][most]
	}
	return res, totals
}

// TestRoundsArePriced: what a record says was spent after a round is what the accountant
// said then, whatever is paid for besides the steps; the last is the result's own.
func TestRoundsArePriced(t *testing.T) {
	folder := smallSchools(t)
	cases := map[string]func() config.Run{
		"steps alone": func() config.Run { return smallRun("mr-mtl") },
		"choices in the first rounds": func() config.Run {
			run := smallRun("mr-mtl")
			run.Algorithm.Hypotheses, run.Algorithm.WarmStart = 2, 0.3
			run.Algorithm.Selection.Rule = "private"
			return run
		},
		"moments": func() config.Run {
			run := config.Default("school", "mr-mtl", "sound")
			run.Algorithm.Rounds, run.Data.Standardise = 8, "paid"
			return run
		},
		"own targets": func() config.Run {
			run := smallRun("local")
			run.Privacy.Silos = []config.SiloTarget{{Name: "school 2", Epsilon: 9, Delta: 1e-4}}
			return run
		},
		"releases of the first rounds alone": func() config.Run {
			run := smallRun("finetune")
			run.Privacy.Protects, run.Algorithm.Weights, run.Algorithm.FederatedShare = "client", "equal", 0.5
			return run
		},
	}
	for name, of := range cases {
		t.Run(name, func(t *testing.T) {
			res, want := pricedRun(t, of(), folder)
			if len(res.History.Rounds) != len(want) {
				t.Fatalf("%d rounds recorded of %d", len(res.History.Rounds), len(want))
			}
			for i, r := range res.History.Rounds {
				if r.Epsilon == nil || float64(*r.Epsilon) != want[i] {
					t.Fatalf("round %d: epsilon %v, at the time it was %v", r.Round, numbers(r.Epsilon), want[i])
				}
			}
			if last := res.History.Rounds[len(want)-1].Epsilon; *last != res.Privacy.Epsilon || want[0] >= want[len(want)-1] {
				t.Errorf("from %v to %v; the result says %v", want[0], *last, res.Privacy.Epsilon)
			}
		})
	}
}

func numbers(n *event.Number) any {
	if n == nil {
		return "null"
	}
	return float64(*n)
}

// TestRoundsWithoutAPrice: nothing is said of runs in which not everybody is asked in
// every round, or somebody has no target.
func TestRoundsWithoutAPrice(t *testing.T) {
	folder := smallSchools(t)
	sampled, open := smallRun("mr-mtl"), smallRun("mr-mtl")
	sampled.Algorithm.ClientsPerRound = 3
	open.Privacy.Epsilon, open.Privacy.Silos = 0, []config.SiloTarget{{Name: "school 2", Epsilon: 3, Delta: 1e-4}}
	for name, run := range map[string]config.Run{"sampled": sampled, "no target": open} {
		res, spent := pricedRun(t, run, folder)
		if len(spent) != run.Algorithm.Rounds {
			t.Fatal(name, len(spent))
		}
		for _, r := range res.History.Rounds {
			if r.Epsilon != nil {
				t.Fatalf("%s: round %d says %v", name, r.Round, *r.Epsilon)
			}
		}
	}
}

// TestPricedRoundsOfLongRuns are spread over them, the first and the last among them.
func TestPricedRoundsOfLongRuns(t *testing.T) {
	for _, n := range []int{1, 2, 99, 100, 101, 4096} {
		at := spreadOut(n, mostPriced)
		if len(at) != min(n, mostPriced) || at[0] != 0 || at[len(at)-1] != n-1 {
			t.Errorf("%d places: %v", n, at)
		}
	}
}
