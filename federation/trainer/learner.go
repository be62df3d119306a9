package trainer

import (
	"errors"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// InPlaceOf is the plan's model with its training done by the trainer: mode method.
// A method that is given it clips, pays and noises as with any other model. After
// every response Failure says what a child process did wrong.
func (t *Trainer) InPlaceOf(m model.Model) model.Model { return replaced{m, t} }

type replaced struct {
	model.Model
	trainer *Trainer
}

// Learner is a model.SiloLearner, too.
func (r replaced) Learner() model.Learner { return &learner{trainer: r.trainer} }

// errPending means that an earlier failure was not yet looked at: a trainer that
// hangs is waited for once in a response.
var errPending = errors.New("trainer: it failed before")

// learner asks the trainer. What a client holds is not looked at: the trainer has
// data of its own.
type learner struct {
	trainer *Trainer
	steps   gradientSum
	checked bool // that gradients do not depend on other examples
}

// Loss is what the trainer says.
func (l *learner) Loss(theta []float64, c *data.Client) (float64, error) {
	loss, _, err := l.Judge(theta, c)
	return loss, err
}

// Train adds the trainer's update to theta.
func (l *learner) Train(d model.Descent, theta []float64, _ *data.Client, _ model.Shuffler) error {
	if l.trainer.hasFailed() {
		return errPending
	}
	delta, err := l.trainer.train(d, theta)
	if err != nil {
		return err
	}
	for i, v := range delta {
		theta[i] += v
	}
	return nil
}
