package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Small updates that come at once are recorded together: one transaction, one sync of
// the disk. While one group is being made durable the next one gathers. Nobody is
// answered before its group is durable; what is wrong with one of a group is no harm to
// the others.

// mostTogether is how many updates one transaction records.
const mostTogether = 256

// recordTime is how long a transaction may take: a database that does not answer at all
// must not keep everybody waiting for ever.
const recordTime = time.Minute

// acceptance is one small update that waits to be recorded.
type acceptance struct {
	update  Update
	content []byte
	receipt *Receipt
	done    chan struct{} // closed when verdict and err say what became of it
	verdict verdict
	err     error
}

// queue is who waits.
type queue struct {
	mu      sync.Mutex
	waiting []*acceptance
	working bool // somebody takes groups
}

// add says whether somebody has to begin to take groups.
func (q *queue) add(a *acceptance) (begin bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, a)
	begin = !q.working
	q.working = true
	return begin
}

// take is the next group: updates of one round, one of a participant. When nobody waits
// it is empty, and whoever asked is done.
func (q *queue) take() (group []*acceptance) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var rest []*acceptance
	in := map[int]bool{}
	for _, a := range q.waiting {
		if len(group) == mostTogether || in[a.update.Participant] ||
			len(group) > 0 && (a.update.Run != group[0].update.Run || a.update.Round != group[0].update.Round) {
			rest = append(rest, a)
			continue
		}
		in[a.update.Participant] = true
		group = append(group, a)
	}
	q.waiting = rest
	q.working = len(group) > 0
	return group
}

// recordAll records groups until nobody waits.
func (s *sqlStore) recordAll() {
	for {
		group := s.queue.take()
		if len(group) == 0 {
			return
		}
		s.recordGroup(group)
	}
}

// recordGroup records a group and answers everybody in it. If the transaction fails once
// it has begun, one of them may be the cause: then each has one of its own.
func (s *sqlStore) recordGroup(group []*acceptance) {
	begun, err := s.record(group)
	if err == nil || !begun || len(group) == 1 {
		answer(group, err)
		return
	}
	for i := range group {
		begun, err := s.record(group[i : i+1])
		if err != nil && !begun {
			answer(group[i:], err)
			return
		}
		answer(group[i:i+1], err)
	}
}

// answer ends the waiting of a group. An error is everybody's who has none.
func answer(group []*acceptance, err error) {
	for _, a := range group {
		if a.err == nil {
			a.err = err
		}
		if a.err == nil && a.verdict == equivocation {
			a.err = ErrEquivocation
		}
		if a.err != nil {
			a.err = fmt.Errorf("%v: %w", a.update, a.err)
		}
		close(a.done)
	}
}

// record is one transaction for a group. An error is the transaction's: nothing of it is
// recorded, unless the connection broke just when it was. Refusals are in the group.
func (s *sqlStore) record(group []*acceptance) (begun bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), recordTime)
	defer cancel()
	first := group[0].update
	var todo []*acceptance
	err = s.change(ctx, fmt.Sprintf("record %d updates of round %d of run %s", len(group), first.Round, first.Run), func(tx *sql.Tx) (err error) {
		begun = true
		if todo, err = s.judgeGroup(ctx, tx, group); err != nil {
			return err
		}
		if s.postgres {
			return writeWhole(ctx, tx, todo)
		}
		for part := range pieces(todo) {
			if err := s.write(ctx, tx, part); err != nil {
				return err
			}
		}
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range todo {
		switch {
		case a.receipt == nil:
		case err == nil:
			s.counters[a.receipt.Participant] = a.receipt.Counter
		default: // it may have been recorded all the same
			delete(s.counters, a.receipt.Participant)
		}
	}
	return begun, err
}

// judgeGroup says of everybody in a group what its update is, and returns those that are
// to be recorded.
func (s *sqlStore) judgeGroup(ctx context.Context, tx *sql.Tx, group []*acceptance) (todo []*acceptance, err error) {
	run, round := group[0].update.Run, group[0].update.Round
	status, err := s.roundStatus(ctx, tx, run, round)
	if err != nil && !errors.Is(err, ErrRoundClosed) {
		return nil, err
	}
	if err != nil {
		for _, a := range group {
			a.verdict, a.err = 0, err
		}
		return nil, nil
	}
	found, err := s.answersOf(ctx, tx, group)
	if err != nil {
		return nil, err
	}
	counters := map[string]uint64{}
	for _, a := range group {
		was, assigned := found[a.update.Participant]
		if a.verdict, a.err = judged(status, was, assigned, a.update); a.err != nil {
			continue
		}
		switch a.verdict {
		case equivocation:
			err = s.addEquivocation(ctx, tx, a.update)
		case fresh:
			if a.receipt != nil {
				a.err, err = s.checkCounter(ctx, tx, counters, *a.receipt)
			}
			if err == nil && a.err == nil {
				todo = append(todo, a)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return todo, nil
}

// answersOf locks and reads the assignments of a group.
func (s *sqlStore) answersOf(ctx context.Context, tx *sql.Tx, group []*acceptance) (map[int]Answer, error) {
	found := make(map[int]Answer, len(group))
	if s.postgres {
		all, err := list(ctx, tx, func(r *sql.Rows) (Answer, error) { return scanAnswer(r) },
			answerColumns+" AND participant = ANY($3::bigint[])"+s.update(), group[0].update.Run, group[0].update.Round, column(group, func(a *acceptance) int64 { return int64(a.update.Participant) }))
		for _, a := range all {
			found[a.Participant] = a
		}
		return found, err
	}
	for part := range pieces(group) {
		args := []any{part[0].update.Run, part[0].update.Round}
		for _, a := range part {
			args = append(args, a.update.Participant)
		}
		some, err := list(ctx, tx, func(r *sql.Rows) (Answer, error) { return scanAnswer(r) },
			answerColumns+" AND participant IN "+places(3, 1, len(part))+s.update(), args...)
		if err != nil {
			return nil, err
		}
		for _, a := range some {
			found[a.Participant] = a
		}
	}
	return found, nil
}

// checkCounter refuses a receipt that does not follow the participant's latest one. Nobody
// else writes receipts while this server holds the store, so that what was read or written
// once need not be read again. The second error is the database's.
func (s *sqlStore) checkCounter(ctx context.Context, tx *sql.Tx, inGroup map[string]uint64, r Receipt) (refusal, err error) {
	last, known := inGroup[r.Participant]
	if !known {
		s.mu.Lock()
		last, known = s.counters[r.Participant]
		s.mu.Unlock()
	}
	if !known {
		if last, err = latestCounter(ctx, tx, r.Participant); err != nil {
			return nil, err
		}
	}
	if refusal := follows(r, last); refusal != nil {
		return refusal, nil
	}
	inGroup[r.Participant] = r.Counter
	return nil, nil
}

// write records updates, their bytes and their receipts.
func (s *sqlStore) write(ctx context.Context, tx *sql.Tx, group []*acceptance) error {
	var contents, releases, receipts []any
	signed := 0
	for _, a := range group {
		u := a.update
		contents = append(contents, u.Run, u.Round, u.Participant, a.content)
		releases = append(releases, u.Run, u.Round, u.Participant, string(Released), u.SHA256[:], u.Size, "", fromTime(u.At))
		if r := a.receipt; r != nil {
			receipts = append(receipts, receiptArgs(*r)...)
			signed++
		}
	}
	if err := s.known.exec(ctx, tx, insertSmall(len(group)), contents...); err != nil {
		return err
	}
	if err := s.known.exec(ctx, tx, insertReleases(len(group)), releases...); err != nil {
		return err
	}
	if signed == 0 {
		return nil
	}
	return s.known.exec(ctx, tx, insertReceipts+places(1, signed, 6), receipts...)
}

func insertSmall(n int) string {
	return "INSERT INTO small (run, round, participant, bytes) VALUES " + places(1, n, 4)
}

func insertReleases(n int) string {
	return "INSERT INTO assignments (run, round, participant, kind, sha256, size, reason, at) VALUES " + places(1, n, 8) +
		" ON CONFLICT (run, round, participant) DO UPDATE SET kind = excluded.kind, sha256 = excluded.sha256, size = excluded.size, at = excluded.at"
}

// statements are those that every group needs, read once: to read one of 64 rows costs
// SQLite as much as to follow it. PostgreSQL's driver has some of its own.
type statements map[string]*sql.Stmt

// know reads the statements.
func (k statements) know(ctx context.Context, db *sql.DB) error {
	for _, n := range pieceSizes {
		for _, text := range []string{insertSmall(n), insertReleases(n), insertReceipts + places(1, n, 6)} {
			st, err := db.PrepareContext(ctx, text)
			if err != nil {
				return err
			}
			k[text] = st
		}
	}
	return nil
}

func (k statements) exec(ctx context.Context, tx *sql.Tx, text string, args ...any) (err error) {
	if st := k[text]; st != nil {
		_, err = tx.StmtContext(ctx, st).ExecContext(ctx, args...)
		return err
	}
	_, err = tx.ExecContext(ctx, text, args...)
	return err
}

// pieceSizes are the lengths that pieces have.
var pieceSizes = []int{64, 16, 4, 1}

// pieces cuts a list into parts of few different lengths, so that there are few different
// statements: databases keep those that they know.
func pieces[T any](all []T) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		for len(all) > 0 {
			n := pieceSizes[slices.IndexFunc(pieceSizes, func(n int) bool { return n <= len(all) })]
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// places are parameters from a number on: "($1, $2), ($3, $4)" for 2 rows of 2.
func places(from, rows, columns int) string {
	var b strings.Builder
	for i := range rows * columns {
		switch {
		case i == 0:
			b.WriteString("(")
		case i%columns == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", from+i)
	}
	b.WriteString(")")
	return b.String()
}
