package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
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
		test(t, backend{address: filepath.Join(t.TempDir(), "a #1? store%20.db")})
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

func TestUploads(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		s, ctx := started(t, b), t.Context()
		content := bytes.Repeat([]byte("noised "), 200_000)
		u := updateOf(0, content)
		receipt := &Receipt{Run: "r", Round: 1, Participant: "north", Counter: 3, Head: [32]byte{1}, Signed: []byte("{}")}

		// A connection that breaks, one that goes on, and the server's restart between.
		up, err := s.Upload(ctx, u)
		check(t, err)
		_, err = up.Write(content[:500_000])
		check(t, err)
		_, err = s.Upload(ctx, u)
		wantError(t, err, ErrBusy)
		_, err = up.Commit(ctx, receipt)
		wantError(t, err, ErrMismatch)
		check(t, up.Close())
		check(t, s.Close())
		s = b.open(t)
		up, err = s.Upload(ctx, u)
		check(t, err)
		equal(t, up.Offset(), int64(500_000))
		_, err = up.Write(content[500_000:])
		check(t, err)
		_, err = up.Write([]byte{0})
		wantError(t, err, ErrMismatch)
		repeated, err := up.Commit(ctx, receipt)
		check(t, err)
		equal(t, repeated, false)
		check(t, up.Close())

		repeated, err = send(ctx, s, u, content, receipt)
		check(t, err)
		equal(t, repeated, true)
		got, err := s.LatestReceipt(ctx, "north")
		check(t, err)
		equal(t, got, *receipt)
		got, err = s.Receipt(ctx, "r", 1, "north")
		check(t, err)
		equal(t, got, *receipt)
		_, err = s.Receipt(ctx, "r", 1, "west")
		wantError(t, err, ErrNotFound)

		blob, err := s.OpenUpdate(ctx, "r", 1, 0)
		check(t, err)
		read, err := io.ReadAll(blob)
		check(t, err)
		piece := make([]byte, 100)
		_, err = blob.ReadAt(piece, chunkBytes-50)
		check(t, err)
		if !bytes.Equal(read, content) || !bytes.Equal(piece, content[chunkBytes-50:chunkBytes+50]) || blob.Size() != u.Size {
			t.Error("other bytes come back")
		}
		if n, err := blob.ReadAt(piece, u.Size-10); n != 10 || err != io.EOF {
			t.Errorf("at the end: %d, %v", n, err)
		}
		check(t, blob.Close())
		_, err = s.OpenUpdate(ctx, "r", 1, 2)
		wantError(t, err, ErrNotFound)

		// After the round, a repetition is still acknowledged.
		check(t, s.CloseRound(ctx, "r", 1, []byte("after"), later))
		repeated, err = send(ctx, s, u, content, receipt)
		check(t, err)
		equal(t, repeated, true)
		_, err = send(ctx, s, updateOf(2, content), content, nil)
		wantError(t, err, ErrRoundClosed)
		_, err = s.OpenUpdate(ctx, "r", 1, 0)
		wantError(t, err, ErrRoundClosed)
		if left, _ := filepath.Glob(filepath.Join(s.(*sqlStore).options.Spool, "*", "updates-*", "*")); len(left) > 0 {
			t.Errorf("left in the spool: %v", left)
		}
	})
}

func TestUploadsThatAreRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		s, ctx := started(t, b), t.Context()
		content, others := []byte("some bytes"), []byte("somewhat different")
		stale := updateOf(0, content)
		stale.Round = 7
		for name, c := range map[string]struct {
			update Update
			want   error
		}{
			"foreign":            {updateOf(1, content), ErrNotAssigned},
			"nobody's":           {updateOf(99, content), ErrNotAssigned},
			"stale":              {stale, ErrRoundClosed},
			"of another run":     {Update{Run: "no", Round: 1}, ErrRoundClosed},
			"of a negative size": {Update{Run: "r", Round: 1, Size: -1}, ErrMismatch},
		} {
			if _, err := send(ctx, s, c.update, content, nil); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}

		// Announced bytes that do not come are forgotten, and the slot stays free.
		lie := updateOf(0, content)
		_, err := send(ctx, s, lie, []byte("s0me bytes"), nil)
		wantError(t, err, ErrMismatch)
		_, err = send(ctx, s, lie, content, nil)
		check(t, err)

		// Other bytes for the same slot: refused, and recorded once each.
		for range 2 {
			_, err = send(ctx, s, updateOf(0, others), others, nil)
			wantError(t, err, ErrEquivocation)
		}
		found, err := s.Equivocations(ctx, "r")
		check(t, err)
		equal(t, found, []Equivocation{{"r", 1, 0, sha256.Sum256(others), int64(len(others)), noon}})
		wantError(t, s.Decline(ctx, "r", 1, 0, "late", noon), ErrAnswered)

		check(t, s.Decline(ctx, "r", 1, 2, "budget", later))
		check(t, s.Decline(ctx, "r", 1, 2, "again", noon))
		wantError(t, s.Decline(ctx, "r", 1, 1, "", noon), ErrNotAssigned)
		_, err = send(ctx, s, updateOf(2, content), content, nil)
		wantError(t, err, ErrAnswered)
		answers, err := s.Answers(ctx, "r", 1)
		check(t, err)
		equal(t, answers, []Answer{
			{Participant: 0, Kind: Released, SHA256: sha256.Sum256(content), Size: int64(len(content)), At: noon},
			{Participant: 2, Kind: Declined, Reason: "budget", At: later},
		})
		check(t, s.AbandonRound(ctx, "r", 1, "few", later))
		answers, err = s.Answers(ctx, "r", 1)
		check(t, err)
		equal(t, answers[0].Kind, Released) // what was spent stays visible
	})
}

// TestReceiptsRise: a receipt that does not follow the latest one, over all runs,
// takes the update down with it.
func TestReceiptsRise(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		s, ctx := started(t, b), t.Context()
		content := []byte("bytes")
		receipt := Receipt{Run: "r", Round: 1, Participant: "north", Counter: 5, Signed: []byte("{}")}
		_, err := send(ctx, s, updateOf(0, content), content, &receipt)
		check(t, err)
		check(t, s.CloseRound(ctx, "r", 1, nil, later))
		check(t, s.CreateRun(ctx, Run{ID: "q", SHA256: "bb"}))
		check(t, s.OpenRound(ctx, Round{Run: "q", Number: 1, Clients: []int{0}}))
		u := updateOf(0, content)
		u.Run = "q"
		for _, counter := range []uint64{0, 4, 5, 1 << 63} {
			r := receipt
			r.Run, r.Counter = "q", counter
			_, err = send(ctx, s, u, content, &r)
			wantError(t, err, ErrReceiptOrder)
		}
		answers, err := s.Answers(ctx, "q", 1)
		check(t, err)
		equal(t, answers[0].Kind, Waiting)
		next := receipt
		next.Run, next.Counter = "q", 6
		_, err = send(ctx, s, u, content, &next)
		check(t, err)
		latest, err := s.LatestReceipt(ctx, "north")
		check(t, err)
		equal(t, latest, next)
		all, err := s.Receipts(ctx, "r")
		check(t, err)
		equal(t, all, []Receipt{receipt})
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

// TestManyAtOnce: concurrent uploads, repetitions and equivocations end with one
// accepted update a slot.
func TestManyAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		s, ctx := b.open(t), t.Context()
		check(t, s.CreateRun(ctx, Run{ID: "r"}))
		const people, tries = 12, 4
		clients := make([]int, people)
		for i := range clients {
			clients[i] = i
		}
		check(t, s.OpenRound(ctx, Round{Run: "r", Number: 1, Clients: clients}))
		type result struct {
			participant int
			repeated    bool
			err         error
		}
		results := make(chan result)
		for i := range people {
			for k := range tries {
				go func() {
					content := bytes.Repeat([]byte{byte(i), byte(k % 2)}, 5000) // two versions each
					for {
						repeated, err := send(ctx, s, updateOf(i, content), content, nil)
						if !errors.Is(err, ErrBusy) {
							results <- result{i, repeated, err}
							return
						}
					}
				}()
			}
		}
		accepted, refused := make([]int, people), 0
		for range people * tries {
			switch r := <-results; {
			case r.err == nil && !r.repeated:
				accepted[r.participant]++
			case r.err != nil && !errors.Is(r.err, ErrEquivocation):
				t.Error(r.err)
			case r.err != nil:
				refused++
			}
		}
		for i, n := range accepted {
			if n != 1 {
				t.Errorf("participant %d was accepted %d times", i, n)
			}
			blob, err := s.OpenUpdate(ctx, "r", 1, i)
			check(t, err)
			content, err := io.ReadAll(blob)
			check(t, err)
			answers, err := s.Answers(ctx, "r", 1)
			check(t, err)
			equal(t, sha256.Sum256(content), answers[i].SHA256)
			blob.Close()
		}
		equal(t, refused, people*tries/2)
		found, err := s.Equivocations(ctx, "r")
		check(t, err)
		equal(t, len(found), people)
	})
}
