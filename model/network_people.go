package model

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// fitsPeople says why a model block does not go with people, if they are what is trained on.
func fitsPeople(run config.Run, s data.Shape) error {
	switch kind := run.Model.Kind; {
	case s.Windows == 0 || kind == "linear":
		return nil
	case kind != "network":
		return fmt.Errorf("model.kind %q, but inputs of people are built of their contacts; allowed: linear, network", kind)
	case s.Windows > 1:
		return fmt.Errorf("model.kind network, but people have %d windows each, and a network reads one; allowed: linear, or data.inputs authors", s.Windows)
	case run.Algorithm.Local.Batch == 0:
		return fmt.Errorf("model.kind network on people in steps on everybody, whose inputs would all be laid out at once; set algorithm.local.batch, such as 512")
	}
	return nil
}

// putPerson sets x to a person's inputs and returns its label.
func (l *networkLearner[F]) putPerson(x []F, c *data.Client, i int) float64 {
	if len(l.person) != len(x)+1 {
		l.person = make([]float32, len(x)+1)
	}
	label := c.People.Input(l.person, i, 0)
	for j := range x {
		x[j] = F(l.person[j])
	}
	if len(c.Y) > 0 {
		return c.Y[i]
	}
	return float64(max(0, label))
}
