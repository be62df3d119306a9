package store

import "time"

// RunStatus is how a run stands.
type RunStatus string

// A run is running until it ends in one of the other ways.
const (
	Running  RunStatus = "running"
	Finished RunStatus = "finished"
	Stopped  RunStatus = "stopped" // by its operator
	Failed   RunStatus = "failed"
)

// Run is one training.
type Run struct {
	ID      string
	File    []byte // the resolved run file
	SHA256  string // of the plan that participants are shown, in hexadecimal
	Status  RunStatus
	Detail  string
	Created time.Time
}

// Participant is somebody's place in a run.
type Participant struct {
	Run      string
	Name     string
	Index    int       // the client number that the algorithm knows
	LastSeen time.Time // zero if never
}

// RoundStatus is how a round stands.
type RoundStatus string

// A round is open once, then closed with a new state or abandoned without.
const (
	RoundOpen      RoundStatus = "open"
	RoundClosed    RoundStatus = "closed"
	RoundAbandoned RoundStatus = "abandoned"
)

// Round is one round of a run.
type Round struct {
	Run      string
	Number   int
	Clients  []int  // indices of those asked, in ascending order
	Sampler  []byte // the sampler's state after this round's draw
	Deadline time.Time
	Opened   time.Time
	Status   RoundStatus
	Ended    time.Time // zero while open
	Reason   string    // why it was abandoned
}

// Update names one release: its slot, and what its bytes must be.
type Update struct {
	Run         string
	Round       int
	Participant int // index
	SHA256      [32]byte
	Size        int64
	At          time.Time // when it arrived
}

// AnswerKind is what a participant did in a round.
type AnswerKind string

// Asked, a participant waits, then releases or declines.
const (
	Waiting  AnswerKind = "waiting"
	Released AnswerKind = "released"
	Declined AnswerKind = "declined"
)

// Answer is one assignment and what came of it.
type Answer struct {
	Participant int // index
	Kind        AnswerKind
	SHA256      [32]byte  // of the release
	Size        int64     // of the release
	Reason      string    // of declining
	At          time.Time // zero while waiting
}

// Equivocation is a refused attempt to send other bytes for a slot that is taken. Of
// one participant MostEquivocations are kept in a run.
type Equivocation struct {
	Run         string
	Round       int
	Participant int // index
	SHA256      [32]byte
	Size        int64
	At          time.Time
	// Further is how many more the participant has tried in the run since the server
	// was started; only its last one says so.
	Further int
}

// Receipt is the server's signed word on a release: with it, a participant's
// ledger can be shown to be complete.
type Receipt struct {
	Run         string
	Round       int
	Participant string // name
	Counter     uint64 // of the participant's ledger; rises with every receipt
	Head        [32]byte
	Signed      []byte // as the participant gets it
}
