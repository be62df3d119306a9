package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	began := time.Now()
	hash, err := s.run.Hash()
	if err != nil {
		return Result{}, err
	}
	before, err := s.restore(d, hash)
	if err != nil {
		return Result{}, err
	}
	if err := s.toTheEnd(ctx, d, hash, before, began, tick); err != nil {
		return Result{}, err
	}

	res, err := s.Result()
	if err != nil {
		return Result{}, err
	}
	var models bytes.Buffer
	if err := model.WriteTensors(&models, s.tensors()); err != nil {
		return Result{}, err
	}
	if err := d.Write(ModelFile, models.Bytes()); err != nil {
		return Result{}, err
	}
	text, err := s.run.Encode()
	if err != nil {
		return Result{}, err
	}
	sum := sha256.Sum256(models.Bytes())
	res.ModelSHA256, res.ConfigSHA256, res.Config = hex.EncodeToString(sum[:]), hash, string(text)
	res.WallSeconds = before + time.Since(began).Seconds()
	return res, nil
}

func (s *Simulation) toTheEnd(ctx context.Context, d *Directory, hash string, before float64, began time.Time, tick func(int, float64)) error {
	every := time.Duration(s.run.Run.CheckpointSeconds * float64(time.Second))
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
			return fmt.Errorf("%w at round %d of at most %d; continue with: coterie run --resume %s",
				ErrInterrupted, s.state.Round, s.run.Algorithm.Rounds, d.Path)
		}
		more, err := s.Step()
		if err != nil {
			return err
		}
		tick(s.Round())
		if !more {
			return nil
		}
		if time.Since(saved) >= every {
			if err := save(); err != nil {
				return err
			}
		}
	}
}

// tensors are the returned models, in index order.
func (s *Simulation) tensors() []model.Tensor[float64] {
	var out []model.Tensor[float64]
	for j, v := range vectors(s.Returned(), s.parameters) {
		out = append(out, model.Tensor[float64]{Name: fmt.Sprintf("hypothesis.%d", j), Shape: []int{len(v)}, Values: v})
	}
	return out
}
