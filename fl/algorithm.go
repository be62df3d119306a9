package fl

import (
	"errors"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// Algorithm is one way of training together. Whoever carries the messages calls
// Broadcast and Aggregate at the server and Respond at the participants.
type Algorithm interface {
	// Start is the server's state before the first round.
	Start() *State
	// ReleaseLength is how many values a release has.
	ReleaseLength() int
	// ReleaseBounds is what the values of a release may be, in ascending order: a
	// server refuses others, for it could not go on with them.
	ReleaseBounds() []Bound
	// Prepare settles what follows from a participant's own size and target. It is
	// called before the participant's first round.
	Prepare(p *Participant) error
	// Broadcast is what every participant of the round is sent.
	Broadcast(s *State) (Broadcast, error)
	// Respond is the participant's half: it writes its release to out, or reports
	// that it declines. What is in out, and whether it declines, depends on private data
	// through paid mechanisms alone; training that leaves the finite numbers ends in a
	// fixed release and a Mishap.
	Respond(w *Worker, b Broadcast, p *Participant, out []float64) (released bool, err error)
	// Aggregate is the server's half: it moves the state on by one round.
	Aggregate(s *State, r Releases) Outcome
}

// New builds the run's method, of the family that goes with its data, for so many
// participants.
func New(run config.Run, m model.Model, participants int) (Algorithm, error) {
	if run.Data.OfSilos() {
		return NewSilo(run, m, participants)
	}
	return NewGroup(run, m)
}

// Personal is an Algorithm that leaves every participant a model of its own.
type Personal interface {
	Algorithm
	// Adopt sets dst to the model that a participant uses once the server is where b
	// says: call it with the broadcast that follows the last round. It changes
	// nothing.
	Adopt(dst []float64, b Broadcast, p *Participant)
}

// State is what the server keeps between rounds.
type State struct {
	Round      int
	Hypotheses []float64 // one after another
	Idle       []int     // rounds since each hypothesis last had an update
	Memory     []float64 // what else the method keeps, in a layout of its own
}

// Broadcast is public: every participant of the round sees it.
type Broadcast struct {
	Round      int
	Hypotheses []float64
	Radius     float64   // public radius of the round; 0 in paper mode
	Spread     float64   // largest distance between two hypotheses
	Memory     []float64 // what else the method sends, in a layout of its own
}

// Outcome is what the server learned from a round's releases.
type Outcome struct {
	Assigned  []int // cluster of every release; valid until the next round
	Relocated int   // hypotheses that were moved for want of updates
	// Err is why the round's releases could not be used; the models are as before.
	Err error
}

// Participant is what stays with one client. What every response reads comes first:
// a simulation has thousands of them, and a line of the cache less is time.
type Participant struct {
	ID   int
	Data *data.Client
	// Blank has the participant answer as if none of its examples said anything: what
	// is released is a fixed vector with the noise that was paid for. It is for a
	// participant whose training fails, since a missing answer would tell of its data.
	Blank bool
	// standardised: Data are rows that are scaled already.
	standardised bool
	// Mishap is why the last release is a fixed one, if it is: training failed, or left
	// the finite numbers. It tells of the data and stays with the participant.
	Mishap error
	// Purse pays for releases. Nil in simulation, where the account is enough.
	Purse   Purse
	Account account.Metric
	// Switch is what the releases lose if the client's choice of hypothesis
	// changed as well: the sum of epsilon_t*(2*C_t + spread_t). Sound mode only.
	Switch float64
	// Personal is what the method keeps at the participant between rounds: its own
	// model, first of all. It is never sent.
	Personal []float64
	Name     string // of a silo; a target in the run file may name it
	// Plan is what Prepare settled for a silo, and Paid what it has made of it.
	Plan SiloPlan
	Paid SiloPaid
	// Keep makes durable what a round draws for all later ones, before it is used.
	// Nil: nothing has to be.
	Keep func(*Participant) error
	// Uncovered is what was done to Data that no accounting covers (scaling by the
	// silo's own rows, say): then no number about single examples is proved.
	Uncovered []string
}

// Purse is a durable record of what a participant may still release.
type Purse interface {
	// Reserve pays for a release of a round. It is called after the update is
	// clipped and before any noise is drawn. An error that wraps ErrRefused means
	// that the participant declines; any other one ends the round for it.
	Reserve(round int, r event.Release) error
}

// pay reserves a release if there is a purse. What it returns is drawn from; it is
// nil if the release may not be made.
func (p *Participant) pay(round int, r event.Release) (*mech.Paid, error) {
	if p.Purse != nil {
		err := p.Purse.Reserve(round, r)
		if errors.Is(err, ErrRefused) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return mech.NewPaid(r)
}

// RespondOpenly is Respond for simulations, which have nothing to hide from whoever
// runs them: a mishap is an error.
func RespondOpenly(a Algorithm, w *Worker, b Broadcast, p *Participant, out []float64) (released bool, err error) {
	released, err = a.Respond(w, b, p, out)
	if err == nil && p.Mishap != nil {
		return false, p.Mishap
	}
	return released, err
}

// Worker is the memory and the streams that one goroutine reuses, for one
// algorithm.
type Worker struct {
	theta   []float64
	delta   []float64
	noise   rng.Stream
	batches rng.Stream
	learner model.Learner
	index   []int       // pictures drawn for a round
	some    data.Client // what they make up
	mine    *data.Client
	exact   exactScratch
	silo    siloScratch
	bounded []bounded // what a group run sanitises apart
	_       [128]byte // the next worker's fields lie on other cache lines
}
