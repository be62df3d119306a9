package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// crowd is a store with round 1 open for so many.
func crowd(t *testing.T, b backend, people int) *sqlStore {
	t.Helper()
	s := b.open(t)
	check(t, s.CreateRun(t.Context(), Run{ID: "r"}))
	clients := make([]int, people)
	for i := range clients {
		clients[i] = i
	}
	check(t, s.OpenRound(t.Context(), Round{Run: "r", Number: 1, Clients: clients}))
	return s.(*sqlStore)
}

func smallOf(i int) []byte { return fmt.Appendf(nil, "the release of %d", i) }

func receiptOf(i int, counter uint64) *Receipt {
	return &Receipt{Run: "r", Round: 1, Participant: fmt.Sprintf("p%03d", i), Counter: counter, Signed: []byte("{}")}
}

// together has all calls wait in the queue before the first of them is recorded.
func together(t *testing.T, s *sqlStore, calls ...func()) {
	t.Helper()
	s.queue.mu.Lock()
	s.queue.working = true // somebody else takes groups: nobody, until all are there
	s.queue.mu.Unlock()
	var all sync.WaitGroup
	for _, call := range calls {
		all.Go(call)
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		s.queue.mu.Lock()
		n := len(s.queue.waiting)
		s.queue.mu.Unlock()
		if n == len(calls) {
			break
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("%d of %d wait", n, len(calls))
		}
	}
	s.recordAll()
	all.Wait()
}

// commits counts the transactions in an SQLite store's write-ahead log: a frame of a page
// that ends one has the size of the database in its head.
func commits(t *testing.T, path string) (n int) {
	t.Helper()
	log, err := os.ReadFile(path + "-wal")
	check(t, err)
	page := int(binary.BigEndian.Uint32(log[8:]))
	for at := 32; at+24 <= len(log); at += 24 + page {
		if binary.BigEndian.Uint32(log[at+4:]) != 0 {
			n++
		}
	}
	return n
}

// TestUpdatesAreRecordedTogether: hundreds that wait are in the store with their bytes and
// receipts, in the order of participants, also when it is opened again.
func TestUpdatesAreRecordedTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		const people = 300
		s, ctx := crowd(t, b, people), t.Context()
		var calls []func()
		for i := range people {
			calls = append(calls, func() {
				content := smallOf(i)
				if repeated, err := s.Accept(ctx, updateOf(i, content), content, receiptOf(i, 5)); err != nil || repeated {
					t.Errorf("%d: repeated %v, %v", i, repeated, err)
				}
			})
		}
		together(t, s, calls...)
		check(t, s.Close())
		again := b.open(t)
		answers, err := again.Answers(ctx, "r", 1)
		check(t, err)
		receipts, err := again.Receipts(ctx, "r")
		check(t, err)
		equal(t, len(receipts), people)
		read := 0
		for after := -1; ; {
			page, err := again.SmallUpdates(ctx, "r", 1, after, 64)
			check(t, err)
			for _, u := range page {
				equal(t, u.Participant, read)
				equal(t, string(u.Bytes), string(smallOf(read)))
				a := answers[read]
				equal(t, a, Answer{Participant: read, Kind: Released, SHA256: sha256.Sum256(u.Bytes), Size: int64(len(u.Bytes)), At: noon})
				equal(t, receipts[read].Participant, receiptOf(read, 5).Participant)
				after = read
				read++
			}
			if len(page) < 64 {
				break
			}
		}
		equal(t, read, people)
		check(t, again.CloseRound(ctx, "r", 1, nil, later))
		left, err := again.SmallUpdates(ctx, "r", 1, -1, 64)
		check(t, err)
		equal(t, len(left), 0)
		repeated, err := again.Accept(ctx, updateOf(7, smallOf(7)), smallOf(7), receiptOf(7, 5))
		check(t, err) // acknowledged after the round, too
		equal(t, repeated, true)
	})
}

// TestOneOfAGroupHarmsNobody: in a group are those that are refused for every reason there
// is, one that the database itself refuses, and honest ones. Everybody gets its own word,
// and the honest are recorded.
func TestOneOfAGroupHarmsNobody(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		s, ctx := crowd(t, b, 100), t.Context()
		accept := func(i int, content []byte, counter uint64) (bool, error) {
			return s.Accept(ctx, updateOf(i, content), content, receiptOf(i, counter))
		}
		_, err := accept(1, smallOf(1), 1)
		check(t, err)
		_, err = accept(2, smallOf(2), 1)
		check(t, err)
		check(t, s.Decline(ctx, "r", 1, 3, "budget", noon))
		// A receipt for a release that was never recorded: the database keeps one a slot.
		_, err = s.db.ExecContext(ctx, insertReceipts+places(1, 1, 6), receiptArgs(*receiptOf(5, 1))...)
		check(t, err)
		before := receiptOf(6, 9)
		before.Run, before.Round = "older", 1
		check(t, s.CreateRun(ctx, Run{ID: "older"}))
		check(t, s.OpenRound(ctx, Round{Run: "older", Number: 1}))
		_, err = s.db.ExecContext(ctx, insertReceipts+places(1, 1, 6), receiptArgs(*before)...)
		check(t, err)

		odd := map[int]struct {
			content  []byte
			counter  uint64
			want     error
			repeated bool
		}{
			1:   {content: smallOf(1), counter: 1, repeated: true},
			2:   {content: []byte("something else"), counter: 2, want: ErrEquivocation},
			3:   {content: smallOf(3), counter: 1, want: ErrAnswered},
			4:   {content: smallOf(4), counter: 0, want: ErrReceiptOrder},
			5:   {content: smallOf(5), counter: 2, want: errAny},
			6:   {content: smallOf(6), counter: 9, want: ErrReceiptOrder},
			200: {content: smallOf(200), counter: 1, want: ErrNotAssigned},
		}
		var calls []func()
		for i, c := range odd {
			calls = append(calls, func() {
				repeated, err := accept(i, c.content, c.counter)
				if repeated != c.repeated || !errors.Is(err, c.want) && (c.want != errAny || err == nil) {
					t.Errorf("%d: repeated %v, %v; want %v", i, repeated, err, c.want)
				}
			})
		}
		for i := range 100 {
			if _, is := odd[i]; is || i < 1 {
				continue
			}
			calls = append(calls, func() {
				if _, err := accept(i, smallOf(i), 1); err != nil {
					t.Errorf("%d: %v", i, err)
				}
			})
		}
		together(t, s, calls...)
		answers, err := s.Answers(ctx, "r", 1)
		check(t, err)
		for i, a := range answers {
			c, is := odd[i]
			wanted := i > 0 && (!is || i == 1 || i == 2)
			if (a.Kind == Released) != wanted {
				t.Errorf("%d is %s", i, a.Kind)
			}
			if !wanted {
				continue
			}
			content := smallOf(i)
			if is && c.want == nil {
				content = c.content
			}
			blob, err := s.OpenUpdate(ctx, "r", 1, i)
			check(t, err)
			read, err := io.ReadAll(blob)
			check(t, err)
			equal(t, string(read), string(content))
			_, err = s.Receipt(ctx, "r", 1, receiptOf(i, 1).Participant)
			check(t, err)
		}
		found, err := s.Equivocations(ctx, "r")
		check(t, err)
		equal(t, len(found), 1)
		// What failed may try again: nothing of it was recorded, and nothing is remembered.
		_, err = accept(4, smallOf(4), 1)
		check(t, err)
		_, err = accept(6, smallOf(6), 10)
		check(t, err)
	})
}

var errAny = errors.New("any")

// TestSmallUpdatesThatAreRefused before they wait for anything.
func TestSmallUpdatesThatAreRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		s, ctx := started(t, b), t.Context()
		content, large := []byte("bytes"), bytes.Repeat([]byte{1}, SmallBytes+1)
		gone, cancel := context.WithCancel(ctx)
		cancel()
		other := receiptOf(0, 1)
		other.Round = 2
		for name, c := range map[string]struct {
			ctx     context.Context
			update  Update
			content []byte
			receipt *Receipt
			want    error
		}{
			"too large":       {ctx, updateOf(0, large), large, nil, ErrMismatch},
			"other bytes":     {ctx, updateOf(0, content), []byte("bitte"), nil, ErrMismatch},
			"fewer":           {ctx, updateOf(0, content), content[:2], nil, ErrMismatch},
			"nobody asks":     {gone, updateOf(0, content), content, nil, context.Canceled},
			"another's round": {ctx, updateOf(0, content), content, other, errAny},
			"no such round":   {ctx, Update{Run: "no", SHA256: sha256.Sum256(nil)}, nil, nil, ErrRoundClosed},
		} {
			if _, err := s.Accept(c.ctx, c.update, c.content, c.receipt); !errors.Is(err, c.want) && (c.want != errAny || err == nil) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
		answers, err := s.Answers(ctx, "r", 1)
		check(t, err)
		equal(t, answers[0].Kind, Waiting)
		exactly := large[:SmallBytes]
		_, err = s.Accept(ctx, updateOf(0, exactly), exactly, nil)
		check(t, err)
		_, err = s.Accept(ctx, updateOf(2, nil), nil, nil) // a method may have nothing to send
		check(t, err)
		blob, err := s.OpenUpdate(ctx, "r", 1, 2)
		check(t, err)
		n, err := blob.ReadAt(nil, 0)
		check(t, err)
		equal(t, int64(n), blob.Size())
		check(t, s.CloseRound(ctx, "r", 1, nil, later))
		check(t, s.OpenRound(ctx, Round{Run: "r", Number: 2, Clients: []int{0}}))
		check(t, s.CloseRound(ctx, "r", 2, nil, later))
		late := updateOf(0, content)
		late.Round = 2
		_, err = s.Accept(ctx, late, content, nil)
		wantError(t, err, ErrRoundClosed)
	})
}

// TestCountersOfBothWays: receipts rise over large and small updates, whichever was last.
func TestCountersOfBothWays(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		s, ctx := b.open(t), t.Context()
		check(t, s.CreateRun(ctx, Run{ID: "r"}))
		content := []byte("bytes")
		round := func(n int) Update {
			check(t, s.OpenRound(ctx, Round{Run: "r", Number: n, Clients: []int{0}}))
			u := updateOf(0, content)
			u.Round = n
			return u
		}
		receipt := func(n int, counter uint64) *Receipt {
			return &Receipt{Run: "r", Round: n, Participant: "north", Counter: counter}
		}
		u := round(1)
		_, err := s.Accept(ctx, u, content, receipt(1, 3))
		check(t, err)
		u = round(2)
		_, err = send(ctx, s, u, content, receipt(2, 3))
		wantError(t, err, ErrReceiptOrder)
		_, err = send(ctx, s, u, content, receipt(2, 7))
		check(t, err)
		u = round(3)
		_, err = s.Accept(ctx, u, content, receipt(3, 5))
		wantError(t, err, ErrReceiptOrder)
		check(t, s.Close())
		s = b.open(t)
		_, err = s.Accept(ctx, u, content, receipt(3, 7))
		wantError(t, err, ErrReceiptOrder)
		_, err = s.Accept(ctx, u, content, receipt(3, 8))
		check(t, err)
	})
}

// TestOlderStoreIsBroughtUpToDate: a store of before small updates, with a round open and a
// small release in a file, goes on; and it can be copied by this release while one of
// before serves it.
func TestOlderStoreIsBroughtUpToDate(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		s, ctx := started(t, b), t.Context()
		content := []byte("some bytes")
		_, err := send(ctx, s, updateOf(0, content), content, nil)
		check(t, err)
		db := s.(*sqlStore).db
		for _, back := range []string{"DROP TABLE small", "DELETE FROM goose_db_version WHERE version_id = 2"} {
			_, err := db.ExecContext(ctx, back)
			check(t, err)
		}
		if !s.(*sqlStore).postgres {
			c, err := CopySQLite(ctx, b.address, filepath.Join(t.TempDir(), "copy"))
			check(t, err)
			equal(t, len(c.Contents), 1)
			check(t, laidOut(t, c).Close())
		}
		check(t, s.Close())
		s = b.open(t)
		_, err = s.Accept(ctx, updateOf(2, []byte("later")), []byte("later"), nil)
		check(t, err)
		for i, want := range map[int]string{0: "some bytes", 2: "later"} {
			blob, err := s.OpenUpdate(ctx, "r", 1, i)
			check(t, err)
			got, err := io.ReadAll(blob)
			check(t, errors.Join(err, blob.Close()))
			equal(t, string(got), want)
		}
		if !s.(*sqlStore).postgres {
			c, err := CopySQLite(ctx, b.address, filepath.Join(t.TempDir(), "copy"))
			check(t, err)
			equal(t, len(c.Contents), 1) // the other one lies in the database
			copied := laidOut(t, c)
			small, err := copied.SmallUpdates(ctx, "r", 1, -1, 10)
			check(t, err)
			equal(t, small, []Small{{2, []byte("later")}})
			check(t, copied.Close())
		}
		check(t, s.CloseRound(ctx, "r", 1, []byte("after"), later))
	})
}

// TestDamagedSmallUpdates: bytes that changed in the database are not taken for what was
// recorded, and a copy of them is refused.
func TestDamagedSmallUpdates(t *testing.T) {
	b := backend{address: filepath.Join(t.TempDir(), "store.db")}
	s, ctx := started(t, b), t.Context()
	content := []byte("some bytes")
	_, err := s.Accept(ctx, updateOf(0, content), content, nil)
	check(t, err)
	for _, other := range []string{"some", "same bytes"} {
		_, err := s.(*sqlStore).db.ExecContext(ctx, "UPDATE small SET bytes = $1", []byte(other))
		check(t, err)
		_, err = CopySQLite(ctx, b.address, filepath.Join(t.TempDir(), "copy"))
		wantError(t, err, ErrDamaged)
	}
	_, err = s.(*sqlStore).db.ExecContext(ctx, "UPDATE small SET bytes = $1", []byte("some"))
	check(t, err)
	_, err = s.OpenUpdate(ctx, "r", 1, 0)
	wantError(t, err, ErrDamaged)
}

// TestAGroupFailsWhole: when the store cannot be written at all, everybody in a group is
// told so, and nothing is recorded; when it can again, everything is.
func TestAGroupFailsWhole(t *testing.T) {
	b := backend{address: filepath.Join(t.TempDir(), "store.db")}
	s, ctx := crowd(t, b, 20), t.Context()
	_, err := s.db.ExecContext(ctx, "PRAGMA query_only = 1")
	check(t, err)
	send := func(refused bool) {
		var calls []func()
		for i := range 20 {
			calls = append(calls, func() {
				if _, err := s.Accept(ctx, updateOf(i, smallOf(i)), smallOf(i), receiptOf(i, 1)); (err != nil) != refused {
					t.Errorf("%d: %v", i, err)
				}
			})
		}
		together(t, s, calls...)
	}
	send(true)
	_, err = s.db.ExecContext(ctx, "PRAGMA query_only = 0")
	check(t, err)
	answers, err := s.Answers(ctx, "r", 1)
	check(t, err)
	for _, a := range answers {
		equal(t, a.Kind, Waiting)
	}
	send(false)
	receipts, err := s.Receipts(ctx, "r")
	check(t, err)
	equal(t, len(receipts), 20)
}

// TestOneSyncForManyUpdates: what a group costs the disk does not grow with its size.
func TestOneSyncForManyUpdates(t *testing.T) {
	b := backend{address: filepath.Join(t.TempDir(), "store.db")}
	s, ctx := crowd(t, b, 200), t.Context()
	var calls []func()
	for i := range 200 {
		calls = append(calls, func() {
			if _, err := s.Accept(ctx, updateOf(i, smallOf(i)), smallOf(i), nil); err != nil {
				t.Error(err)
			}
		})
	}
	before := commits(t, b.address)
	together(t, s, calls...)
	if made := commits(t, b.address) - before; made != 1 {
		t.Errorf("200 updates took %d transactions", made)
	}
}

// TestNobodyIsAnsweredBeforeTheCommit: while a group is being committed nobody in it is
// answered; if that fails everybody is told so; and if only the word of it was lost,
// everybody hears that it is recorded.
func TestNobodyIsAnsweredBeforeTheCommit(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		const people = 30
		s, ctx := crowd(t, b, people), t.Context()
		var answered atomic.Int64
		send := func(check func(i int, repeated bool, err error)) {
			var calls []func()
			for i := range people {
				calls = append(calls, func() {
					repeated, err := s.Accept(ctx, updateOf(i, smallOf(i)), smallOf(i), receiptOf(i, 1))
					answered.Add(1)
					check(i, repeated, err)
				})
			}
			together(t, s, calls...)
		}
		errLost := errors.New("lost")
		early := func() {
			time.Sleep(20 * time.Millisecond) // time enough to be answered too early in
			if n := answered.Load(); n > 0 {
				t.Errorf("%d are answered before the commit", n)
			}
		}
		first := true
		s.commit = func(tx *sql.Tx) error {
			if first {
				early()
				first = false
			}
			return errors.Join(tx.Rollback(), errLost)
		}
		send(func(i int, repeated bool, err error) {
			if !errors.Is(err, errLost) || repeated {
				t.Errorf("%d, not committed: %v, %v", i, repeated, err)
			}
		})
		answers, err := s.Answers(ctx, "r", 1)
		check(t, err)
		for _, a := range answers {
			equal(t, a.Kind, Waiting)
		}
		answered.Store(0)
		tries := 0
		s.commit = func(tx *sql.Tx) error {
			if tries++; tries > 1 {
				return tx.Commit()
			}
			early()
			return errors.Join(tx.Commit(), errLost)
		}
		send(func(i int, repeated bool, err error) {
			if err != nil || !repeated {
				t.Errorf("%d, of which the word was lost: %v, %v", i, repeated, err)
			}
		})
		receipts, err := s.Receipts(ctx, "r")
		check(t, err)
		equal(t, len(receipts), people)
	})
}
