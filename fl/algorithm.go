package fl

import (
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// Algorithm is one way of training together. Whoever carries the messages calls
// Broadcast and Aggregate at the server and Respond at the participants.
type Algorithm interface {
	// Start is the server's state before the first round.
	Start() *State
	// Broadcast is what every participant of the round is sent.
	Broadcast(s *State) (Broadcast, error)
	// Respond is the participant's half: it writes its release to out, or reports
	// that it declines.
	Respond(w *Worker, b Broadcast, p *Participant, out []float64) (released bool, err error)
	// Aggregate is the server's half: it moves the state on by one round.
	Aggregate(s *State, r Releases) Outcome
}

// State is what the server keeps between rounds.
type State struct {
	Round      int
	Hypotheses []float64 // one after another
	Idle       []int     // rounds since each hypothesis last had an update
}

// Broadcast is public: every participant of the round sees it.
type Broadcast struct {
	Round      int
	Hypotheses []float64
	Radius     float64 // public radius of the round; 0 in paper mode
	Spread     float64 // largest distance between two hypotheses
}

// Outcome is what the server learned from a round's releases.
type Outcome struct {
	Assigned  []int // cluster of every release; valid until the next round
	Relocated int   // hypotheses that were moved for want of updates
}

// Participant is what stays with one client.
type Participant struct {
	ID      int
	Data    *data.Client
	Account account.Metric
	// Switch is what the releases lose if the client's choice of hypothesis
	// changed as well: the sum of epsilon_t*(2*C_t + spread_t). Sound mode only.
	Switch float64
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
	exact   exactScratch
	_       [128]byte // the next worker's fields lie on other cache lines
}
