package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

// finish runs a simulation to its end in memory.
func finish(t testing.TB, run config.Run) Result {
	t.Helper()
	s, err := New(run, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for {
		more, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
	}
	res, err := s.Result()
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// directory makes a run directory for a run file.
func directory(t *testing.T, run config.Run) *Directory {
	t.Helper()
	text, err := run.Encode()
	if err != nil {
		t.Fatal(err)
	}
	d, err := CreateDirectory(t.TempDir()+"/run", text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func nothing(Moment) {}

// execute makes or continues a run in a directory.
func execute(t *testing.T, ctx context.Context, d *Directory, run config.Run, folder *data.Folder, tick func(Moment)) (Result, error) {
	t.Helper()
	s, err := New(run, folder)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.Execute(ctx, d, tick)
}

// executeWhole executes a run to its end; with stops it is interrupted after every four
// moments and goes on from its directory.
func executeWhole(t *testing.T, d *Directory, run config.Run, folder *data.Folder, stops bool) Result {
	t.Helper()
	for {
		ctx, cancel := context.WithCancel(context.Background())
		moments := 0
		res, err := execute(t, ctx, d, run, folder, func(Moment) {
			if moments++; stops && moments == 4 {
				cancel()
			}
		})
		cancel()
		if errors.Is(err, ErrInterrupted) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
}

// TestPaperFigures holds the medians over 50 seeds against figure 1 of paper 000,
// as far as its prose can be compared: docs/decisions/0002.
func TestPaperFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("figures do not depend on the race detector")
	}
	const seeds = 50
	type figures struct{ loss, distance, leak []float64 }
	measure := func(kind string, change func(*config.Run)) (f figures) {
		for seed := uint64(1); seed <= seeds; seed++ {
			run := config.Default("synthetic", kind, "paper")
			run.Seed = seed
			run.Run.Workers = 1
			if change != nil {
				change(&run)
			}
			res := finish(t, run)
			f.loss = append(f.loss, float64(res.Metrics.Loss))
			f.distance = append(f.distance, float64(*res.Metrics.WorstDistance))
			f.leak = append(f.leak, float64(res.Privacy.MaxEpsilon))
			if kind == "group-private" && float64(res.Privacy.MaxEpsilon) != mostReleases(res)*2/5 {
				t.Errorf("seed %d: maximum leakage %v, but the most frequent client made %v releases", seed, res.Privacy.MaxEpsilon, mostReleases(res))
			}
		}
		return f
	}
	median := func(v []float64) float64 { m, _ := fl.MedianAndMax(slices.Clone(v)); return m }
	within := func(v []float64, limit float64) (share float64) {
		for _, x := range v {
			if x <= limit {
				share += 1.0 / seeds
			}
		}
		return share
	}

	fedavg, ifca, private := measure("fedavg", nil), measure("ifca", nil), measure("group-private", nil)
	balanced := measure("group-private", func(r *config.Run) {
		r.Algorithm.Sampling, r.Algorithm.Rounds, r.Algorithm.Stop.Patience = "balanced", 85, 0
	})
	t.Logf("median loss: fedavg %.3f, ifca %.3f, private %.3f, balanced %.3f; leak %.2f, %.2f; near both optima: private %.2f, balanced %.2f",
		median(fedavg.loss), median(ifca.loss), median(private.loss), median(balanced.loss),
		median(private.leak), median(balanced.leak), within(private.distance, 1), within(balanced.distance, 1))
	if m := median(fedavg.loss); m < 2.9 || m > 3.2 {
		t.Errorf("FedAvg: median loss %v, want 2.9 to 3.2", m)
	}
	if m := median(ifca.loss); m > 0.60 {
		t.Errorf("IFCA: median loss %v, want at most 0.60", m)
	}
	if m := median(ifca.distance); m > 0.15 {
		t.Errorf("IFCA: median worst distance %v, want at most 0.15", m)
	}
	if m := median(private.loss); m <= median(ifca.loss) || m >= median(fedavg.loss) {
		t.Errorf("group-private: median loss %v is not between the others", m)
	}
	if m := median(private.leak); m < 1.6 || m > 2.8 {
		t.Errorf("group-private: median of the maximum leakage %v, want 1.6 to 2.8", m)
	}
	if m := median(balanced.loss); m > 0.62 || within(balanced.distance, 1) < 0.9 || slices.Max(balanced.leak) != 2.4 {
		t.Errorf("balanced: loss %v, near both optima in %v of seeds, leakage %v", m, within(balanced.distance, 1), slices.Max(balanced.leak))
	}
}

// mostReleases is counted from the budgets: each release costs 0.4.
func mostReleases(r Result) float64 {
	most := 0.0
	for _, b := range r.History.Budgets {
		most = max(most, math.Round(float64(b)/0.4))
	}
	return most
}

func TestWorkersDoNotChangeTheResult(t *testing.T) {
	for _, kind := range []string{"fedavg", "ifca", "group-private"} {
		var want string
		for _, workers := range []int{1, 2, 8} {
			run := config.Default("synthetic", kind, "paper")
			run.Run.Workers = workers
			run.Data.Users, run.Data.ValidationUsers = 600, 600
			run.Algorithm.ClientsPerRound = 600 // enough for the workers to be woken
			run.Algorithm.Rounds = 20
			run.Algorithm.Local.Batch = 3
			d := directory(t, run)
			res, err := execute(t, context.Background(), d, run, nil, nothing)
			if err != nil {
				t.Fatal(err)
			}
			if want == "" {
				want = res.ModelSHA256
			}
			if res.ModelSHA256 != want {
				t.Errorf("%s: %d workers give %s, one gives %s", kind, workers, res.ModelSHA256, want)
			}
		}
	}
}

func TestBudgetEndsTheRun(t *testing.T) {
	ceiling := 0.8
	run := config.Default("synthetic", "group-private", "paper")
	run.Algorithm.Rounds, run.Algorithm.Stop.Patience = 1000, 0
	run.Privacy.Ceiling = &ceiling
	res := finish(t, run)
	if res.Stopped != StoppedBudget || res.Privacy.Declined != 100 || float64(res.Privacy.MaxEpsilon) != 0.8 {
		t.Errorf("stopped by %s, %d declined, most %v", res.Stopped, res.Privacy.Declined, res.Privacy.MaxEpsilon)
	}
	for _, b := range res.History.Budgets {
		if b > 0.8 {
			t.Errorf("a client spent %v", b)
		}
	}
	run.Privacy.Noise = "exact" // the lattice's slack takes the second release above the ceiling
	if res = finish(t, run); res.Stopped != StoppedBudget || float64(res.Privacy.MaxEpsilon) > 0.41 {
		t.Errorf("exact noise: stopped by %s, most %v", res.Stopped, res.Privacy.MaxEpsilon)
	}
	ceiling = 0.1
	if _, err := New(run, nil); !errors.Is(err, fl.ErrRefused) {
		t.Errorf("a ceiling below one release: %v", err)
	}
}

func TestExactNoiseDiffersFromRunToRun(t *testing.T) {
	for _, mode := range []string{"paper", "sound"} {
		run := config.Default("synthetic", "group-private", mode)
		run.Privacy.Noise = "exact"
		run.Algorithm.Rounds = 10
		a, b := finish(t, run), finish(t, run)
		if fmt.Sprint(a.History.Returned) == fmt.Sprint(b.History.Returned) {
			t.Errorf("%s: system entropy gave the same models twice", mode)
		}
	}
}

// TestHistoriesOfLargeModelsStaySmall: they have what is drawn.
func TestHistoriesOfLargeModelsStaySmall(t *testing.T) {
	for _, n := range []int{2, shownValues, shownValues + 1} {
		flat := make([]float64, 2*n)
		flat[0], flat[1], flat[n], flat[n+1] = 1, 2, 3, 4
		want := n
		if n > shownValues {
			want = 2
		}
		r := newRecorder(2, n, 1, flat)
		start := vectors(shown(r.Start, len(r.Start)/r.K)) // as a history has it, and from a checkpoint that has all
		for _, got := range [][][]float64{start, vectors(shown(flat, n))} {
			if len(got) != 2 || len(got[0]) != want || got[0][1] != 2 || got[1][0] != 3 || got[1][1] != 4 {
				t.Errorf("%d parameters: %d models of %d values", n, len(got), len(got[0]))
			}
		}
	}
}

func TestHistoryIsThinned(t *testing.T) {
	run := config.Default("synthetic", "ifca", "paper")
	run.Algorithm.Rounds, run.Algorithm.Stop.Patience = 3*maxRecords+1, 0
	run.Data.Users, run.Data.ValidationUsers, run.Algorithm.ClientsPerRound = 4, 2, 2
	h := finish(t, run).History
	if n := len(h.Rounds); n > maxRecords || h.Rounds[n-1].Round != run.Algorithm.Rounds {
		t.Errorf("%d records, the last of round %d", n, h.Rounds[n-1].Round)
	}
	for i, r := range h.Rounds[:len(h.Rounds)-1] {
		if r.Round != 1+i*h.Stride {
			t.Fatalf("record %d is of round %d at stride %d", i, r.Round, h.Stride)
		}
	}
	if len(h.Late) == 0 || h.Late[0].Round <= run.Algorithm.Rounds-windowRounds || len(h.Early) == 0 {
		t.Errorf("late releases %v", h.Late)
	}
}

func TestMediansOfEveryRound(t *testing.T) {
	run := config.Default("synthetic", "group-private", "paper")
	run.Algorithm.Rounds, run.Algorithm.Stop.Patience = 40, 0
	res := finish(t, run)
	var totals []float64
	for _, b := range res.History.Budgets {
		totals = append(totals, float64(b))
	}
	median, most := fl.MedianAndMax(totals)
	last := res.History.Rounds[len(res.History.Rounds)-1]
	if math.Abs(float64(*last.Median)-median) > 1e-12 || float64(*last.Max) != most || float64(res.Privacy.MedianEpsilon) != median {
		t.Errorf("last round says %v and %v, the clients %v and %v", *last.Median, *last.Max, median, most)
	}
	top := 0.0
	for _, l := range last.MaxLeakage {
		top = max(top, float64(l))
	}
	if top != most {
		t.Errorf("largest leakage over the clusters %v, over the clients %v", top, most)
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	s, err := New(thousand(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	step := func() {
		if _, err := s.Step(); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		step()
	}
	// 1,000 updates a round; the history's slices grow now and then.
	if n := testing.AllocsPerRun(100, step); n > 1 {
		t.Errorf("%v allocations in a round of 1,000 updates", n)
	}
}

// failing is the purse of a client that cannot respond.
type failing int

func (f failing) Reserve(int, event.Release) error { return fmt.Errorf("client %d is ill", f) }

// TestFirstErrorIsTheLowestClients, whichever worker meets one first.
func TestFirstErrorIsTheLowestClients(t *testing.T) {
	for _, workers := range []int{1, 2, 8} {
		s, err := New(thousand(workers), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 300; i < len(s.rounds.Participants); i++ {
			s.rounds.Participants[i].Purse = failing(i)
		}
		_, err = s.Step()
		if err == nil || !strings.HasSuffix(err.Error(), ": client 300 is ill") {
			t.Errorf("%d workers: %v", workers, err)
		}
		s.Close()
	}
}
