package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// verdict is what an update is to its slot.
type verdict int

const (
	fresh verdict = iota
	repetition
	equivocation // recorded
)

// judge says how an update stands. A repetition is acknowledged even after the
// round: the first acknowledgement may have been lost.
func (s *sqlStore) judge(ctx context.Context, tx *sql.Tx, u Update) (verdict, error) {
	status, a, err := s.assignment(ctx, tx, u.slot())
	if err != nil {
		return 0, err
	}
	v, err := judged(status, a, true, u)
	if err == nil && v == equivocation {
		err = s.addEquivocation(ctx, tx, u)
	}
	return v, err
}

// judged holds an update against its slot.
func judged(status RoundStatus, a Answer, assigned bool, u Update) (verdict, error) {
	switch {
	case !assigned:
		return 0, ErrNotAssigned
	case a.Kind == Declined:
		return 0, fmt.Errorf("%w: it has declined", ErrAnswered)
	case a.Kind == Released && a.SHA256 == u.SHA256 && a.Size == u.Size:
		return repetition, nil
	case a.Kind == Released:
		return equivocation, nil
	case status != RoundOpen:
		return 0, fmt.Errorf("%w: it is %s", ErrRoundClosed, status)
	}
	return fresh, nil
}

// MostEquivocations is how many attempts of a participant to replace its updates are
// kept in a run. Some prove as much as many, and a disk is not filled with them.
const MostEquivocations = 16

// addEquivocation keeps one of a participant's first attempts, and counts the others.
func (s *sqlStore) addEquivocation(ctx context.Context, tx *sql.Tx, u Update) error {
	var kept int
	err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM equivocations WHERE run = $1 AND participant = $2", u.Run, u.Participant).Scan(&kept)
	if err != nil {
		return err
	}
	if kept >= MostEquivocations {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.further[slot{run: u.Run, participant: u.Participant}]++
		return nil
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO equivocations (run, round, participant, sha256, size, at)
		VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
		u.Run, u.Round, u.Participant, u.SHA256[:], u.Size, fromTime(u.At))
	return err
}

// assignment locks a slot and returns it with its round's status.
func (s *sqlStore) assignment(ctx context.Context, tx *sql.Tx, at slot) (status RoundStatus, a Answer, err error) {
	if status, err = s.roundStatus(ctx, tx, at.run, at.round); err != nil {
		return "", Answer{}, err
	}
	a, err = scanAnswer(tx.QueryRowContext(ctx, answerColumns+" AND participant = $3"+s.update(), at.run, at.round, at.participant))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotAssigned
	}
	return status, a, err
}

// roundStatus keeps a round from being ended, and says how it stands.
func (s *sqlStore) roundStatus(ctx context.Context, tx *sql.Tx, run string, number int) (status RoundStatus, err error) {
	err = tx.QueryRowContext(ctx, "SELECT status FROM rounds WHERE run = $1 AND number = $2"+s.share(), run, number).Scan(&status)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%w: there is no such round", ErrRoundClosed)
	}
	return status, err
}

// accept records an update, its bytes and its receipt.
func (s *sqlStore) accept(ctx context.Context, tx *sql.Tx, u Update, content io.ReaderAt, receipt *Receipt) error {
	if err := s.blobs.attach(ctx, tx, updateKey(u), content, u.Size); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "UPDATE assignments SET kind = 'released', sha256 = $4, size = $5, at = $6 WHERE run = $1 AND round = $2 AND participant = $3",
		u.Run, u.Round, u.Participant, u.SHA256[:], u.Size, fromTime(u.At))
	if err != nil || receipt == nil {
		return err
	}
	if receipt.Run != u.Run || receipt.Round != u.Round {
		return fmt.Errorf("the receipt is for round %d of run %s", receipt.Round, receipt.Run)
	}
	return s.addReceipt(ctx, tx, *receipt)
}

func (s *sqlStore) Decline(ctx context.Context, run string, round, participant int, reason string, at time.Time) error {
	what := fmt.Sprintf("participant %d declines round %d of run %s", participant, round, run)
	return s.change(ctx, what, func(tx *sql.Tx) error {
		status, a, err := s.assignment(ctx, tx, slot{run, round, participant})
		switch {
		case err != nil:
			return err
		case a.Kind == Declined:
			return nil
		case a.Kind == Released:
			return fmt.Errorf("%w: it has released", ErrAnswered)
		case status != RoundOpen:
			return fmt.Errorf("%w: it is %s", ErrRoundClosed, status)
		}
		_, err = tx.ExecContext(ctx, "UPDATE assignments SET kind = 'declined', reason = $4, at = $5 WHERE run = $1 AND round = $2 AND participant = $3",
			run, round, participant, reason, fromTime(at))
		return err
	})
}

const answerColumns = "SELECT participant, kind, sha256, size, reason, at FROM assignments WHERE run = $1 AND round = $2"

func scanAnswer(row scanner) (a Answer, err error) {
	var sum []byte
	var at int64
	err = row.Scan(&a.Participant, &a.Kind, &sum, &a.Size, &a.Reason, &at)
	a.SHA256, a.At = toSum(sum), toTime(at)
	return a, err
}

func (s *sqlStore) Answers(ctx context.Context, run string, round int) ([]Answer, error) {
	return list(ctx, s.db, func(r *sql.Rows) (Answer, error) { return scanAnswer(r) }, answerColumns+" ORDER BY participant", run, round)
}

func (s *sqlStore) Answer(ctx context.Context, run string, round, participant int) (Answer, error) {
	a, err := scanAnswer(s.db.QueryRowContext(ctx, answerColumns+" AND participant = $3", run, round, participant))
	return a, one(err, "%v", Update{Run: run, Round: round, Participant: participant})
}

func (s *sqlStore) OpenUpdate(ctx context.Context, run string, round, participant int) (Blob, error) {
	u := Update{Run: run, Round: round, Participant: participant}
	var status RoundStatus
	err := s.db.QueryRowContext(ctx, "SELECT status FROM rounds WHERE run = $1 AND number = $2", run, round).Scan(&status)
	if err := one(err, "round %d of run %s", round, run); err != nil {
		return nil, err
	}
	if status != RoundOpen {
		return nil, fmt.Errorf("%v: %w", u, ErrRoundClosed)
	}
	a, err := s.Answer(ctx, run, round, participant)
	if err != nil {
		return nil, err
	}
	if a.Kind != Released {
		return nil, fmt.Errorf("%v: %w", u, ErrNotFound)
	}
	u.SHA256, u.Size = a.SHA256, a.Size
	b, err := openSmall(ctx, s.db, u)
	if err == nil && b == nil {
		b, err = s.blobs.open(ctx, updateKey(u), u.Size)
	}
	if err != nil {
		return nil, fmt.Errorf("%v: %w", u, err)
	}
	return b, nil
}

func (s *sqlStore) Equivocations(ctx context.Context, run string) ([]Equivocation, error) {
	all, err := list(ctx, s.db, func(r *sql.Rows) (e Equivocation, err error) {
		var sum []byte
		var at int64
		err = r.Scan(&e.Run, &e.Round, &e.Participant, &sum, &e.Size, &at)
		e.SHA256, e.At = toSum(sum), toTime(at)
		return e, err
	}, "SELECT run, round, participant, sha256, size, at FROM equivocations WHERE run = $1 ORDER BY round, participant, at, sha256", run)
	s.mu.Lock()
	defer s.mu.Unlock()
	last := map[int]int{}
	for i, e := range all {
		last[e.Participant] = i
	}
	for participant, i := range last {
		all[i].Further = s.further[slot{run: run, participant: participant}]
	}
	return all, err
}

const receiptColumns = "SELECT run, round, participant, counter, head, signed FROM receipts"

func scanReceipt(row scanner) (r Receipt, err error) {
	var head []byte
	var counter int64
	err = row.Scan(&r.Run, &r.Round, &r.Participant, &counter, &head, &r.Signed)
	r.Counter, r.Head, r.Signed = uint64(counter), toSum(head), some(r.Signed)
	return r, err
}

// follows refuses a receipt that does not follow the one with the last counter, 0 if there
// was none.
func follows(r Receipt, last uint64) error {
	switch {
	case r.Counter == 0 || r.Counter > math.MaxInt64:
		return fmt.Errorf("%w: counter %d", ErrReceiptOrder, r.Counter)
	case r.Counter <= last:
		return fmt.Errorf("%w: %s has had counter %d, this one is %d", ErrReceiptOrder, r.Participant, last, r.Counter)
	}
	return nil
}

// latestCounter is of a participant's latest receipt; 0: it has none.
func latestCounter(ctx context.Context, q query, participant string) (uint64, error) {
	last, err := scanReceipt(q.QueryRowContext(ctx, receiptColumns+" WHERE participant = $1 ORDER BY counter DESC LIMIT 1", participant))
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return last.Counter, err
}

const insertReceipts = "INSERT INTO receipts (run, round, participant, counter, head, signed) VALUES "

func receiptArgs(r Receipt) []any {
	if r.Signed == nil {
		r.Signed = []byte{}
	}
	return []any{r.Run, r.Round, r.Participant, int64(r.Counter), r.Head[:], r.Signed}
}

func (s *sqlStore) addReceipt(ctx context.Context, tx *sql.Tx, r Receipt) error {
	last, err := latestCounter(ctx, tx, r.Participant)
	if err != nil {
		return err
	}
	if err := follows(r, last); err != nil {
		return err
	}
	s.forget(r.Participant)
	_, err = tx.ExecContext(ctx, insertReceipts+places(1, 1, 6), receiptArgs(r)...)
	return err
}

// forget a participant's counter: another one is being recorded.
func (s *sqlStore) forget(participant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.counters, participant)
}

func (s *sqlStore) LatestReceipt(ctx context.Context, participant string) (Receipt, error) {
	r, err := scanReceipt(s.db.QueryRowContext(ctx, receiptColumns+" WHERE participant = $1 ORDER BY counter DESC LIMIT 1", participant))
	return r, one(err, "a receipt of %s", participant)
}

func (s *sqlStore) Receipt(ctx context.Context, run string, round int, participant string) (Receipt, error) {
	r, err := scanReceipt(s.db.QueryRowContext(ctx, receiptColumns+" WHERE run = $1 AND round = $2 AND participant = $3", run, round, participant))
	return r, one(err, "the receipt of %s for round %d of run %s", participant, round, run)
}

func (s *sqlStore) Receipts(ctx context.Context, run string) ([]Receipt, error) {
	return list(ctx, s.db, func(r *sql.Rows) (Receipt, error) { return scanReceipt(r) }, receiptColumns+" WHERE run = $1 ORDER BY round, participant", run)
}
