package server

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
)

// evaluatedPlan has one round, and then an evaluation; two releases close a round.
func evaluatedPlan(t *testing.T, judge string) func(*plan.Plan) {
	return func(p *plan.Plan) {
		text := strings.Replace(federationtest.Run, "rounds: 5", "rounds: 1", 1) + judge
		run, err := plan.Resolve([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		resolved, err := run.Encode()
		if err != nil {
			t.Fatal(err)
		}
		p.RunFile, p.Quorum, p.Minimum = string(resolved), 2, 2
	}
}

const evaluateJudge = "judge: {evaluate: {epsilon: 1}}\n"

// finished waits for the end of the run.
func (b *bench) finished(name string) *Finished {
	b.t.Helper()
	w, f, err := b.c.next(b.t.Context(), name, b.plan.Run, b.c.sum[:], 10*time.Second)
	if err != nil || w != nil || f == nil {
		b.t.Fatalf("%s gets %+v and %v; want the end", name, w, err)
	}
	return f
}

func (b *bench) decline(name string, round int64) {
	b.t.Helper()
	if err := b.c.decline(b.t.Context(), name, b.slot(round), false, "policy"); err != nil {
		b.t.Fatal(err)
	}
}

// asked waits until the evaluation asks a participant that has not answered before it.
func (b *bench) asked(name string) *work {
	b.t.Helper()
	for {
		if w := b.work(name); w.Round > 0 {
			return w
		}
	}
}

// train makes round 1 with two releases that are off the next round's lattice.
func (b *bench) train() {
	b.t.Helper()
	b.work("north")
	b.mustSend("north", 0, 1.0/3, 2)
	b.mustSend("south", 0, 1.0/7, 1)
}

// TestEvaluationRound: after the last round everybody is asked once more, for counts of
// their own length, and waited for beyond the quorum; a server that is killed in between
// goes on. The models are those of the run without it.
func TestEvaluationRound(t *testing.T) {
	plain := newBench(t, evaluatedPlan(t, ""))
	plain.train()
	without := plain.finished("north")

	b := newBench(t, evaluatedPlan(t, evaluateJudge))
	b.work("north")
	_, err := b.send("west", 1, 1, 2, 3, 4, 5)
	b.wantReason(err, transfer.ReasonEarly) // before the last round
	b.train()
	w := b.asked("north")
	if w.Round != 1 || w.Cohort != 3 {
		t.Fatalf("after the last round comes %+v; want an evaluation by all three", w)
	}
	for _, wrong := range [][]float64{{1, 2}, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 1e13}} {
		_, err := b.send("west", 1, wrong...)
		b.wantReason(err, transfer.ReasonMalformed)
	}
	receipt := b.mustSend("north", 1, 1, 2, 3, 4, 5)
	if again, err := b.send("north", 1, 1, 2, 3, 4, 5); err != nil || !bytes.Equal(again, receipt) {
		t.Errorf("the same counts again: %v", err)
	}
	_, err = b.send("north", 1, 1, 2, 3, 4, 6)
	b.wantReason(err, transfer.ReasonEquivocation)
	b.mustSend("south", 1, 10, 20, 30, 40, 50)
	sent := w.Broadcast.bytes
	b.stop()
	b.begin()
	if w = b.work("west"); w.Round != 1 || !bytes.Equal(w.Broadcast.bytes, sent) {
		t.Fatalf("a server that is started again asks for %+v", w)
	}
	b.decline("west", 1)
	end := b.finished("north")
	if end.Rounds != 1 || end.Abandoned != 0 || end.ModelSHA256 != without.ModelSHA256 || !bytes.Equal(end.broadcast.bytes, sent) {
		t.Errorf("the run ends with %+v, without an evaluation with %+v", end, without)
	}
	for range 2 { // and from the store again
		f, err := b.c.figures(t.Context())
		if err != nil || f == nil || f.Participants != 2 || f.Asked != 3 {
			t.Fatalf("the figures are %+v, %v", f, err)
		}
		if len(b.c.evaluated.Sums) != 5 || b.c.evaluated.Sums[0] != 11 || b.c.evaluated.Sums[4] != 55 {
			t.Errorf("the sums are %v", b.c.evaluated.Sums)
		}
		b.stop()
		b.begin()
		if again := b.finished("south"); again.ModelSHA256 != end.ModelSHA256 {
			t.Errorf("the models are handed out again as %.8s", again.ModelSHA256)
		}
	}
	_, err = b.send("west", 1, 1, 2, 3, 4, 5)
	b.wantReason(err, transfer.ReasonLate)
	people, history, err := b.c.account(t.Context())
	if err != nil || len(history) != 2 || !history[1].Evaluation || history[0].Evaluation || people[0].Released != 2 {
		t.Errorf("%+v, %+v, %v", people, history, err)
	}
}

// TestEvaluationNobodyWants: with fewer counts than the minimum there are no figures, and
// the run has its models all the same.
func TestEvaluationNobodyWants(t *testing.T) {
	b := newBench(t, evaluatedPlan(t, evaluateJudge))
	b.train()
	b.asked("west")
	b.mustSend("west", 1, 1, 2, 3, 4, 5)
	b.decline("north", 1)
	b.decline("south", 1)
	end := b.finished("north")
	for range 2 {
		f, err := b.c.figures(t.Context())
		if err != nil || f == nil || !strings.Contains(f.Reason, "1 of 3 participants released; the minimum is 2") || f.Counts != nil || f.Asked != 3 {
			t.Errorf("the figures are %+v, %v", f, err)
		}
		if end.Rounds != 1 || end.Abandoned != 0 || end.models.bytes == nil {
			t.Errorf("the run ends with %+v", end)
		}
		b.stop()
		b.begin()
		end = b.finished("north")
	}
}

// TestNothingToEvaluate: a run that has learnt nothing has no model to judge.
func TestNothingToEvaluate(t *testing.T) {
	b := newBench(t, evaluatedPlan(t, evaluateJudge))
	for _, name := range federationtest.Names {
		b.work(name)
		b.decline(name, 0)
	}
	if end := b.finished("north"); end.models.bytes != nil {
		t.Errorf("the run ends with %+v", end)
	}
	if _, err := b.store.Round(t.Context(), b.plan.Run, 1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an evaluation was opened: %v", err)
	}
	if f, err := b.c.figures(t.Context()); f != nil || err != nil {
		t.Errorf("the figures are %+v, %v", f, err)
	}
}
