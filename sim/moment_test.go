package sim

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/fl"
)

// TestWhatHeldBeforeAnAnswerIsGivenBack, whatever an answer wrote over.
func TestWhatHeldBeforeAnAnswerIsGivenBack(t *testing.T) {
	held := func() fl.Participant {
		return fl.Participant{
			Data: &data.Client{}, Account: account.Metric{Releases: 3, Distance: 2}, Switch: 4,
			Kept: fl.Kept{
				Personal: []float64{1, 2}, Cluster: 1, Last: []float64{3, 4}, Scaling: []float64{5, 6},
				Paid: fl.Paid{Rounds: 1, Choices: 2, Moments: 3}, Evaluated: []byte{7},
			},
		}
	}
	for _, first := range []bool{true, false} {
		p := held()
		want := held()
		if first { // nothing was kept yet
			p.Kept, want.Kept = fl.Kept{Personal: p.Personal}, fl.Kept{Personal: want.Personal}
		}
		var b before
		b.note(&fl.Participant{Kept: fl.Kept{Personal: []float64{9, 9, 9}, Last: []float64{9, 9, 9}}}) // another one's answer before
		b.note(&p)
		p.Data, p.Scaled, p.Mishap, p.Switch, p.Cluster = &data.Client{Group: 7}, true, errors.New("stopped"), 9, 5
		p.Account.AddUnprotected()
		copy(p.Personal, []float64{8, 8})
		p.Last = append(p.Last[:0], 8, 8)
		p.Scaling, p.Paid, p.Evaluated = []float64{8, 8}, fl.Paid{Rounds: 8}, []byte{8}
		b.restore(&p)
		if !reflect.DeepEqual(p, want) {
			t.Errorf("it holds %+v, and held %+v", p, want)
		}
	}
}

// TestMomentsKnowWhetherAJudgeHasSpoken: before that there is no figure to show, resumed
// or not; and a round under way says which client it is at.
func TestMomentsKnowWhetherAJudgeHasSpoken(t *testing.T) {
	run := thousand(2)
	run.Algorithm.Rounds, run.Algorithm.Stop.Every, run.Run.CheckpointSeconds = 6, 4, 0
	s, err := New(run, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	seen := map[Doing]Moment{}
	look := func() {
		if m := s.Moment(); m.Of > 0 {
			seen[m.Doing] = m
		}
	}
	s.rounds.after = func(p *fl.Participant) {
		s.noteSpent(p)
		if p.ID == 0 {
			look()
		}
	}
	s.judge = &stoppingJudge{judge: s.judge, at: 1, stop: look}
	for made := 0; ; made++ {
		m := s.Moment()
		if m.Round != made || m.Rounds != 6 || m.Method != "group-private" || m.Judged != (made >= 4) || m.Judged && !(m.Figure < 1e9) {
			t.Errorf("after %d rounds: %+v", made, m)
		}
		more, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
	}
	for doing, round := range map[Doing]int{Training: 5, Judging: 3} {
		if m := seen[doing]; m.Of != 1000 || m.Clients < 0 || m.Clients > 1000 || m.Round != round {
			t.Errorf("within a round: %+v", m)
		}
	}
	d := directory(t, run)
	ctx, cancel := context.WithCancel(context.Background())
	_, err = execute(t, ctx, d, run, nil, func(m Moment) {
		if m.Round == 2 {
			cancel()
		}
	})
	if !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	resumed := false
	_, err = execute(t, context.Background(), d, run, nil, func(m Moment) {
		resumed = true
		if m.Round < 2 || m.Judged != (m.Round >= 4) {
			t.Errorf("resumed: %+v", m)
		}
	})
	if err != nil || !resumed {
		t.Error(err)
	}
}

// TestMomentsWithinALongRound: of one participant they say which step it is at, counted
// anew in every round; of several they do not.
func TestMomentsWithinALongRound(t *testing.T) {
	folder := smallSchools(t)
	for _, c := range []struct {
		method, protects string
		want             int
	}{{"central", "example", 7}, {"central", "nothing", 7}, {"fedavg", "example", 0}} {
		run := config.Default("school", c.method, "paper")
		run.Privacy.Protects, run.Algorithm.Rounds, run.Algorithm.Local.Steps, run.Algorithm.Local.Batch = c.protects, 3, 7, 16
		s, err := New(run, folder)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		looked := 0
		s.rounds.after = func(*fl.Participant) {
			looked++
			if m := s.Moment(); m.Step != c.want || m.Steps != c.want {
				t.Errorf("%+v: after %d answers at step %d of %d", c, looked, m.Step, m.Steps)
			}
		}
		s.spent = nil
		for more := true; more; {
			if more, err = s.Step(); err != nil {
				t.Fatal(err)
			}
			if m := s.Moment(); m.Step != 0 {
				t.Errorf("%+v: between rounds at step %d", c, m.Step)
			}
		}
		if looked < 3 {
			t.Errorf("%+v: %d answers", c, looked)
		}
	}
}

// TestWhereOneParticipantWasInterrupted: there is nobody else whose answers are kept.
func TestWhereOneParticipantWasInterrupted(t *testing.T) {
	run := config.Default("school", "central", "paper")
	run.Algorithm.Rounds = 3
	_, _, err := watched(t, directory(t, run), run, smallSchools(t), 2, 1<<20)
	if !errors.Is(err, ErrInterrupted) || !strings.Contains(err.Error(), "interrupted in round 2, which begins again, of at most 3; continue with: ") {
		t.Error(err)
	}
}
