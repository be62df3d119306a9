package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/model"
)

// ErrInterrupted means that the run was stopped and can be resumed.
var ErrInterrupted = errors.New("interrupted")

// Execute makes or continues the run in a directory, leaves the models and their
// description there and returns the result. It calls tick after every round and a few
// times a second, one call after another. When ctx ends, be it in the middle of a round,
// it writes a checkpoint and returns ErrInterrupted.
func (s *Simulation) Execute(ctx context.Context, d *Directory, tick func(Moment)) (Result, error) {
	e := execution{s: s, d: d, began: time.Now()}
	var err error
	if e.hash, err = s.Run().Hash(); err != nil {
		return Result{}, err
	}
	// As the file has it: what the run makes of it, such as how many clients a round asks,
	// hangs on the data, which a checkpoint names apart.
	if e.begun, err = s.asked.Hash(); err != nil {
		return Result{}, err
	}
	if e.before, err = s.restore(d, e.begun); err != nil {
		return Result{}, err
	}
	s.Until(ctx)
	e.teller = startTelling(d, e.began, e.before)
	defer e.teller.close()
	ticker := s.startTicking(func(m Moment) {
		tick(m)
		e.teller.beat(m)
	})
	defer ticker.stop()
	if err = e.toTheEnd(ctx, ticker); err != nil {
		return Result{}, err
	}
	return e.finish(ctx)
}

// Train is Execute for models that somebody else looks at: the same ones, without a result.
// Nothing is judged, where nothing hangs on it: judging costs as much as a good part of a
// short training.
func (s *Simulation) Train(ctx context.Context, d *Directory, tick func(Moment)) error {
	stop := s.run.Algorithm.Stop
	s.unjudged = stop.Return == "last" && stop.Patience == 0 && !s.rounds.Algorithm.OwnModels() && s.rounds.Algorithm.Outline().Models == 1
	_, err := s.Execute(ctx, d, tick)
	return err
}

// execution is a run in its directory.
type execution struct {
	s      *Simulation
	d      *Directory
	hash   string // of the run file, as the run has settled it
	begun  string // of the run file, by which checkpoints are found
	began  time.Time
	before float64 // seconds that were spent on the run before
	saved  time.Time
	teller *teller
	saving time.Duration // that the last checkpoint took
}

func (e *execution) seconds() float64 { return e.before + time.Since(e.began).Seconds() }

// save writes a checkpoint.
func (e *execution) save() error {
	began := time.Now()
	err := durable.Replace(e.d.File(CheckpointFile), 0o600, e.s.snapshot(e.begun, e.seconds()).write)
	e.saved = time.Now()
	e.saving = e.saved.Sub(began)
	return err
}

// interrupted writes a checkpoint and says how to go on.
func (e *execution) interrupted() error {
	e.s.at.doing.Store(int32(Stopping))
	e.teller.beat(e.s.Moment())
	if err := e.save(); err != nil {
		return errors.Join(ErrInterrupted, err)
	}
	made, _ := e.s.Round()
	where, rounds := fmt.Sprintf("at round %d", made), e.s.Run().Algorithm.Rounds
	switch round := &e.s.rounds.round; {
	case round.IsOpen() && len(e.s.rounds.Participants) == 1:
		where = fmt.Sprintf("in round %d, which begins again,", made+1)
	case round.IsOpen():
		where = fmt.Sprintf("in round %d, which %d of %d clients have answered,", made+1, round.Count(), len(round.Clients()))
	}
	return fmt.Errorf("%w %s of at most %d; continue with: %s", ErrInterrupted, where, rounds, e.d.Continue)
}

// finish makes the result of a run that has ended and leaves the models.
func (e *execution) finish(ctx context.Context) (Result, error) {
	s := e.s
	s.at.doing.Store(int32(Finishing))
	if err := s.forgetTraining(); err != nil {
		return Result{}, err
	}
	tensors, err := s.tensors()
	var res Result
	if err == nil {
		res, err = s.Result()
	}
	if ctx.Err() != nil {
		return Result{}, e.interrupted()
	}
	if err != nil {
		return Result{}, err
	}
	if err := s.leave(e.d.Path, tensors, &res, e.hash); err != nil {
		return Result{}, err
	}
	res.WallSeconds = e.seconds()
	return res, nil
}

// leave writes the models of an ended run and their description into a folder, and names
// them in the result.
func (s *Simulation) leave(folder string, tensors []model.Tensor[float64], res *Result, configHash string) error {
	described, err := s.describe(res.Privacy)
	if err != nil {
		return err
	}
	if described, err = artifact.Write(folder, described, tensors, nil); err != nil {
		return err
	}
	text, err := s.Run().Encode()
	if err != nil {
		return err
	}
	res.ModelSHA256, res.ConfigSHA256, res.Config = described.ModelSHA256, configHash, string(text)
	return nil
}

// largeModel is from how many parameters on the memory of training is worth a look at the
// whole heap.
const largeModel = 1 << 16

// forgetTraining has workers begin anew: the memory that they trained in and that their
// releases came in is as large as several models, and judging and reporting need none of it.
func (s *Simulation) forgetTraining() error {
	clear(s.learners)
	s.rounds.forget()
	if s.parameters >= largeModel {
		runtime.GC() // before others are made: both together would be the most that a run holds
	}
	for i := range s.rounds.workers {
		learner, err := s.rounds.Algorithm.Learner(&s.rounds.workers[i])
		if err != nil {
			return err
		}
		s.learners[i] = learner
	}
	return nil
}

// describe says what tensors are.
func (s *Simulation) describe(p fl.Privacy) (artifact.Description, error) {
	d, err := artifact.Describe(s.run, s.federation.Shape(), s.federation.Encoding, &p)
	if err != nil {
		return d, err
	}
	d.Kernel = s.kernel()
	if err := d.Cut(s.federation.Words); err != nil {
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

// checkpointShare is how many times as long as a checkpoint takes there is none after it:
// those of very many clients must not take the time of the rounds.
const checkpointShare = 20

// toTheEnd makes all rounds.
func (e *execution) toTheEnd(ctx context.Context, t *ticker) error {
	every := time.Duration(e.s.Run().Run.CheckpointSeconds * float64(time.Second))
	e.saved = time.Now()
	for {
		if ctx.Err() != nil {
			return e.interrupted()
		}
		more, err := e.s.Step()
		if ctx.Err() != nil && errors.Is(err, ErrInterrupted) {
			return e.interrupted()
		}
		if err != nil {
			return err
		}
		t.now()
		e.teller.round(e.s, !more)
		switch {
		case !more && e.s.followed:
			return e.save()
		case !more:
			return nil
		}
		if since := time.Since(e.saved); since >= every && (every == 0 || since >= checkpointShare*e.saving) {
			if err := e.save(); err != nil {
				return err
			}
		}
	}
}
