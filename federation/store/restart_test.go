package store_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/federation/store"
)

// script is a log that does something when a line with some words comes, before
// whoever wrote the line goes on: one thing after another.
type script struct {
	mu    sync.Mutex
	steps []step
	all   strings.Builder
}

type step struct {
	words string
	act   func()
}

func (s *script) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.steps) > 0 && strings.Contains(string(line), s.steps[0].words) {
		s.steps[0].act()
		s.steps = s.steps[1:]
	}
	return s.all.Write(line)
}

const restartRun = `name: restarted
seed: 7
data: {kind: synthetic, users: 3, samples: 20}
algorithm: {kind: group-private, mode: sound, hypotheses: 2, rounds: 12, clients_per_round: 3}
privacy: {noise_multiplier: 5, radius: 0.3, noise: exact-seeded}
`

const restartPolicy = `ceilings:
  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: 40, epsilon_switch: 1.0e+6}
`

var restartNames = []string{"north", "south", "west"}

// TestServerOutlivesItsDatabase: PostgreSQL is stopped between rounds and within one,
// stays away until the server has noticed, and comes back. The run ends as if nothing
// had been: every round once, with everybody's release.
func TestServerOutlivesItsDatabase(t *testing.T) {
	undisturbed := runOn(t, "sqlite:"+filepath.Join(t.TempDir(), "state.db"))
	p := store.OwnPostgres(t)
	start := func() {
		if err := p.Start(); err != nil {
			t.Error(err)
		}
	}
	res := runOn(t, p.Database(t, "coterie"),
		step{"round closed", p.Stop}, step{"the store does not answer; trying again", start},
		step{"round opened", p.Stop}, step{"a request failed", start},
		step{"round closed", p.Stop}, step{"the store does not answer; trying again", start},
	)
	if res.Rounds != 12 || res.Abandoned != 0 || res.ModelSHA256 != undisturbed.ModelSHA256 {
		t.Errorf("%d rounds, %d abandoned, model %.8s; undisturbed: %d, %d, %.8s",
			res.Rounds, res.Abandoned, res.ModelSHA256, undisturbed.Rounds, undisturbed.Abandoned, undisturbed.ModelSHA256)
	}
	for _, p := range res.Participants {
		if p.Released != 12 || p.Equivocations != 0 {
			t.Errorf("%s: %+v; want 12 releases", p.Name, p)
		}
	}
}

// runOn makes a federation of three on a store, while things happen to it.
func runOn(t *testing.T, address string, steps ...step) server.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	dir, log := t.TempDir(), &script{steps: steps}
	if err := os.WriteFile(filepath.Join(dir, "run.yaml"), []byte(restartRun), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := identity.Init(filepath.Join(dir, "ca"), identity.Options{Server: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := plan.LoadServeFile([]byte("run: run.yaml\nlisten: 127.0.0.1:0\nparticipants: [north, south, west]\nlinger_seconds: 10\n"), dir)
	if err != nil {
		t.Fatal(err)
	}
	f.Store = address
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	listening := make(chan string, 1)
	type end struct {
		res server.Result
		err error
	}
	ended := make(chan end, 1)
	all.Go(func() {
		res, err := server.Serve(ctx, server.Options{
			File: f, Seeded: true, Log: slog.New(slog.NewTextHandler(log, nil)), Listening: func(a string) { listening <- a },
		})
		ended <- end{res, err}
	})
	var server string
	select {
	case server = <-listening:
	case e := <-ended:
		t.Fatal(e.err)
	}
	for _, name := range restartNames {
		all.Go(func() {
			if err := takePart(ctx, a, dir, name, server); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	e := <-ended
	if e.err != nil {
		t.Fatalf("%v; the log:\n%s", e.err, log.all.String())
	}
	if len(log.steps) > 0 {
		t.Errorf("%q was never said; the log:\n%s", log.steps[0].words, log.all.String())
	}
	return e.res
}

// takePart enrols and joins.
func takePart(ctx context.Context, a *identity.Authority, dir, name, server string) error {
	invite, err := a.Invite(name, time.Hour)
	if err != nil {
		return err
	}
	invite.Server = server
	quiet := slog.New(slog.DiscardHandler)
	if _, err := participant.Enrol(ctx, invite.String(), filepath.Join(dir, name, "identity"), quiet); err != nil {
		return err
	}
	f, err := plan.LoadJoinFile([]byte("{}"), filepath.Join(dir, name))
	if err != nil {
		return err
	}
	policy, err := plan.LoadPolicy([]byte(restartPolicy))
	if err != nil {
		return err
	}
	_, err = participant.Join(ctx, participant.JoinOptions{File: f, Policy: policy, Seeded: true, Log: quiet})
	return err
}

// TestLockIsTakenAgain: the lock against a second server ends with a connection. When
// the database comes back, the first server has it again as soon as it asks.
func TestLockIsTakenAgain(t *testing.T) {
	p := store.OwnPostgres(t)
	address, ctx := p.Database(t, "coterie"), t.Context()
	s, err := store.Open(ctx, address, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p.Stop()
	if err := s.Ping(ctx); err == nil {
		t.Error("a database that is gone answers")
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(ctx); err != nil {
		t.Fatalf("the database is back: %v", err)
	}
	if second, err := store.Open(ctx, address, store.Options{}); !errors.Is(err, store.ErrBusy) {
		if err == nil {
			second.Close()
		}
		t.Errorf("a second server: %v; want busy", err)
	}
	if err := s.CreateRun(ctx, store.Run{ID: "r", SHA256: "aa"}); err != nil {
		t.Errorf("the first server cannot go on: %v", err)
	}
}
