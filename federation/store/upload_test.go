package store

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"testing"
	"time"
)

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
		if left := spooled(t, s, "updates-*/*"); len(left) > 0 {
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
		equal(t, found, []Equivocation{{"r", 1, 0, sha256.Sum256(others), int64(len(others)), noon, 0}})
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
						time.Sleep(time.Millisecond) // as a client backs off
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

// TestEquivocationsAreKeptUpToANumber: a participant that sends other bytes without end
// fills no disk, and hides nobody else's.
func TestEquivocationsAreKeptUpToANumber(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		s, ctx := started(t, b), t.Context()
		for _, participant := range []int{0, 2} {
			_, err := send(ctx, s, updateOf(participant, []byte("bytes")), []byte("bytes"), nil)
			check(t, err)
		}
		for i := range 3 * MostEquivocations {
			_, err := s.Upload(ctx, updateOf(0, []byte{byte(i)}))
			wantError(t, err, ErrEquivocation)
		}
		_, err := s.Upload(ctx, updateOf(2, []byte("others")))
		wantError(t, err, ErrEquivocation)
		found, err := s.Equivocations(ctx, "r")
		check(t, err)
		equal(t, len(found), MostEquivocations+1)
		kept, further := map[int]int{}, map[int]int{}
		for _, e := range found {
			kept[e.Participant]++
			further[e.Participant] += e.Further
		}
		equal(t, kept, map[int]int{0: MostEquivocations, 2: 1})
		equal(t, further, map[int]int{0: 2 * MostEquivocations, 2: 0})
	})
}
