package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

const runColumns = "SELECT id, file, sha256, status, detail, created FROM runs"

type scanner interface{ Scan(into ...any) error }

func scanRun(row scanner) (r Run, err error) {
	var created int64
	err = row.Scan(&r.ID, &r.File, &r.SHA256, &r.Status, &r.Detail, &created)
	r.File, r.Created = some(r.File), toTime(created)
	return r, err
}

func (s *sqlStore) CreateRun(ctx context.Context, r Run) error {
	if r.Status == "" {
		r.Status = Running
	}
	if r.File == nil {
		r.File = []byte{}
	}
	return s.change(ctx, fmt.Sprintf("create run %s", r.ID), func(tx *sql.Tx) error {
		created, err := changeOne(ctx, tx, "INSERT INTO runs (id, file, sha256, status, detail, created) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING",
			r.ID, r.File, r.SHA256, string(r.Status), r.Detail, fromTime(r.Created))
		if err != nil || created {
			return err
		}
		old, err := scanRun(tx.QueryRowContext(ctx, runColumns+" WHERE id = $1", r.ID))
		if err != nil {
			return err
		}
		if old.SHA256 != r.SHA256 || !bytes.Equal(old.File, r.File) {
			return fmt.Errorf("%w with another run file (plan %.12s, now %.12s)", ErrExists, old.SHA256, r.SHA256)
		}
		return nil
	})
}

func (s *sqlStore) Run(ctx context.Context, id string) (Run, error) {
	r, err := scanRun(s.db.QueryRowContext(ctx, runColumns+" WHERE id = $1", id))
	return r, one(err, "run %s", id)
}

func (s *sqlStore) Runs(ctx context.Context) ([]Run, error) {
	return list(ctx, s.db, func(r *sql.Rows) (Run, error) { return scanRun(r) }, runColumns+" ORDER BY created, id")
}

func (s *sqlStore) SetRunStatus(ctx context.Context, id string, status RunStatus, detail string) error {
	return s.change(ctx, fmt.Sprintf("set the status of run %s", id), func(tx *sql.Tx) error {
		changed, err := changeOne(ctx, tx, "UPDATE runs SET status = $2, detail = $3 WHERE id = $1", id, string(status), detail)
		if err == nil && !changed {
			return ErrNotFound
		}
		return err
	})
}

const participantColumns = "SELECT run, name, place, last_seen FROM participants WHERE run = $1"

func scanParticipant(row scanner) (p Participant, err error) {
	var seen int64
	err = row.Scan(&p.Run, &p.Name, &p.Index, &seen)
	p.LastSeen = toTime(seen)
	return p, err
}

func (s *sqlStore) AddParticipant(ctx context.Context, run, name string, index int) (p Participant, err error) {
	err = s.change(ctx, fmt.Sprintf("add %s to run %s", name, run), func(tx *sql.Tx) error {
		if _, err := scanRun(tx.QueryRowContext(ctx, runColumns+" WHERE id = $1"+s.update(), run)); err != nil {
			return one(err, "the run")
		}
		p, err = scanParticipant(tx.QueryRowContext(ctx, participantColumns+" AND name = $2", run, name))
		switch {
		case err == nil && (index < 0 || index == p.Index):
			return nil
		case err == nil:
			return fmt.Errorf("%w at place %d, not %d", ErrExists, p.Index, index)
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		p = Participant{Run: run, Name: name, Index: index}
		if index < 0 {
			if p.Index, err = lowestFree(ctx, tx, run); err != nil {
				return err
			}
		}
		added, err := changeOne(ctx, tx, "INSERT INTO participants (run, place, name, last_seen) VALUES ($1, $2, $3, 0) ON CONFLICT DO NOTHING", run, p.Index, name)
		if err == nil && !added {
			return fmt.Errorf("somebody else at place %d %w", index, ErrExists)
		}
		return err
	})
	return p, err
}

func (s *sqlStore) AddParticipants(ctx context.Context, run string, names []string) error {
	return s.change(ctx, fmt.Sprintf("add %d participants to run %s", len(names), run), func(tx *sql.Tx) error {
		if _, err := scanRun(tx.QueryRowContext(ctx, runColumns+" WHERE id = $1"+s.update(), run)); err != nil {
			return one(err, "the run")
		}
		there, err := list(ctx, tx, func(r *sql.Rows) (Participant, error) { return scanParticipant(r) }, participantColumns, run)
		if err != nil {
			return err
		}
		byName, byPlace := map[string]int{}, map[int]string{}
		for _, p := range there {
			byName[p.Name], byPlace[p.Index] = p.Index, p.Name
		}
		insert, err := tx.PrepareContext(ctx, "INSERT INTO participants (run, place, name, last_seen) VALUES ($1, $2, $3, 0)")
		if err != nil {
			return err
		}
		defer insert.Close()
		for i, name := range names {
			place, known := byName[name]
			holder, taken := byPlace[i]
			switch {
			case known && place == i:
				continue
			case known:
				return fmt.Errorf("%s %w at place %d, not %d", name, ErrExists, place, i)
			case taken:
				return fmt.Errorf("%s at place %d %w, not %s", holder, i, ErrExists, name)
			}
			if _, err := insert.ExecContext(ctx, run, i, name); err != nil {
				return err
			}
			byName[name], byPlace[i] = i, name
		}
		return nil
	})
}

func lowestFree(ctx context.Context, q query, run string) (int, error) {
	taken, err := list(ctx, q, func(r *sql.Rows) (i int, err error) { return i, r.Scan(&i) }, "SELECT place FROM participants WHERE run = $1 ORDER BY place", run)
	for i, place := range taken {
		if place != i {
			return i, err
		}
	}
	return len(taken), err
}

// update keeps others from reading a row for a change of their own.
func (s *sqlStore) update() string {
	if s.postgres {
		return " FOR UPDATE"
	}
	return ""
}

func (s *sqlStore) Participants(ctx context.Context, run string) ([]Participant, error) {
	return list(ctx, s.db, func(r *sql.Rows) (Participant, error) { return scanParticipant(r) }, participantColumns+" ORDER BY place", run)
}

// seenEvery is how exact LastSeen is: thousands of participants that say they are
// there must not keep the disk busy.
const seenEvery = 30 * time.Second

func (s *sqlStore) Seen(ctx context.Context, run, name string, at time.Time) error {
	key := [2]string{run, name}
	s.mu.Lock()
	last, known := s.seen[key]
	s.mu.Unlock()
	if since := at.Sub(last); known && since >= 0 && since < seenEvery {
		return nil
	}
	err := s.change(ctx, fmt.Sprintf("note that %s was seen", name), func(tx *sql.Tx) error {
		changed, err := changeOne(ctx, tx, "UPDATE participants SET last_seen = $3 WHERE run = $1 AND name = $2", run, name, fromTime(at))
		if err == nil && !changed {
			return ErrNotFound
		}
		return err
	})
	if err == nil {
		s.mu.Lock()
		s.seen[key] = at
		s.mu.Unlock()
	}
	return err
}
