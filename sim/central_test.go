package sim

import (
	"bytes"
	"context"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
)

// executedRun is a run's result and its simulation, which is closed.
func executedRun(t *testing.T, run config.Run, folder *data.Folder) (Result, *Simulation) {
	t.Helper()
	for _, check := range Checks() {
		if faults := check(run); faults != nil {
			t.Fatal(faults)
		}
	}
	s, err := New(run, folder)
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
	return res, s
}

// TestTrainedUnjudged: who asks for models alone gets those of the whole run, described the
// same, in one place and among several, though nobody looks how good they are; where the
// judge decides what is returned, it is asked.
func TestTrainedUnjudged(t *testing.T) {
	folder := smallSchools(t)
	for name, c := range map[string]struct {
		kind     string
		back     string
		unjudged bool
	}{"in one place": {"central", "last", true}, "together": {"fedavg", "last", false}, "the best": {"central", "best", false}, "everybody's own": {"local", "last", false}} {
		run := config.Default("school", c.kind, "paper")
		run.Seed, run.Algorithm.Rounds, run.Algorithm.Stop.Return, run.Algorithm.Stop.Every = 3, 3, c.back, 1
		if c.kind != "local" { // with a price
			run.Algorithm.Mode = "sound"
			run.Privacy.PublicSize = 50
		} else {
			run.Privacy.Protects, run.Privacy.Epsilon = "nothing", 0
		}
		whole, alone := directory(t, run), directory(t, run)
		res, err := execute(t, context.Background(), whole, run, folder, nothing)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s, err := New(run, folder)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Train(context.Background(), alone, nothing); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s.unjudged != c.unjudged || c.unjudged && s.progress.BestRound > 0 {
			t.Errorf("%s: unjudged is %v, and round %d the best", name, s.unjudged, s.progress.BestRound)
		}
		s.Close()
		for _, file := range []string{artifact.DescriptionFile, artifact.ModelFile} {
			one, err1 := os.ReadFile(whole.File(file))
			other, err2 := os.ReadFile(alone.File(file))
			if err1 != nil || err2 != nil || !bytes.Equal(one, other) || res.ModelSHA256 == "" {
				t.Errorf("%s: %s is not the whole run's: %v %v", name, file, err1, err2)
			}
		}
	}
}

// TestCentralPoolsEverybody: one participant holds all examples, and what all hold out is
// the test set; blocks of steps are one training, whatever their length.
func TestCentralPoolsEverybody(t *testing.T) {
	folder := smallSchools(t)
	run := config.Default("school", "central", "paper")
	run.Seed, run.Algorithm.Rounds, run.Privacy.Protects, run.Privacy.Epsilon = 3, 6, "nothing", 0
	run.Algorithm.Local.Optimiser, run.Algorithm.Local.Epochs, run.Algorithm.Local.Batch = "momentum", 1, 0
	run.Algorithm.Local.Remainder = "keep"
	six, s := executedRun(t, run, folder)
	var rows, held int
	for i := range s.given.Train {
		rows += s.given.Train[i].Len()
		held += s.given.Train[i].Held.Len()
	}
	if one := &s.federation.Train[0]; six.Clients != 1 || one.Len() != rows || one.Held.Len() != held || rows == 0 || held == 0 {
		t.Errorf("%d clients, %d rows of %d, %d held out of %d", six.Clients, one.Len(), rows, one.Held.Len(), held)
	}
	run.Algorithm.Rounds, run.Algorithm.Local.Epochs = 2, 3
	two, _ := executedRun(t, run, folder)
	if six.ModelSHA256 != two.ModelSHA256 {
		t.Error("six rounds of one pass end elsewhere than two of three: momentum is forgotten")
	}
}

// TestCentralSpendsItsTarget: Poisson batches of a public number of examples, each of
// which protects for the whole run; more blocks of fewer steps cost the same.
func TestCentralSpendsItsTarget(t *testing.T) {
	folder := smallSchools(t)
	run := config.Default("school", "central", "sound")
	run.Seed, run.Algorithm.Rounds, run.Privacy.Epsilon = 3, 6, 3
	run.Privacy.Relation, run.Privacy.PublicSize, run.Algorithm.Weights = "add-remove", 60, "equal"
	run.Algorithm.Local.Steps, run.Algorithm.Local.Batch = 5, 12
	run.Privacy.Clip, run.Privacy.Clipping = 0.5, config.Clipping{Rule: "online"}
	res, s := executedRun(t, run, folder)
	g, _, err := s.rounds.Algorithm.Spend(&s.rounds.Participants[0])
	if err != nil || g.Epsilon > 3 || g.Epsilon < 2.99 || g.Claim != event.ClaimProved {
		t.Errorf("%+v, %v", g, err)
	}
	noise := s.rounds.Participants[0].Plan.Noise
	run.Algorithm.Rounds, run.Algorithm.Local.Steps = 3, 10
	if _, s := executedRun(t, run, folder); s.rounds.Participants[0].Plan.Noise != noise {
		t.Errorf("noise %v in 6 blocks of 5 steps, %v in 3 of 10", noise, s.rounds.Participants[0].Plan.Noise)
	}
	last := res.History.Rounds[len(res.History.Rounds)-1].Steps
	if last == nil || last.Made != 30 || last.Clip == 0.5 || last.ClipUp == nil || last.StepAgree == nil || last.Clipped == nil {
		t.Fatalf("%+v", last)
	}
	seen := 0
	for _, r := range res.History.Rounds {
		for _, n := range r.Steps.Norms {
			seen += n
		}
	}
	// Six deviations of 30 Poisson batches at the rate 12/60: a false alarm in 1e8.
	rows := float64(s.federation.Train[0].Len())
	if want := 30 * 0.2 * rows; math.Abs(float64(seen)-want) > 6*math.Sqrt(0.8*want) {
		t.Errorf("%d examples were seen, about %v are expected", seen, want)
	}
	// Exact noise tells nobody what it met.
	run.Privacy.Noise = "exact-seeded"
	exact, _ := executedRun(t, run, folder)
	if slices.ContainsFunc(exact.History.Rounds, func(r RoundRecord) bool {
		return r.Steps.Clipped != nil || r.Steps.ClipAgree != nil || r.Steps.StepAgree != nil || r.Steps.Norms != nil
	}) {
		t.Error("exact steps are watched")
	}
}
