package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
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

func nothing(int, float64) {}

// execute makes or continues a run in a directory.
func execute(t *testing.T, ctx context.Context, d *Directory, run config.Run, tick func(int, float64)) (Result, error) {
	t.Helper()
	s, err := New(run, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.Execute(ctx, d, tick)
}

// TestPaperFigures holds the medians over 50 seeds against figure 1 of paper 000,
// as far as its prose can be compared: docs/decisions/0002.
func TestPaperFigures(t *testing.T) {
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
			f.loss = append(f.loss, float64(res.Metrics.ValidationLoss))
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
			res, err := execute(t, context.Background(), d, run, nothing)
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

// TestResumeAfterEveryRound stops a run between any two rounds and goes on from
// the file: models, budgets and history must be those of a run in one piece.
func TestResumeAfterEveryRound(t *testing.T) {
	ceiling := 1.2
	run := config.Default("synthetic", "group-private", "sound")
	run.Algorithm.Rounds, run.Algorithm.Sampling = 25, "balanced"
	run.Data.Users, run.Data.ValidationUsers = 20, 20
	run.Algorithm.Stop.ValidationClients = 5
	run.Privacy.Ceiling = &ceiling
	run.Run.Workers, run.Run.CheckpointSeconds = 1, 0
	whole, err := execute(t, context.Background(), directory(t, run), run, nothing)
	if err != nil {
		t.Fatal(err)
	}
	for stop := 1; stop < whole.Rounds; stop++ {
		d := directory(t, run)
		ctx, cancel := context.WithCancel(context.Background())
		_, err := execute(t, ctx, d, run, func(round int, _ float64) {
			if round == stop {
				cancel()
			}
		})
		if !errors.Is(err, ErrInterrupted) || d.Finished() {
			t.Fatalf("stop after round %d: %v", stop, err)
		}
		res, err := execute(t, context.Background(), d, run, nothing)
		if err != nil {
			t.Fatal(err)
		}
		res.WallSeconds, whole.WallSeconds = 0, 0
		if got, want := fmt.Sprintf("%+v", res.History), fmt.Sprintf("%+v", whole.History); res.ModelSHA256 != whole.ModelSHA256 || got != want {
			t.Fatalf("stopped after round %d, the run ends otherwise", stop)
		}
		if res.Privacy.DeclinedRequests != whole.Privacy.DeclinedRequests || *res.Privacy.EpsilonSwitch != *whole.Privacy.EpsilonSwitch {
			t.Fatalf("stopped after round %d, the budgets end otherwise: %+v", stop, res.Privacy)
		}
	}
}

func TestDamagedCheckpointIsRefused(t *testing.T) {
	run := config.Default("synthetic", "ifca", "paper")
	run.Run.CheckpointSeconds = 0
	d := directory(t, run)
	ctx, cancel := context.WithCancel(context.Background())
	_, err := execute(t, ctx, d, run, func(round int, _ float64) {
		if round == 3 {
			cancel()
		}
	})
	if !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	good, err := os.ReadFile(d.File(CheckpointFile))
	if err != nil {
		t.Fatal(err)
	}
	try := func(raw []byte) error {
		if err := os.WriteFile(d.File(CheckpointFile), raw, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := execute(t, context.Background(), d, run, nothing)
		return err
	}
	for i := 0; i < len(good); i += 7 {
		bad := slices.Clone(good)
		bad[i] ^= 0x10
		if try(bad) == nil {
			t.Fatalf("byte %d was changed and nobody noticed", i)
		}
	}
	for _, n := range []int{0, 10, len(good) / 2, len(good) - 1} {
		if try(good[:n]) == nil {
			t.Errorf("a checkpoint cut to %d bytes was accepted", n)
		}
	}
	other := run
	other.Algorithm.Rounds = 499
	if err := os.WriteFile(d.File(CheckpointFile), good, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := execute(t, context.Background(), d, other, nothing); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("a checkpoint of another run file: %v", err)
	}
	if err := try(good); err != nil {
		t.Errorf("the undamaged checkpoint: %v", err)
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
	if math.Abs(float64(last.Median)-median) > 1e-12 || float64(last.Max) != most || float64(res.Privacy.MedianEpsilon) != median {
		t.Errorf("last round says %v and %v, the clients %v and %v", last.Median, last.Max, median, most)
	}
	top := 0.0
	for _, l := range last.MaxLeakage {
		top = max(top, float64(l))
	}
	if top != most {
		t.Errorf("largest leakage over the clusters %v, over the clients %v", top, most)
	}
}

func TestDirectoryIsWholeOrAbsent(t *testing.T) {
	base := t.TempDir()
	if err := os.WriteFile(base+"/file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateDirectory(base, []byte("x")); err == nil {
		t.Error("a folder with something in it was taken")
	}
	if _, err := CreateDirectory(base+"/file", []byte("x")); err == nil {
		t.Error("a file was taken for a folder")
	}
	if err := os.Mkdir(base+"/empty", 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := CreateDirectory(base+"/empty", []byte("seed: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenDirectory(d.Path); !errors.Is(err, ErrBusy) {
		t.Errorf("a second process was let in: %v", err)
	}
	d.Close()
	again, run, err := OpenDirectory(d.Path)
	if err != nil || run.Seed != 1 {
		t.Fatal(run.Seed, err)
	}
	again.Close()
	if _, _, err := OpenDirectory(base); err == nil {
		t.Error("a folder without a run file was opened")
	}
	left, _ := os.ReadDir(base)
	if len(left) != 2 {
		t.Errorf("%d entries are left, want 2", len(left))
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

// failing is an algorithm whose clients from one on cannot respond.
type failing struct {
	fl.Algorithm
	from int
}

func (f failing) Respond(w *fl.Worker, b fl.Broadcast, p *fl.Participant, out []float64) (bool, error) {
	if p.ID >= f.from {
		return false, fmt.Errorf("client %d is ill", p.ID)
	}
	return f.Algorithm.Respond(w, b, p, out)
}

// TestFirstErrorIsTheLowestClients, whichever worker meets one first.
func TestFirstErrorIsTheLowestClients(t *testing.T) {
	for _, workers := range []int{1, 2, 8} {
		s, err := New(thousand(workers), nil)
		if err != nil {
			t.Fatal(err)
		}
		s.algorithm = failing{s.algorithm, 300}
		_, err = s.Step()
		if err == nil || err.Error() != "client 300 is ill" {
			t.Errorf("%d workers: %v", workers, err)
		}
		s.Close()
	}
}
