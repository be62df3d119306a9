package trainer

import (
	"errors"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// InPlaceOf is the plan's model with its training done by the trainer: mode method.
// A method that is given it clips, pays and noises as with any other model. After
// every response Failure says what a child process did wrong.
// Loss is the name of what it is asked to follow.
func (t *Trainer) InPlaceOf(m model.Model, loss string) model.Model { return replaced{m, t, loss} }

type replaced struct {
	model.Model
	trainer *Trainer
	loss    string
}

// Learner asks the trainer.
func (r replaced) Learner() (model.Learner, error) {
	return &learner{trainer: r.trainer, loss: r.loss}, nil
}

// errPending means that an earlier failure was not yet looked at: a trainer that
// hangs is waited for once in a response.
var errPending = errors.New("trainer: it failed before")

// learner asks the trainer. What a client holds is not looked at: the trainer has
// data of its own.
type learner struct {
	trainer *Trainer
	loss    string
	steps   gradientSum
	checked bool // that gradients do not depend on other examples
}

// Loss is what the trainer says.
func (l *learner) Loss(theta []float64, c *data.Client) (float64, error) {
	loss, _, err := l.Judge(theta, c)
	return loss, err
}

// Train adds the trainer's update to theta; a pass of steps that are drawn one by one
// asks for its gradients instead.
func (l *learner) Train(theta []float64, c *data.Client, p *model.Pass) error {
	if p.Paid != nil || p.Sampler != nil {
		return p.Descend(l, theta, c)
	}
	if !p.Optimiser.Plain() {
		return errors.New("trainer: the plan asks for an optimiser that trainers are not told of; allowed: algorithm.local.optimiser sgd")
	}
	if l.trainer.hasFailed() {
		return errPending
	}
	delta, err := l.trainer.train(config.Local{Epochs: p.Epochs, Step: p.StepSize, Batch: p.Batch, Loss: l.loss}, theta)
	if err != nil {
		return err
	}
	for i, v := range delta {
		theta[i] += v
	}
	return nil
}
