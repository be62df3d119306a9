package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/fl"
)

// ErrInterrupted means that the run was stopped and can be resumed.
var ErrInterrupted = errors.New("interrupted")

// Execute makes or continues the run in a directory, leaves the models and their
// description there and returns the result. It calls tick after every round. When ctx
// ends it writes a checkpoint and returns ErrInterrupted.
func (s *Simulation) Execute(ctx context.Context, d *Directory, tick func(round int, loss float64)) (Result, error) {
	began := time.Now()
	hash, err := s.Run().Hash()
	if err != nil {
		return Result{}, err
	}
	before, err := s.restore(d, hash)
	if err != nil {
		return Result{}, err
	}
	if err := toTheEnd(ctx, s, d, hash, before, began, tick); err != nil {
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
	described, err := s.describe(res.Privacy)
	if err != nil {
		return Result{}, err
	}
	if described, err = artifact.Write(d.Path, described, tensors, nil); err != nil {
		return Result{}, err
	}
	text, err := s.Run().Encode()
	if err != nil {
		return Result{}, err
	}
	res.ModelSHA256, res.ConfigSHA256, res.Config = described.ModelSHA256, hash, string(text)
	res.WallSeconds = before + time.Since(began).Seconds()
	return res, nil
}

// describe says what tensors are.
func (s *Simulation) describe(p fl.Privacy) (artifact.Description, error) {
	d, err := artifact.Describe(s.run, s.federation.Shape(), s.federation.Encoding, &p)
	if err != nil {
		return d, err
	}
	models := s.rounds.Algorithm.Outline().Models
	d.Server(models)
	if !s.rounds.Algorithm.OwnModels() {
		return d, nil
	}
	for i := range s.rounds.Participants {
		own := &s.rounds.Participants[i]
		var cluster *int
		if models > 1 {
			cluster = &own.Cluster
		}
		_, _, scaled := own.Moments()
		d.Client(i, own.Name, cluster, scaled)
	}
	return d, nil
}

func toTheEnd(ctx context.Context, s *Simulation, d *Directory, hash string, before float64, began time.Time, tick func(int, float64)) error {
	every := time.Duration(s.Run().Run.CheckpointSeconds * float64(time.Second))
	saved := time.Now()
	save := func() error {
		raw, err := s.snapshot(hash, before+time.Since(began).Seconds())
		if err != nil {
			return err
		}
		saved = time.Now()
		return d.Write(CheckpointFile, raw)
	}
	for {
		if ctx.Err() != nil {
			if err := save(); err != nil {
				return errors.Join(ErrInterrupted, err)
			}
			made, _ := s.Round()
			return fmt.Errorf("%w at round %d of at most %d; continue with: coterie run --resume %s",
				ErrInterrupted, made, s.Run().Algorithm.Rounds, d.resume)
		}
		more, err := s.Step()
		if err != nil {
			return err
		}
		tick(s.Round())
		switch {
		case !more && s.followed:
			return save()
		case !more:
			return nil
		}
		if time.Since(saved) >= every {
			if err := save(); err != nil {
				return err
			}
		}
	}
}
