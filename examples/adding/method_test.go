package adding_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// A method: its name, words, the keys that it reads and not all methods do, what it cannot
// do, and how it is made.
func init() {
	fl.RegisterMethod(fl.MethodKind{
		Name: "median", Words: "one model for all: the median of the releases in every coordinate",
		Keys: []string{"algorithm.clients_per_round", "algorithm.sampling", "algorithm.stop.patience", "algorithm.stop.return", "algorithm.stop.validation_clients"},
		Check: func(c *config.Checker, run config.Run) {
			k := run.Algorithm.Hypotheses
			c.Require(k == 1, "algorithm.hypotheses", "is %d, but median has one model; allowed: 1", k)
		},
		New: func(s fl.Setup) (fl.Method, error) { return &median{s}, nil },
	})
}

// median is FedAvg with the median instead of the mean. It says nothing of privacy: what
// needs a participant's data, the guard does.
type median struct{ fl.Setup }

// Outline: the median needs every single release, so that noise on their sum is no help.
func (m *median) Outline() fl.Outline {
	return fl.Outline{Models: 1, Passes: 1, Sends: m.Run.Algorithm.Rounds, Single: true}
}

// Begin draws the first model.
func (m *median) Begin(st *fl.State) {
	st.Hypotheses = make([]float64, m.Parameters)
	m.Model.Initialise(st.Hypotheses, rand.NewPCG(m.Run.Seed, 0))
}

// Tell adds nothing to the model that is sent.
func (m *median) Tell(*fl.State, *fl.Broadcast) {}

// Respond trains from the server's model and sends the result.
func (m *median) Respond(g fl.Guard, w *fl.Worker, b *fl.Broadcast, p *fl.Participant, out []float64) (bool, error) {
	if len(b.Hypotheses) != m.Parameters {
		return false, fmt.Errorf("the server sent %d values, not %d", len(b.Hypotheses), m.Parameters)
	}
	theta := w.Theta(m.Parameters)
	copy(theta, b.Hypotheses)
	if err := g.Train(b, p, theta, b.Hypotheses, fl.Pull{}); err != nil {
		return false, err
	}
	return g.Send(b, p, out, theta, b.Hypotheses)
}

// Aggregate moves every coordinate to the median of the releases.
func (m *median) Aggregate(st *fl.State, r fl.Releases) fl.Outcome {
	if len(r.Clients) == 0 { // everybody declined
		return fl.Outcome{}
	}
	column := make([]float64, len(r.Clients))
	for j := range st.Hypotheses {
		for i := range column {
			column[i] = r.Vectors[i*m.Parameters+j]
		}
		slices.Sort(column)
		st.Hypotheses[j] = column[len(column)/2]
	}
	return fl.Outcome{Assigned: make([]int, len(r.Clients))}
}

// Adopt gives everybody the common model.
func (m *median) Adopt(dst []float64, b *fl.Broadcast, _ *fl.Participant, _ model.Learner) {
	copy(dst, b.Hypotheses)
}
