package sim

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

// TestLargeRoundsKeepFewReleases: of 64 releases of 101,702 parameters, 52 MB in all, a
// round has the memory of a few, with one worker and with two, and moves the models to the
// same bytes as one that keeps them all.
func TestLargeRoundsKeepFewReleases(t *testing.T) {
	const clients, most = 64, 20 << 20
	run, federation := handwriting(clients, 1, 1)
	run.Model = config.Model{Kind: "network", Layers: []config.Layer{
		{Kind: "linear", Units: 120}, {Kind: "relu"}, {Kind: "linear", Units: 62},
	}}
	var want []float64
	for _, c := range []struct{ workers, kept int }{{1, 1 << 30}, {1, keptValues}, {2, keptValues}} {
		run.Run.Workers = c.workers
		before := heap()
		s, err := NewOn(run, federation, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.rounds.kept = c.kept
		for range 2 {
			if _, err := s.Step(); err != nil {
				t.Fatal(err)
			}
		}
		held := heap() - before
		if summed := s.rounds.Releases.Sum != nil; summed != (c.kept == keptValues) {
			t.Fatalf("%d values may be kept: summed up %v", c.kept, summed)
		}
		switch {
		case want == nil:
			want = s.Returned()
			if held < most {
				t.Errorf("all releases take %d bytes, no more than the limit that is to tell them from a few", held)
			}
		case held > most:
			t.Errorf("with %d workers a round holds %d bytes; allowed: %d", c.workers, held, most)
		}
		for i, v := range s.Returned() {
			if v != want[i] {
				t.Fatalf("with %d workers parameter %d is %v, and %v if all releases are kept", c.workers, i, v, want[i])
			}
		}
		if n := len(s.record.Early); n != 2*windowReleases || s.record.Early[1].At == [2]float64{} {
			t.Errorf("%d releases were recorded, the second %+v", n, s.record.Early[1])
		}
		s.Close()
	}
}

// heap is what is in use of it.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// penniless is a purse that cannot pay.
type penniless struct{ who int }

func (p penniless) Reserve(int, event.Release) error { return fmt.Errorf("no purse of %d", p.who) }

// TestSummedRoundsFailWithTheFirstClient: whoever waits for a place is not left waiting,
// and the error is that of the first client that failed, whichever worker was quicker.
func TestSummedRoundsFailWithTheFirstClient(t *testing.T) {
	folder := smallSchools(t)
	for try := range 20 {
		run := smallRun("fedavg")
		run.Privacy = config.Default("school", "fedavg", "paper").Privacy
		run.Privacy.Protects, run.Privacy.Epsilon = "nothing", 0
		run.Run.Workers = 1 + try%3
		s, err := New(run, folder)
		if err != nil {
			t.Fatal(err)
		}
		s.rounds.kept = 0
		for _, who := range []int{2, 3, 5} {
			s.rounds.Participants[who].Purse = penniless{who}
		}
		s.rounds.work = 1 << 30 // as if answers were long: all workers take part
		if _, err := s.Step(); err == nil || !strings.Contains(err.Error(), "no purse of 2") {
			t.Fatalf("with %d workers: %v", run.Run.Workers, err)
		}
		s.Close()
	}
}

// TestOneModelNeedsNoChoice: with one model there is nothing to choose, and nobody looks
// at its examples for it.
func TestOneModelNeedsNoChoice(t *testing.T) {
	for _, kind := range []string{"fedavg", "ifca", "ditto", "mr-mtl"} {
		run := smallRun(kind)
		run.Algorithm.Hypotheses, run.Algorithm.Rounds = 1, 1
		s, err := New(run, smallSchools(t))
		if err != nil {
			t.Fatal(kind, err)
		}
		b, err := s.rounds.Algorithm.Broadcast(s.rounds.State)
		if err != nil {
			t.Fatal(err)
		}
		p := &s.rounds.Participants[0]
		out := make([]float64, s.rounds.Algorithm.ReleaseLength())
		if _, err := s.rounds.Algorithm.Method().Respond(unwilling{t}, new(fl.Worker), &b, p, out); err != nil {
			t.Error(kind, err)
		}
		s.Close()
	}
}

// unwilling is a guard that must not be asked to choose.
type unwilling struct{ t *testing.T }

func (g unwilling) Open(*fl.Broadcast, *fl.Participant) (bool, error) { return true, nil }
func (g unwilling) Choose(*fl.Broadcast, *fl.Participant) (int, error) {
	g.t.Error("somebody chooses among one model")
	return 0, nil
}
func (g unwilling) Train(*fl.Broadcast, *fl.Participant, []float64, []float64, fl.Pull) error {
	return nil
}
func (g unwilling) Send(*fl.Broadcast, *fl.Participant, []float64, []float64, []float64) (bool, error) {
	return true, nil
}

// TestWhatIsProtectedAsASumIsNotSummedBefore: under privacy.protects client every update
// is clipped and the sum noised; one that was summed up before would have no noise.
func TestWhatIsProtectedAsASumIsNotSummedBefore(t *testing.T) {
	run := smallRun("fedavg")
	run.Privacy.Protects, run.Algorithm.Weights = "client", "equal"
	s, err := New(run, smallSchools(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.rounds.Algorithm.NewSum() != nil {
		t.Error("there is a sum without noise")
	}
	out := s.rounds.Algorithm.Aggregate(s.rounds.State.Clone(), fl.Releases{Sum: new(fl.Sum)})
	if out.Err == nil || !strings.Contains(out.Err.Error(), "client") {
		t.Errorf("a sum is taken: %v", out.Err)
	}
}

// TestSummedRoundsGoOnInTheSameProcess: an answer that was interrupted gives its place
// back, and the round goes on as if nothing had happened.
func TestSummedRoundsGoOnInTheSameProcess(t *testing.T) {
	folder := smallSchools(t)
	var want []float64
	for at := range int64(7) { // 0: never
		run := smallRun("ditto")
		run.Algorithm.Rounds, run.Run.Workers = 1, 1+int(at%2)
		s, err := New(run, folder)
		if err != nil {
			t.Fatal(err)
		}
		s.rounds.kept, s.rounds.work = 0, 1<<30
		var asked atomic.Int64
		for i := range s.rounds.Participants {
			s.rounds.Participants[i].Purse = stopping{&asked, at, func() { s.until.stop.Store(true) }}
		}
		_, err = s.Step()
		if errors.Is(err, ErrInterrupted) != (at > 0) || at == 0 && err != nil {
			t.Fatalf("interrupted in answer %d: %v", at, err)
		}
		if at > 0 {
			s.until.stop.Store(false)
			if _, err := s.Step(); err != nil {
				t.Fatal(err)
			}
		}
		if want == nil {
			want = s.Returned()
		}
		if !slices.Equal(s.Returned(), want) {
			t.Errorf("interrupted in answer %d it ends otherwise", at)
		}
		s.Close()
	}
}
