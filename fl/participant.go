package fl

import (
	"sync/atomic"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/model"
)

// Participant is what stays with one client. What every response reads comes first:
// a simulation has thousands of them, and a line of the cache less is time.
type Participant struct {
	ID   int
	Data *data.Client
	// Blank has the participant answer as if none of its examples said anything: what
	// is released is a fixed vector with the noise that was paid for. It is for a
	// participant whose training fails, since a missing answer would tell of its data.
	Blank bool
	// Scaled: Data are rows that are scaled already.
	Scaled bool
	// Mishap is why the last release is a fixed one, if it is: training failed, or left
	// the finite numbers. It tells of the data and stays with the participant.
	Mishap error
	// Watch counts what its noised steps do; nil: nobody does. It is for simulations
	// alone: what it holds is paid for by nobody.
	Watch *mech.StepTrace
	// Purse pays for releases. Nil in simulation, where the account is enough.
	Purse   Purse
	Account account.Metric
	// Switch is what the releases lose if the client's choice of hypothesis
	// changed as well: the sum of epsilon_t*(2*C_t + spread_t). Sound mode only.
	Switch float64
	Kept
	Name string // a target in the run file may name it
	// Plan is what Prepare settled.
	Plan Plan
	// Keep makes durable what a round draws for all later ones, before it is used.
	// Nil: nothing has to be.
	Keep func(*Participant) error
	// Uncovered is what was done to Data that no accounting covers (scaling by the
	// participant's own rows, say): then no number about single examples is proved.
	Uncovered []string
	// Steps counts the steps that it begins, for whoever shows how far a long round is; nil:
	// nobody does.
	Steps *atomic.Int64
}

// Kept is what a participant keeps between rounds. It is never sent.
type Kept struct {
	Personal []float64    // its own model, if the method has it keep one
	Cluster  int          // that it chose last
	Last     []float64    // its last release's model, if the choice goes by it
	Scaling  []float64    // centres, then scales, of its features, if it paid for them
	Training model.Memory // what its next round's training goes on with
	Paid     Paid
	// Evaluated is the SHA-256 of the broadcast that the evaluation judged: the run must
	// end with it. Nil: there was none.
	Evaluated []byte
}

// Paid counts what was paid for, besides what the Account holds.
type Paid struct {
	Rounds  int
	Choices int
	Moments int // the round that paid for the features' moments, from 1; 0: none
}

// Moments are the constants that a participant scales its features by,
// (x - centre)/scale, once it has paid for them. Whoever uses its model needs them.
func (p *Participant) Moments() (centre, scale []float64, ok bool) {
	d := len(p.Scaling) / 2
	return p.Scaling[:d], p.Scaling[d:], d > 0
}

// Standardised are a client's rows as the participant scales its own: those that it
// holds out, for example. Without moments that were paid for it is the client itself.
func (p *Participant) Standardised(c *data.Client) *data.Client {
	centre, scale, ok := p.Moments()
	if !ok || c.Features != len(scale) {
		return c
	}
	return &data.Client{Rows: c.Rows.Standardised(centre, scale), Group: c.Group}
}
