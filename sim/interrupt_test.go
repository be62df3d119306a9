package sim

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
)

// stopping is a purse that interrupts the run when it is asked for the n-th time: in the
// middle of an answer.
type stopping struct {
	asked *atomic.Int64
	at    int64
	stop  func()
}

func (p stopping) Reserve(int, event.Release) error {
	if p.asked.Add(1) == p.at {
		p.stop()
	}
	return nil
}

// interruptible are runs of every way to train and to protect, small enough to be
// interrupted anywhere.
func interruptible(t *testing.T) map[string]config.Run {
	t.Helper()
	runs := map[string]config.Run{}
	for _, kind := range []string{"mr-mtl", "mocha", "ditto", "finetune", "local", "ifca"} {
		runs[kind] = smallRun(kind)
	}
	auto := smallRun("mr-mtl")
	auto.Algorithm.Lambda = config.LambdaAuto
	runs["auto"] = auto
	client := smallRun("fedavg")
	client.Privacy.Protects, client.Algorithm.Weights = "client", "equal"
	runs["client"] = client
	learned := smallRun("mr-mtl")
	learned.Privacy.Clipping = config.Clipping{Rule: "online", GradientNoise: 1.1, Rate: 0.1, StepRate: 0.1}
	runs["a clip that is learned"] = learned
	central := config.Default("school", "central", "paper")
	central.Algorithm.Local.Optimiser, central.Algorithm.Local.Steps, central.Algorithm.Local.Batch, central.Algorithm.Local.StepDecay = "momentum", 4, 10, 0.01
	central.Privacy.Clipping = config.Clipping{Rule: "quantile", GradientNoise: 1.1}
	runs["central"] = central
	open := central
	open.Algorithm.Local.Optimiser, open.Privacy.Protects, open.Privacy.Epsilon, open.Privacy.Clipping = "adam", "nothing", 0, config.Clipping{}
	runs["central, unprotected"] = open
	client.Algorithm.ServerMomentum, client.Privacy.Recentre = 0.5, "mean"
	client.Privacy.Clipping = config.Clipping{Rule: "online", Rate: 0.3, StepRate: 0.2}
	runs["client, all that a server keeps"] = client
	paid := config.Default("school", "mr-mtl", "sound")
	paid.Seed, paid.Data.Standardise, paid.Privacy.Epsilon, paid.Privacy.Delta = 3, "paid", 6, 1e-3
	runs["paid moments"] = paid
	for name, run := range runs {
		run.Algorithm.Rounds = 3
		runs[name] = run
	}
	ceiling := 0.8
	updates := config.Default("synthetic", "group-private", "sound")
	updates.Algorithm.Rounds, updates.Algorithm.Sampling, updates.Algorithm.ClientsPerRound = 5, "balanced", 6
	updates.Data.Users, updates.Data.ValidationUsers = 8, 6
	updates.Algorithm.Stop.ValidationClients = 3
	updates.Privacy.Ceiling = &ceiling
	runs["updates"] = updates
	updates.Run.Hold = "asked"
	runs["updates of a crowd"] = updates
	updates.Privacy.Noise = "exact-seeded"
	runs["updates of a crowd on a lattice"] = updates
	updates.Run.Hold = ""
	runs["updates on a lattice"] = updates
	network := config.Default("synthetic", "ifca", "paper")
	network.Algorithm.Rounds, network.Algorithm.ClientsPerRound, network.Algorithm.Stop.Patience = 3, 5, 0
	network.Data.Users, network.Data.ValidationUsers = 8, 6
	network.Model = config.Model{Kind: "network", Layers: []config.Layer{{Kind: "linear", Units: 3}, {Kind: "tanh"}, {Kind: "linear", Units: 1}}}
	runs["network"] = network
	nearest := network
	nearest.Algorithm.Kind, nearest.Algorithm.Selection.Rule, nearest.Algorithm.Clustering = "group-private", "nearest", "k-means"
	nearest.Privacy.Protects, nearest.Privacy.NoiseMultiplier = "update", 5
	runs["network, nearest to the last release"] = nearest
	for name, run := range runs {
		for _, check := range Checks() {
			if faults := check(run); faults != nil {
				t.Fatal(name, faults)
			}
		}
		run.Run.CheckpointSeconds = 3600
		runs[name] = run
	}
	return runs
}

// watched makes or continues a run whose participants count what they pay for. At a
// number that is not 0 the run is interrupted, in the middle of that answer. So many values
// of releases are kept in a round; more are summed up as they come.
func watched(t *testing.T, d *Directory, run config.Run, folder *data.Folder, at int64, kept int) (Result, int64, error) {
	t.Helper()
	s, err := New(run, folder)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.rounds.kept = kept
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var asked atomic.Int64
	stop := func() {
		cancel()
		s.until.stop.Store(true) // at once: otherwise a goroutine does it
	}
	for i := range s.rounds.Participants {
		s.rounds.Participants[i].Purse = stopping{&asked, at, stop}
	}
	if s.rounds.crowd != nil {
		s.rounds.crowd.purse = stopping{&asked, at, stop}
	}
	res, err := s.Execute(ctx, d, nothing)
	if res.Crowd != nil {
		res.Crowd.PeakMemoryBytes = 0
	}
	return res, asked.Load(), err
}

// TestInterruptedAnywhereARunEndsTheSame interrupts runs in the middle of answers of every
// round, every second one and, with two workers, every fifth: whoever had finished its answer does not answer again, whoever had not is as
// before, and models, budgets and history are those of a run in one piece. Releases are
// kept, summed up, or were kept before the interruption and are summed up after it.
func TestInterruptedAnywhereARunEndsTheSame(t *testing.T) {
	folder := smallSchools(t)
	for name, run := range interruptible(t) {
		if testing.Short() && name != "updates" && name != "updates of a crowd" && name != "ditto" && name != "network" {
			continue // the race detector needs no more
		}
		whole, answers, err := watched(t, directory(t, run), run, folder, 0, keptValues)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, workers := range []int{1, 2} {
			run.Run.Workers = workers
			interrupted := 0
			for at := int64(workers); at <= answers; at += int64(3*workers - 1) {
				d := directory(t, run)
				first, then := keptValues, keptValues
				switch interrupted++; interrupted % 3 {
				case 1:
					first, then = 0, 0
				case 2:
					then = 0
				}
				_, before, err := watched(t, d, run, folder, at, first)
				if !errors.Is(err, ErrInterrupted) || !strings.Contains(err.Error(), " in round ") {
					t.Fatalf("%s, interrupted in answer %d: %v", name, at, err)
				}
				res, after, err := watched(t, d, run, folder, 0, then)
				if err != nil {
					t.Fatalf("%s, interrupted in answer %d: %v", name, at, err)
				}
				res.Config, res.ConfigSHA256, res.WallSeconds = whole.Config, whole.ConfigSHA256, whole.WallSeconds // workers and time
				if encoded(t, res) != encoded(t, whole) {
					t.Fatalf("%s with %d workers, interrupted in answer %d, ends otherwise", name, workers, at)
				}
				// Nobody pays twice but those who were in the middle of it.
				if again := before + after - answers; again < 1 || again > int64(workers) {
					t.Fatalf("%s with %d workers, interrupted in answer %d: %d answers were made twice", name, workers, at, again)
				}
			}
		}
	}
}

// stoppingJudge interrupts the run when it is asked for the n-th score; at 0 before the
// first, when there was no time for anything else either.
type stoppingJudge struct {
	judge
	asked atomic.Int64
	at    int64
	stop  func()
}

func (j *stoppingJudge) open(hypotheses []float64) (int, error) {
	if j.at == 0 {
		j.stop()
	}
	return j.judge.open(hypotheses)
}

func (j *stoppingJudge) score(worker, i int) {
	if j.asked.Add(1) == j.at {
		j.stop()
	}
	j.judge.score(worker, i)
}

// TestInterruptedJudgementsAreMadeAgain interrupts runs while a round, or the returned
// models, are judged: nothing is trained again, and the run ends the same.
func TestInterruptedJudgementsAreMadeAgain(t *testing.T) {
	folder := smallSchools(t)
	runs := interruptible(t)
	test := smallRun("fedavg")
	test.Algorithm.Rounds, test.Judge.By, test.Run.CheckpointSeconds = 3, "test", 3600
	runs["test"] = test
	for _, name := range []string{"updates", "mr-mtl", "auto", "network", "test"} {
		run := runs[name]
		whole, answers, err := watched(t, directory(t, run), run, folder, 0, keptValues)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, workers := range []int{1, 2} {
			run.Run.Workers = workers
			for at := int64(0); ; at += int64(3*workers - 1) {
				d := directory(t, run)
				s, err := New(run, folder)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(context.Background())
				j := &stoppingJudge{judge: s.judge, at: at, stop: func() {
					cancel()
					s.until.stop.Store(true)
				}}
				s.judge = j
				var before atomic.Int64
				for i := range s.rounds.Participants {
					s.rounds.Participants[i].Purse = stopping{asked: &before}
				}
				_, err = s.Execute(ctx, d, nothing)
				s.Close()
				cancel()
				if j.asked.Load() < at {
					break // there are no more
				}
				if !errors.Is(err, ErrInterrupted) || strings.Contains(err.Error(), " in round ") {
					t.Fatalf("%s, interrupted at score %d: %v", name, at, err)
				}
				res, after, err := watched(t, d, run, folder, 0, keptValues)
				if err != nil || before.Load()+after != answers {
					t.Fatalf("%s, interrupted at score %d: %d answers before, %d after, of %d: %v", name, at, before.Load(), after, answers, err)
				}
				res.Config, res.ConfigSHA256, res.WallSeconds = whole.Config, whole.ConfigSHA256, whole.WallSeconds
				if encoded(t, res) != encoded(t, whole) {
					t.Fatalf("%s with %d workers, interrupted at score %d, ends otherwise", name, workers, at)
				}
			}
		}
	}
}

// TestTheSameSimulationGoesOn: who interrupts a run in memory can go on with it there.
func TestTheSameSimulationGoesOn(t *testing.T) {
	folder := smallSchools(t)
	for _, name := range []string{"ditto", "paid moments", "network"} {
		run := interruptible(t)[name]
		whole, answers, err := watched(t, directory(t, run), run, folder, 0, keptValues)
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(run, folder)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var asked atomic.Int64
		interrupted := 0
		for more := true; more; {
			ctx, cancel := context.WithCancel(context.Background())
			s.Until(ctx)
			stop := func() {
				cancel()
				s.until.stop.Store(true)
			}
			for i := range s.rounds.Participants {
				s.rounds.Participants[i].Purse = stopping{&asked, asked.Load() + 3, stop}
			}
			more, err = s.Step()
			if errors.Is(err, ErrInterrupted) {
				interrupted++
				more = true
			} else if err != nil {
				t.Fatal(err)
			}
			cancel()
		}
		s.Until(t.Context())
		res, err := s.Result()
		if err != nil || encoded(t, res.History) != encoded(t, whole.History) || encoded(t, res.Metrics) != encoded(t, whole.Metrics) {
			t.Errorf("%s: after %d interruptions in %d answers the run ends otherwise (%v)", name, interrupted, answers, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		s.Until(ctx)
		cancel()
		s.until.stop.Store(true)
		if _, err := s.Result(); !errors.Is(err, ErrInterrupted) {
			t.Errorf("%s: a result that was interrupted: %v", name, err)
		}
	}
}

func init() {
	data.Register(data.Kind{
		DataKind: config.DataKind{Name: "test-endless"},
		Shape:    func(config.Data) (data.Shape, bool) { return data.Shape{Features: 1}, true },
		Words:    func(config.Data) string { return "data that never come" },
		Load: func(*data.Folder, config.Data, uint64) (*data.Federation, error) {
			close(endless)
			select {}
		},
	})
}

// endless is closed when data of the kind test-endless are being read.
var endless = make(chan struct{})

// TestReadingDataIsNotWaitedFor: who stops a run while its data are read is answered at
// once.
func TestReadingDataIsNotWaitedFor(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-endless
		cancel()
	}()
	run := config.Default("synthetic", "fedavg", "paper")
	run.Data = config.Data{Kind: "test-endless"}
	if s, err := NewUntil(ctx, run, nil); s != nil || !errors.Is(err, ErrInterrupted) {
		t.Error(s, err)
	}
}

// TestAnAnswerIsInterruptedItself: a client that would train for minutes is stopped
// within a second, whatever it trains.
func TestAnAnswerIsInterruptedItself(t *testing.T) {
	for name, layers := range map[string][]config.Layer{
		"linear":  nil,
		"network": {{Kind: "linear", Units: 8}, {Kind: "tanh"}, {Kind: "linear", Units: 1}},
	} {
		run := config.Default("synthetic", "fedavg", "paper")
		run.Data.Users, run.Algorithm.ClientsPerRound, run.Algorithm.Local.Epochs = 2, 1, 1<<30
		if layers != nil {
			run.Model = config.Model{Kind: "network", Layers: layers}
		}
		s, err := New(run, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var asked time.Time
		for i := range s.rounds.Participants { // whoever pays begins to train
			s.rounds.Participants[i].Purse = stopping{new(atomic.Int64), 1, func() {
				asked = time.Now()
				cancel()
			}}
		}
		s.Until(ctx)
		_, err = s.Step()
		if took := time.Since(asked); !errors.Is(err, ErrInterrupted) || took > time.Second {
			t.Errorf("%s: %v after %v", name, err, took)
		}
		cancel()
		s.Close()
	}
}
