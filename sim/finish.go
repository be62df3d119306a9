package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// Keeper is where the checkpoints of a run without a directory lie.
type Keeper interface {
	// Load is the newest checkpoint of a run; nil: there is none.
	Load(id string) []byte
	// Save keeps a later one, after so many rounds. What cannot be kept is the keeper's to
	// complain about: the run goes on.
	Save(id string, rounds int, write func(w io.Writer) error)
	// Every is the least time between two.
	Every() time.Duration
}

// Finish makes one run in memory, to its end: from its checkpoint, if keep has one. A nil
// keep keeps none. The caller closes what it returns.
func Finish(ctx context.Context, run config.Run, folder *data.Folder, keep Keeper) (*Simulation, error) {
	s, err := NewUntil(ctx, run, folder)
	if err != nil {
		return nil, err
	}
	hash, err := run.Hash()
	if err != nil {
		s.Close()
		return nil, err
	}
	id := fmt.Sprintf("%s-%d", hash[:16], run.Seed)
	if keep != nil {
		if raw := keep.Load(id); raw != nil {
			if _, err := s.resume(raw, hash); err != nil { // cut, or of an older program: as if there were none
				s.Close()
				if s, err = NewUntil(ctx, run, folder); err != nil {
					return nil, err
				}
			}
		}
	}
	if err := s.finish(keep, id, hash); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// finish makes all rounds, and keeps a checkpoint now and then, and when it is stopped. To
// write one takes at most a twentieth of the time.
func (s *Simulation) finish(keep Keeper, id, hash string) error {
	save := func() time.Duration {
		began, made := time.Now(), s.rounds.State.Round
		keep.Save(id, made, s.snapshot(hash, 0).write)
		return time.Since(began)
	}
	saved, took := time.Now(), time.Duration(0)
	for more := true; more; {
		var err error
		more, err = s.Step()
		if errors.Is(err, ErrInterrupted) && keep != nil {
			save()
		}
		if err != nil {
			return err
		}
		if keep != nil && more && time.Since(saved) >= max(keep.Every(), 20*took) {
			took = save()
			saved = time.Now()
		}
	}
	return nil
}

// LeaveIn writes the models of a finished run and their description into a folder, and
// returns the result.
func (s *Simulation) LeaveIn(folder string) (Result, error) {
	hash, err := s.Run().Hash()
	if err != nil {
		return Result{}, err
	}
	tensors, err := s.tensors()
	if err != nil {
		return Result{}, err
	}
	res, err := s.Result()
	if err != nil {
		return Result{}, err
	}
	err = s.leave(folder, tensors, &res, hash)
	return res, err
}
