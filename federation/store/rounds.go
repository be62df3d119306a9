package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"time"
)

const roundColumns = "SELECT run, number, status, sampler, deadline, opened, ended, reason FROM rounds WHERE run = $1"

func scanRound(row scanner) (r Round, err error) {
	var deadline, opened, ended int64
	err = row.Scan(&r.Run, &r.Number, &r.Status, &r.Sampler, &deadline, &opened, &ended, &r.Reason)
	r.Sampler = some(r.Sampler)
	r.Deadline, r.Opened, r.Ended = toTime(deadline), toTime(opened), toTime(ended)
	return r, err
}

func (s *sqlStore) OpenRound(ctx context.Context, r Round) error {
	for i := 1; i < len(r.Clients); i++ {
		if r.Clients[i] <= r.Clients[i-1] {
			return fmt.Errorf("open round %d: clients %d and %d are not in ascending order", r.Number, r.Clients[i-1], r.Clients[i])
		}
	}
	if r.Sampler == nil {
		r.Sampler = []byte{}
	}
	return s.change(ctx, fmt.Sprintf("open round %d of run %s", r.Number, r.Run), func(tx *sql.Tx) error {
		if _, err := scanRun(tx.QueryRowContext(ctx, runColumns+" WHERE id = $1", r.Run)); err != nil {
			return one(err, "the run")
		}
		created, err := changeOne(ctx, tx, `INSERT INTO rounds (run, number, status, sampler, deadline, opened, ended, reason)
			VALUES ($1, $2, 'open', $3, $4, $5, 0, '') ON CONFLICT DO NOTHING`,
			r.Run, r.Number, r.Sampler, fromTime(r.Deadline), fromTime(r.Opened))
		if err != nil {
			return err
		}
		if !created {
			return ErrExists
		}
		insert, err := tx.PrepareContext(ctx, `INSERT INTO assignments (run, round, participant, kind, sha256, size, reason, at)
			VALUES ($1, $2, $3, 'waiting', $4, 0, '', 0)`)
		if err != nil {
			return err
		}
		defer insert.Close()
		for _, c := range r.Clients {
			if _, err := insert.ExecContext(ctx, r.Run, r.Number, c, []byte{}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *sqlStore) Round(ctx context.Context, run string, number int) (Round, error) {
	r, err := scanRound(s.db.QueryRowContext(ctx, roundColumns+" AND number = $2", run, number))
	if err := one(err, "round %d of run %s", number, run); err != nil {
		return Round{}, err
	}
	return s.withClients(ctx, r)
}

func (s *sqlStore) LatestRound(ctx context.Context, run string) (Round, error) {
	r, err := scanRound(s.db.QueryRowContext(ctx, roundColumns+" ORDER BY number DESC LIMIT 1", run))
	if err := one(err, "a round of run %s", run); err != nil {
		return Round{}, err
	}
	return s.withClients(ctx, r)
}

func (s *sqlStore) withClients(ctx context.Context, r Round) (_ Round, err error) {
	r.Clients, err = list(ctx, s.db, func(rows *sql.Rows) (c int, err error) { return c, rows.Scan(&c) },
		"SELECT participant FROM assignments WHERE run = $1 AND round = $2 ORDER BY participant", r.Run, r.Number)
	return r, err
}

func (s *sqlStore) Rounds(ctx context.Context, run string) ([]Round, error) {
	all, err := list(ctx, s.db, func(r *sql.Rows) (Round, error) { return scanRound(r) }, roundColumns+" ORDER BY number", run)
	if err != nil {
		return nil, err
	}
	place := make(map[int]int, len(all))
	for i, r := range all {
		place[r.Number], all[i].Clients = i, []int{}
	}
	asked, err := list(ctx, s.db, func(r *sql.Rows) (a [2]int, err error) { return a, r.Scan(&a[0], &a[1]) },
		"SELECT round, participant FROM assignments WHERE run = $1 ORDER BY round, participant", run)
	for _, a := range asked {
		if i, ok := place[a[0]]; ok { // not one that was opened in between
			all[i].Clients = append(all[i].Clients, a[1])
		}
	}
	return all, err
}

// end closes or abandons an open round.
func (s *sqlStore) end(ctx context.Context, tx *sql.Tx, run string, number int, status RoundStatus, reason string, at time.Time) error {
	changed, err := changeOne(ctx, tx, "UPDATE rounds SET status = $3, reason = $4, ended = $5 WHERE run = $1 AND number = $2 AND status = 'open'",
		run, number, string(status), reason, fromTime(at))
	if err != nil {
		return err
	}
	if !changed {
		return ErrRoundClosed
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM small WHERE run = $1 AND round = $2", run, number); err != nil {
		return err
	}
	return s.blobs.drop(ctx, tx, updatesOf(run, number))
}

// keptState is where a state's bytes are and what they must be.
type keptState struct {
	run   string
	round int
	sum   [32]byte
	size  int64
}

func scanState(row *sql.Rows) (k keptState, err error) {
	var sum []byte
	err = row.Scan(&k.run, &k.round, &sum, &k.size)
	k.sum = toSum(sum)
	return k, err
}

func (k keptState) key() string { return stateKey(k.run, k.round, k.sum) }

func (s *sqlStore) CloseRound(ctx context.Context, run string, number int, state []byte, at time.Time) error {
	what := fmt.Sprintf("close round %d of run %s", number, run)
	k := keptState{run: run, round: number, sum: sha256.Sum256(state), size: int64(len(state))}
	if err := s.blobs.prepare(k.key(), state); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var old []keptState
	err := s.change(ctx, what, func(tx *sql.Tx) error {
		if err := s.end(ctx, tx, run, number, RoundClosed, "", at); err != nil {
			return err
		}
		if err := s.blobs.attach(ctx, tx, k.key(), bytes.NewReader(state), k.size); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO states (run, round, sha256, size) VALUES ($1, $2, $3, $4)", run, number, k.sum[:], k.size); err != nil {
			return err
		}
		var err error
		old, err = s.forgetStates(ctx, tx, run)
		return err
	})
	if err != nil {
		return err
	}
	s.blobs.dropped(updatesOf(run, number))
	for _, o := range old {
		s.blobs.dropped(o.key())
	}
	return nil
}

// forgetStates keeps the latest states and returns the others.
func (s *sqlStore) forgetStates(ctx context.Context, tx *sql.Tx, run string) ([]keptState, error) {
	old, err := list(ctx, tx, scanState,
		"SELECT run, round, sha256, size FROM states WHERE run = $1 ORDER BY round DESC LIMIT 1000 OFFSET $2", run, s.options.KeepStates)
	if err != nil {
		return nil, err
	}
	for _, o := range old {
		if _, err := tx.ExecContext(ctx, "DELETE FROM states WHERE run = $1 AND round = $2", run, o.round); err != nil {
			return nil, err
		}
		if err := s.blobs.drop(ctx, tx, o.key()); err != nil {
			return nil, err
		}
	}
	return old, nil
}

func (s *sqlStore) AbandonRound(ctx context.Context, run string, number int, reason string, at time.Time) error {
	err := s.change(ctx, fmt.Sprintf("abandon round %d of run %s", number, run), func(tx *sql.Tx) error {
		return s.end(ctx, tx, run, number, RoundAbandoned, reason, at)
	})
	if err == nil {
		s.blobs.dropped(updatesOf(run, number))
	}
	return err
}

func (s *sqlStore) LatestState(ctx context.Context, run string) (number int, state []byte, err error) {
	latest, err := list(ctx, s.db, scanState, "SELECT run, round, sha256, size FROM states WHERE run = $1 ORDER BY round DESC LIMIT 1", run)
	if err != nil {
		return 0, nil, err
	}
	if len(latest) == 0 {
		return 0, nil, fmt.Errorf("a state of run %s: %w", run, ErrNotFound)
	}
	k := latest[0]
	state, err = s.readState(ctx, k)
	if err != nil {
		return 0, nil, fmt.Errorf("read the state after round %d of run %s: %w", k.round, run, err)
	}
	return k.round, state, nil
}

func (s *sqlStore) readState(ctx context.Context, k keptState) ([]byte, error) {
	b, err := s.blobs.open(ctx, k.key(), k.size)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	state := make([]byte, k.size)
	if _, err := b.ReadAt(state, 0); err != nil {
		return nil, err
	}
	if sha256.Sum256(state) != k.sum {
		return nil, fmt.Errorf("%w: its hash is wrong", ErrDamaged)
	}
	return state, nil
}
