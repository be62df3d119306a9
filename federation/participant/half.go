package participant

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/trainer"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/compute"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
)

// Half is the participant's half of a method, over its own data.
type Half struct {
	Algorithm  *fl.Algorithm
	Parameters int // of one model
	Data       *data.Client
	// Learner asks the participant's own examples which model to use; nil: nobody does.
	Learner model.Learner
	// Trained says that a trainer does the work: then nobody here can ask a model about
	// held-out examples.
	Trained bool
	Name    string // of the silo; a target in the run file may name it
	// Respond takes the algorithm's place, if it is not nil.
	Respond func(b fl.Broadcast, p *fl.Participant, out []float64) (bool, error)
	// Failure says what went wrong behind the method's back, if anything did.
	Failure     func() error
	Enforcement ledger.Enforcement
	NotCovered  []string // by the claims of its releases, on account of who trains
	// Uncovered is what was done to Data that no accounting covers: then nothing is
	// proved about single examples.
	Uncovered []string
	// Planned is what every release costs, if Respond knows.
	Planned *event.Release
	// Device is where networks are computed; nil: on this processor, and nothing else was asked for.
	Device *compute.Used
	// Close lets go of what the half holds. It may be nil.
	Close func() error
}

// HalfOf builds the participant's half from its own file: over its own examples if it has
// any, and with a trainer if there is one.
func HalfOf(f plan.JoinFile, own *Own, folder *data.Folder) func(context.Context, plan.Plan, config.Run, config.Run, int) (*Half, error) {
	return func(ctx context.Context, asked plan.Plan, run, private config.Run, index int) (*Half, error) {
		m, err := model.Of(run, asked.Shape)
		if err != nil {
			return nil, err
		}
		h := &Half{Parameters: m.Parameters(), Enforcement: ledger.Enforced}
		var child *trainer.Trainer
		var open []string // what steps on a device leave uncovered
		if f.Trainer.IsSet() {
			if err := trainerKnows(run.Algorithm.Local); err != nil {
				return nil, err
			}
			if child, err = trainer.Start(ctx, f.Trainer, m.Parameters()); err != nil {
				return nil, err
			}
			h.Close, h.Trained = child.Close, true
			if child.Mode() == trainer.ModeMethod {
				m, h.Failure = child.InPlaceOf(m, run.Algorithm.Local.Loss), child.Failure
				h.NotCovered = trainer.NotCovered(run.Privacy.Protects == "example")
			}
		} else {
			placed, err := compute.ForMember(f.Device, run, m)
			if err != nil {
				return nil, err
			}
			m, h.Device, h.Close, open = placed.Model, placed.Used, placed.Close, placed.NotCovered
		}
		if err := h.fill(f, own, folder, child, asked, run, private, index, m); err != nil {
			if h.Close != nil {
				err = errors.Join(err, h.Close())
			}
			return nil, err
		}
		h.Uncovered = slices.Concat(h.Uncovered, open)
		return h, nil
	}
}

func (h *Half) fill(f plan.JoinFile, own *Own, folder *data.Folder, child *trainer.Trainer, asked plan.Plan, run, private config.Run, index int, m model.Model) error {
	if child != nil && run.Data.Standardise == string(data.ByPaid) {
		return fmt.Errorf("%w: data.standardise is paid, but a trainer's rows are scaled by the trainer; the plan must say public or none", fl.ErrRefused)
	}
	var err error
	if h.Algorithm, err = fl.New(private, m, asked.Participants); err != nil {
		return err
	}
	if h.Learner, err = m.Learner(); err != nil {
		return err
	}
	if f.Data.Kind == "trainer" {
		h.Data = child.Client()
	} else if err := h.load(f.Data, own, folder, asked.Shape, run, index); err != nil {
		return err
	}
	if child == nil || child.Mode() == trainer.ModeMethod {
		return nil
	}
	if run.Algorithm.Hypotheses != 1 || h.Algorithm.ReleaseLength() != m.Parameters() {
		return fmt.Errorf("%w: trainer.mode is %s, which knows one model whose release is the model; the plan has %d hypotheses and releases of %d values for %d parameters",
			fl.ErrRefused, child.Mode(), run.Algorithm.Hypotheses, h.Algorithm.ReleaseLength(), m.Parameters())
	}
	trained, err := trainer.NewHalf(child, run.Algorithm.Local)
	if err != nil {
		return err
	}
	if !trained.Enforced() {
		h.Enforcement = ledger.Attested
	}
	h.NotCovered = trained.NotCovered()
	release := trained.Release()
	h.Planned, h.Failure = &release, trained.Failure
	h.Respond = func(b fl.Broadcast, p *fl.Participant, out []float64) (bool, error) {
		if err := trained.Respond(b.Round, b.Hypotheses, p.Purse, out); err != nil {
			return false, err
		}
		return true, nil
	}
	return nil
}

// mostSynthetic bounds the data that a plan may make a participant draw.
const mostSynthetic = 1e8

// load is what this participant trains on, and its silo's name if it has one.
func (h *Half) load(s plan.Source, own *Own, folder *data.Folder, shape data.Shape, run config.Run, index int) error {
	if own != nil {
		return own.fill(h, run, shape)
	}
	if k, err := data.KindOf(run.Data); err == nil && k.One != nil {
		// What would be opened is what the plan names, and a server must not choose it.
		return fmt.Errorf("%w: the plan trains on a %s of one's own, but this participant's file names none; set data: {kind: own, run: …, source: …}", fl.ErrRefused, k.Name)
	}
	if d := run.Data; d.Kind == "synthetic" && float64(d.Users+d.ValidationUsers)*float64(d.Samples)*float64(shape.Features+1) > mostSynthetic {
		return fmt.Errorf("%w: the plan's synthetic data have more than %v values", fl.ErrRefused, mostSynthetic)
	}
	f, err := folder.Load(run.Data, run.Seed)
	if err != nil {
		return err
	}
	if s.Client >= 0 {
		index = s.Client
	}
	if index >= len(f.Train) {
		return fmt.Errorf("data.client is %d; the run's data have %d clients", index, len(f.Train))
	}
	h.Data, h.Uncovered = &f.Train[index], f.NotCovered
	h.Name = h.Data.Name
	return nil
}

// trainerKnows refuses plans with settings of the loss that trainers are not told of:
// they would train something else.
func trainerKnows(l config.Local) error {
	if l.ClassWeights != nil || l.Loss == model.Focal.String() {
		return fmt.Errorf("the plan has algorithm.local.class_weights or the loss focal, of which trainers are not told; join with data, or agree on a plan without them")
	}
	return nil
}
