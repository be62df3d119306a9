package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coterie-fl/coterie/model"
)

// ErrInterrupted means that the run was stopped and can be resumed.
var ErrInterrupted = errors.New("interrupted")

// Execute makes or continues the run in a directory, leaves the models there and
// returns the result. It calls tick after every round. When ctx ends it writes a
// checkpoint and returns ErrInterrupted.
func (s *Simulation) Execute(ctx context.Context, d *Directory, tick func(round int, loss float64)) (Result, error) {
	made, err := perform(ctx, s, d, tick)
	if err != nil {
		return Result{}, err
	}
	res, err := s.Result()
	if err != nil {
		return Result{}, err
	}
	res.ModelSHA256, res.ConfigSHA256, res.Config, res.WallSeconds = made.modelSHA256, made.configSHA256, made.config, made.seconds
	return res, nil
}

// executed is what every finished run leaves beside its figures.
type executed struct {
	modelSHA256, configSHA256, config string
	seconds                           float64
}

func perform(ctx context.Context, s *Simulation, d *Directory, tick func(round int, loss float64)) (executed, error) {
	began := time.Now()
	hash, err := s.Run().Hash()
	if err != nil {
		return executed{}, err
	}
	before, err := s.restore(d, hash)
	if err != nil {
		return executed{}, err
	}
	if err := toTheEnd(ctx, s, d, hash, before, began, tick); err != nil {
		return executed{}, err
	}
	var models bytes.Buffer
	tensors, err := s.tensors()
	if err != nil {
		return executed{}, err
	}
	if err := model.WriteTensors(&models, tensors); err != nil {
		return executed{}, err
	}
	if err := d.Write(ModelFile, models.Bytes()); err != nil {
		return executed{}, err
	}
	text, err := s.Run().Encode()
	if err != nil {
		return executed{}, err
	}
	sum, err := model.TensorsSHA256(models.Bytes())
	if err != nil {
		return executed{}, err
	}
	return executed{sum, hash, string(text), before + time.Since(began).Seconds()}, nil
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
