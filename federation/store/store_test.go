package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// backend is a place for a store that can be opened again.
type backend struct {
	address string
	options Options
}

func (b backend) open(t *testing.T) Store {
	t.Helper()
	s, err := Open(t.Context(), b.address, b.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// onBoth runs a part of the contract on every backend.
func onBoth(t *testing.T, test func(t *testing.T, b backend)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, backend{address: filepath.Join(t.TempDir(), "a [#1? store%20.db")})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, backend{address: postgresAddress(t), options: Options{Spool: t.TempDir()}})
	})
}

var (
	noon  = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	later = noon.Add(time.Hour)
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

// started is a store with run "r", three participants, and round 1 open for 0 and 2.
func started(t *testing.T, b backend) Store {
	t.Helper()
	s := b.open(t)
	check(t, s.CreateRun(t.Context(), Run{ID: "r", File: []byte("name: r\n"), SHA256: "aa", Created: noon}))
	for i, name := range []string{"north", "south", "west"} {
		_, err := s.AddParticipant(t.Context(), "r", name, i)
		check(t, err)
	}
	check(t, s.OpenRound(t.Context(), Round{Run: "r", Number: 1, Clients: []int{0, 2}, Sampler: []byte("drawn"), Deadline: later, Opened: noon}))
	return s
}

func updateOf(participant int, content []byte) Update {
	return Update{Run: "r", Round: 1, Participant: participant, SHA256: sha256.Sum256(content), Size: int64(len(content)), At: noon}
}

// send uploads content in pieces, with a receipt or none.
func send(ctx context.Context, s Store, u Update, content []byte, r *Receipt) (repeated bool, err error) {
	up, err := s.Upload(ctx, u)
	if err != nil {
		return false, err
	}
	defer up.Close()
	for rest := content[min(up.Offset(), int64(len(content))):]; len(rest) > 0; {
		n := min(len(rest), 1000)
		if _, err := up.Write(rest[:n]); err != nil {
			return false, err
		}
		rest = rest[n:]
	}
	return up.Commit(ctx, r)
}

func TestRunsAndParticipants(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		s, ctx := b.open(t), t.Context()
		run := Run{ID: "r/1 'x'", File: []byte("a: 1\n"), SHA256: "aa", Created: noon}
		check(t, s.CreateRun(ctx, run))
		check(t, s.CreateRun(ctx, run))
		other := run
		other.File = []byte("a: 2\n")
		wantError(t, s.CreateRun(ctx, other), ErrExists)
		check(t, s.SetRunStatus(ctx, run.ID, Finished, "all rounds made"))
		wantError(t, s.SetRunStatus(ctx, "no", Finished, ""), ErrNotFound)
		run.Status, run.Detail = Finished, "all rounds made"
		got, err := s.Run(ctx, run.ID)
		check(t, err)
		equal(t, got, run)
		_, err = s.Run(ctx, "no")
		wantError(t, err, ErrNotFound)
		all, err := s.Runs(ctx)
		check(t, err)
		equal(t, all, []Run{run})

		for _, c := range []struct {
			name  string
			index int
			want  int
			err   error
		}{
			{"b", 1, 1, nil}, {"a", -1, 0, nil}, {"c", -1, 2, nil}, {"b", -1, 1, nil}, {"b", 1, 1, nil},
			{"b", 0, 0, ErrExists}, {"d", 2, 0, ErrExists},
		} {
			p, err := s.AddParticipant(ctx, run.ID, c.name, c.index)
			wantError(t, err, c.err)
			if err == nil && p.Index != c.want {
				t.Errorf("%s has place %d, want %d", c.name, p.Index, c.want)
			}
		}
		_, err = s.AddParticipant(ctx, "no", "a", 0)
		wantError(t, err, ErrNotFound)
		check(t, s.Seen(ctx, run.ID, "c", noon))
		check(t, s.Seen(ctx, run.ID, "c", noon.Add(time.Second))) // too soon to be worth a write
		wantError(t, s.Seen(ctx, run.ID, "nobody", noon), ErrNotFound)
		people, err := s.Participants(ctx, run.ID)
		check(t, err)
		equal(t, people, []Participant{{run.ID, "a", 0, time.Time{}}, {run.ID, "b", 1, time.Time{}}, {run.ID, "c", 2, noon}})
	})
}

func TestRoundsAndStates(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		s, ctx := started(t, b), t.Context()
		wantError(t, s.OpenRound(ctx, Round{Run: "r", Number: 1}), ErrExists)
		wantError(t, s.OpenRound(ctx, Round{Run: "no", Number: 1}), ErrNotFound)
		if err := s.OpenRound(ctx, Round{Run: "r", Number: 2, Clients: []int{2, 0}}); err == nil {
			t.Error("clients out of order are taken")
		}
		_, _, err := s.LatestState(ctx, "r")
		wantError(t, err, ErrNotFound)

		first := Round{Run: "r", Number: 1, Clients: []int{0, 2}, Sampler: []byte("drawn"), Deadline: later, Opened: noon, Status: RoundOpen}
		got, err := s.LatestRound(ctx, "r")
		check(t, err)
		equal(t, got, first)

		big := bytes.Repeat([]byte("state "), 400_000) // more than two chunks
		check(t, s.CloseRound(ctx, "r", 1, big, later))
		wantError(t, s.CloseRound(ctx, "r", 1, []byte("another"), later), ErrRoundClosed)
		wantError(t, s.AbandonRound(ctx, "r", 1, "", later), ErrRoundClosed)
		wantError(t, s.CloseRound(ctx, "r", 9, big, later), ErrRoundClosed)
		number, state, err := s.LatestState(ctx, "r")
		check(t, err)
		if number != 1 || !bytes.Equal(state, big) {
			t.Errorf("the state of round %d has %d bytes", number, len(state))
		}
		check(t, s.OpenRound(ctx, Round{Run: "r", Number: 2, Clients: []int{1}}))
		check(t, s.AbandonRound(ctx, "r", 2, "1 of 2 answered", later))
		for n := 3; n <= 6; n++ {
			check(t, s.OpenRound(ctx, Round{Run: "r", Number: n}))
			check(t, s.CloseRound(ctx, "r", n, []byte{byte(n)}, later))
		}
		number, state, err = s.LatestState(ctx, "r")
		check(t, err)
		equal(t, number, 6)
		equal(t, state, []byte{6})
		all, err := s.Rounds(ctx, "r")
		check(t, err)
		first.Status, first.Ended = RoundClosed, later
		equal(t, all[0], first)
		equal(t, all[1], Round{Run: "r", Number: 2, Clients: []int{1}, Status: RoundAbandoned, Ended: later, Reason: "1 of 2 answered"})
		equal(t, len(all), 6)

		// All of it is there for the next server.
		check(t, s.Close())
		s = b.open(t)
		number, state, err = s.LatestState(ctx, "r")
		check(t, err)
		equal(t, number, 6)
		equal(t, state, []byte{6})
	})
}

func TestOneServerHoldsTheStore(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		s, ctx := started(t, b), t.Context()
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		if second, err := Open(short, b.address, b.options); err == nil {
			second.Close()
			t.Fatal("a second server gets in")
		} else if !errors.Is(err, ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		check(t, s.Ping(ctx))
		if !s.(*sqlStore).postgres {
			return
		}
		b.options.TakeOver = true
		second := b.open(t)
		wantError(t, s.Ping(ctx), ErrSuperseded)
		wantError(t, s.AbandonRound(ctx, "r", 1, "", later), ErrSuperseded)
		check(t, second.AbandonRound(ctx, "r", 1, "", later))
	})
}
